"""The build plan of Gupta2012: racks by capacity, hosts by capacity."""

from typing import Literal

import numpy as np

from hpc_sched.core.arrays import Array
from hpc_sched.core.plan.problem import Problem, leaf_sums

Selection = Literal["largest", "best_fit"]


def build_plan(problem: Problem, selection: Selection = "largest") -> Array:
    """Return the hosts in the order of the build plan (Gupta2012, Algorithm 1).

    Racks (leaf switches) by rack capacity, and the hosts of a rack by host capacity, both
    decreasing. ``best_fit``, the paper's future work against fragmentation, starts with the
    racks of :func:`least_excess`. Equal racks: tie order; equal hosts: name.
    O(hosts log hosts), ``best_fit`` O(racks * awaiting) more.

    :returns: indices into ``topology.hosts``, all of them; shape (hosts,)
    """
    leaf = problem.topology.leaf_index
    racks = leaf_sums(problem, problem.capacity)
    chosen = np.zeros_like(racks)
    if selection == "best_fit":
        chosen[least_excess(racks, problem.awaiting, problem.tie.ranks)] = 1
    of_rack = (problem.tie.ranks[leaf], -racks[leaf], -chosen[leaf])
    return np.lexsort((problem.topology.name_rank, -problem.capacity, *of_rack))


def least_excess(racks: Array, wanted: int, tie: Array) -> Array:
    """Return the racks that together hold ``wanted`` VMs with the least excess capacity.

    Equal excess: fewer racks, then those first in tie order. Empty if all racks together are
    too small. A knapsack over sums of capacity: O(racks * wanted).

    :param racks: capacity per rack; 0 for switches above. Shape (switches,)
    :param tie: shape (switches,): rank of each switch among equals
    """
    # A rack that holds all VMs alone is never better together with another one.
    alone = np.flatnonzero(racks >= max(wanted, 1))
    best = alone[np.lexsort((tie[alone], racks[alone]))][:1]
    parts = np.flatnonzero((racks > 0) & (racks < wanted))
    parts = parts[np.argsort(tie[parts], kind="stable")]
    if not wanted or int(racks[parts].sum()) < wanted:
        return best[: 1 if wanted else 0]
    bound = wanted + int(racks[parts].max()) - 1
    never = len(parts) + 1
    # fewest[i, s]: the fewest of the racks from the i-th on whose capacities add up to s.
    fewest = np.full((len(parts) + 1, bound + 1), never, dtype=np.int32)
    fewest[-1, 0] = 0
    for i in range(len(parts) - 1, -1, -1):
        size = int(racks[parts[i]])
        fewest[i] = fewest[i + 1]
        with_it = fewest[i + 1, : bound + 1 - size] + 1
        np.minimum(fewest[i, size:], with_it, out=fewest[i, size:])
    total = wanted + int(np.flatnonzero(fewest[0, wanted:] < never)[0])
    if len(best) and racks[best[0]] <= total:
        return best
    chosen = []
    for i, rack in enumerate(parts.tolist()):
        size = int(racks[rack])
        if size <= total and fewest[i + 1, total - size] + 1 == fewest[i, total]:
            chosen.append(rack)
            total -= size
    return np.array(chosen, dtype=np.int64)
