"""The exact plan: tables of savings over the tree of switches, and the best plan in them."""

from hpc_sched.core.plan.exact.best_counts import exact_leaf_counts

__all__ = ["exact_leaf_counts"]
