"""Sort keys and ranks of candidates, for weighers."""

import numpy as np

from hpc_sched.core.arrays import Array, Mask
from hpc_sched.core.group_request import GroupRequest
from hpc_sched.enabled_plugins import MDOBP_LEAVES
from hpc_sched.nova_glue.decide.group_placement import GroupPlacement, lost_hosts


def host_keys(group: GroupPlacement, order: Array) -> Array:
    """Return sort keys of candidates by an order of hosts, smallest first. Shape (candidates,).

    A key is the place in the order. Hosts that are full, or whose room is held for other VMs of the
    request, come after all others, hosts that lost a claim after these: their keys are greater by
    the number of hosts once and twice. With soft-anti-affinity any VM that is held fills a host.

    :param order: indices in ``topology.hosts``, best one first; shape (hosts,)
    """
    positions = group.event.candidates
    place = np.empty(len(order), dtype=np.int64)
    place[order] = np.arange(len(order))
    held = group.held(for_others=True)
    takes_more = (group.request().capacity > held)[positions]
    if group.inputs.request.policy == "soft-anti-affinity":
        takes_more &= held[positions] == 0
    behind = np.where(np.isin(positions, lost_hosts(group)), 2, np.where(takes_more, 0, 1))
    keys: Array = place[group.inputs.host_index[positions]] + len(order) * behind
    return keys


def open_hosts(group: GroupPlacement, limited: GroupRequest) -> Mask:
    """Return which candidates have room that a plan does not avoid. Shape (candidates,).

    :param limited: the request without the hosts that it avoids
    """
    positions = group.event.candidates
    has_room = limited.capacity[positions] > 0
    free = limited.problem().capacity[group.inputs.host_index[positions]]
    return np.logical_and(has_room, free > 0)


def leaves_of(group: GroupPlacement) -> Array:
    """Return the leaf of each candidate. Shape (candidates,)."""
    inputs = group.inputs
    leaves: Array = inputs.topology.leaf_index[inputs.host_index[group.event.candidates]]
    return leaves


def by_leaf(group: GroupPlacement, keys: Array, is_open: Mask) -> Array:
    """Return keys with which all open hosts of a leaf have the key of the best of its hosts."""
    leaf, hosts = leaves_of(group), len(group.inputs.topology.hosts)
    least = np.full(len(group.inputs.topology.switches), keys.max(initial=0))
    np.minimum.at(least, leaf, keys)
    behind = np.maximum(keys // hosts, ~is_open)
    return np.where(behind == 0, least[leaf], behind * hosts)


def dense_ranks(keys: Array) -> Array:
    """Return the dense rank of each key, 0 for the greatest. Shape (keys,)."""
    ranks: Array = np.unique(-keys, return_inverse=True)[1]
    return ranks


def ranks_in_leaves(group: GroupPlacement, keys: Array, step: float) -> tuple[Array, float]:
    """Return the rank of each host within its leaf, 0 for the worst, and the step between two.

    :param step: the largest; smaller where the ranks of a large leaf would be too much
    """
    _, leaf = np.unique(leaves_of(group), return_inverse=True)
    sizes = np.bincount(leaf)
    # Leaf by leaf, the worst host of each first.
    worst_first = np.lexsort((-keys, leaf))
    ranks = np.empty(len(keys), dtype=np.int64)
    ranks[worst_first] = np.arange(len(keys)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    most = (MDOBP_LEAVES + 1) / (len(sizes) + 1)
    return ranks, min(step, most / max(int(sizes.max()) - 1, 1))
