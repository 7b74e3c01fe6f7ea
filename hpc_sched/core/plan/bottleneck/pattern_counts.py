"""The new VMs per leaf of least bottleneck if they send each other what a pattern states."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from hpc_sched.core.constraints import Bounds
from hpc_sched.core.plan.bottleneck.least_hops.host_rooms import vms_per_host
from hpc_sched.core.plan.bottleneck.ranks.rank_search import best_by_pattern
from hpc_sched.core.plan.objective import LeastBottleneck
from hpc_sched.core.plan.problem import LeafCounts, Problem
from hpc_sched.core.plan.time_limit import Limit
from hpc_sched.core.traffic.rank_bytes import Traffic
from hpc_sched.topology.fabric_order import in_fabric_order


def pattern_counts(
    problem: Problem,
    level: int,
    bounds: Bounds,
    objective: LeastBottleneck,
    traffic: Traffic,
    plans: Sequence[tuple[Problem, LeafCounts]],
    limit: Limit,
) -> tuple[Problem, LeafCounts]:
    """Return the best plan that a local search finds from several, not proven.

    :param level: of the switch that must hold all VMs, members included
    :param bounds: that all plans keep
    :param plans: each with the problem that says what its hosts take; the first is that of least
        Hop-Byte, which no answer is above
    :returns: with the problem whose hosts take what they have in the plan
    """
    topology = problem.topology
    planned = best_by_pattern(
        problem,
        objective.capacities,
        np.array(in_fabric_order(topology, range(len(topology.hosts))), dtype=np.int64),
        traffic,
        [vms_per_host(within, found.counts) for within, found in plans],
        bounds,
        objective.tradeoff,
        limit,
    )
    [used] = planned.nonzero()
    by_leaf = np.bincount(topology.leaf_index[used], planned[used]).astype(np.int64)
    counts = {leaf: by_leaf.item(leaf) for leaf in by_leaf.nonzero()[0].tolist()}
    top = topology.groups.item(level - 1, used[0])
    return replace(problem, capacity=planned), LeafCounts(top, counts, is_proven=False)
