"""The new VMs per leaf of least bottleneck if they send each other what a pattern states."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from hpc_sched.core.arrays import Array
from hpc_sched.core.plan import leaf_hosts
from hpc_sched.core.plan.bottleneck.ranks.rank_search import best_by_pattern
from hpc_sched.core.plan.objective import LeastBottleneck
from hpc_sched.core.plan.problem import LeafCounts, Problem
from hpc_sched.core.plan.time_limit import Limit
from hpc_sched.core.traffic.rank_bytes import Traffic
from hpc_sched.topology.fabric_order import in_fabric_order


def pattern_counts(
    problem: Problem,
    level: int,
    objective: LeastBottleneck,
    traffic: Traffic,
    plans: Sequence[tuple[Problem, LeafCounts]],
    limit: Limit,
) -> tuple[Problem, LeafCounts]:
    """Return the best plan that a local search finds from several, not proven.

    :param level: of the switch that must hold all VMs, members included
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
        [_per_host(within, found) for within, found in plans],
        objective.tradeoff,
        limit,
    )
    [used] = planned.nonzero()
    by_leaf = np.bincount(topology.leaf_index[used], planned[used]).astype(np.int64)
    counts = {leaf: by_leaf.item(leaf) for leaf in by_leaf.nonzero()[0].tolist()}
    top = topology.groups.item(level - 1, used[0])
    return replace(problem, capacity=planned), LeafCounts(top, counts, is_proven=False)


def _per_host(problem: Problem, found: LeafCounts) -> Array:
    places = leaf_hosts.places_in(found.counts, problem)
    return np.bincount(places, minlength=len(problem.capacity)).astype(np.int64)
