"""The exact plan of a group: its problem, the planner, refusals, and the order of hosts."""

from hpc_sched.core.plan.planner import plan

__all__ = ["plan"]
