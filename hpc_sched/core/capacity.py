"""How many VMs of one kind hosts and switches can take."""

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from hpc_sched.core.problem import Problem

# More VMs than any request holds; a host whose demanded resources are all unknown takes as many.
UNBOUNDED = 1 << 20
# More than any host has; numpy's whole numbers end here.
_MOST = (1 << 63) - 1


def host_capacity(free: Mapping[str, float], demand: Mapping[str, int]) -> int:
    """Return how many VMs of a demand fit into what a host has free.

    The minimum over the demanded resource classes of free // demand (Gupta2012, whose text
    says "the maximum number of VMs each host can fit"). A class that the host tells nothing
    about does not bound.

    :param free: resource class to free amount, in the units of Placement
    :param demand: resource class to what one VM takes of it
    """
    fits = UNBOUNDED
    for resource_class, amount in demand.items():
        if amount > 0 and resource_class in free:
            fits = min(fits, int(free[resource_class] // amount))
    return max(fits, 0)


def capacities(free: NDArray[np.int64], demand: Sequence[int]) -> NDArray[np.int64]:
    """Return how many VMs of a demand fit into what each host has free. Shape (hosts,).

    :func:`host_capacity` for many hosts at once, in whole units.

    :param free: shape (hosts, resources)
    :param demand: what one VM takes of each resource
    """
    fits = np.full(len(free), UNBOUNDED, dtype=np.int64)
    for column, amount in enumerate(demand):
        if amount > 0:
            np.minimum(fits, free[:, column] // min(amount, _MOST), out=fits)
    return np.maximum(fits, 0)


def leaf_sums(problem: Problem, per_host: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the sums of a per-host array below each leaf, by switch index; 0 at others.

    With ``problem.capacity`` this is the capacity of the leaves. Shape (switches,).
    """
    sums = np.bincount(
        problem.topology.leaf_index,
        weights=per_host,
        minlength=len(problem.topology.switches),
    )
    return sums.astype(np.int64)


def rooms_below(problem: Problem, level: int, max_leaves: int | None = None) -> NDArray[np.int64]:
    """Return the capacity below each switch of a level, by switch index; 0 at others.

    Shape (switches,). O(hosts).

    :param max_leaves: count only so many leaves of each switch: those that members use
        already, then the ones with most room
    """
    topology = problem.topology
    room = leaf_sums(problem, problem.capacity)
    here = leaf_sums(problem, problem.members) > 0
    leaf, first = np.unique(topology.leaf_index, return_index=True)
    domain = topology.groups[level - 1][first]
    if max_leaves is not None:
        # The members' leaves are used anyway, then those with most room.
        order = np.lexsort((-room[leaf], ~here[leaf], domain))
        leaf, domain = leaf[order], domain[order]
        starts = np.flatnonzero(np.diff(domain, prepend=-1))
        place = np.arange(len(leaf)) - np.repeat(starts, np.diff([*starts, len(leaf)]))
        leaf, domain = leaf[place < max_leaves], domain[place < max_leaves]
    rooms: NDArray[np.int64] = np.bincount(domain, weights=room[leaf], minlength=len(room)).astype(
        np.int64
    )
    return rooms
