"""The best plan on a single leaf, and whether any on several leaves could be as good."""

from dataclasses import dataclass

import numpy as np

from hpc_sched.core.arrays import Array, Mask
from hpc_sched.core.fragmentation.price import POD
from hpc_sched.core.plan.exact.charges import LEAVES_OF_POD
from hpc_sched.core.plan.exact.leaves.open_leaves import OpenLeaves, whole_bound
from hpc_sched.core.plan.leaf_hosts import leaf_gains, leaf_hosts


@dataclass(frozen=True, slots=True)
class OneLeaf:
    """The first plan on one leaf in the order of plans."""

    leaf: int  # in topology.switches
    top: int  # the switch that must hold all VMs, or root
    # Hops, less what all pairs cost through the top; those of members are left out. With charges
    # what is left of them, in parts of a hop.
    saved: int
    is_new: bool  # whether the leaf has no members
    is_best: bool  # whether each plan on several leaves saves less


def best_leaf(leaves: OpenLeaves, level: int, tops: Array) -> OneLeaf | None:
    """Return the first leaf in the order of plans that has room for all VMs, or None.

    Most saved hops, then a leaf with members, the least excess capacity as
    :class:`~hpc_sched.core.plan.exact.order.LeafOrder` says, then the tie order. O(hosts).

    :param level: of the switch that must hold all VMs, members included
    :param tops: the switches of that level with room for all VMs
    """
    count, problem = leaves.count, leaves.problem
    is_allowed = leaves.are_below(tops, level)
    [found] = (is_allowed & (leaves.rooms >= count)).nonzero()
    if not len(found):
        return None
    first, most = found, 0
    if leaves.vms_of_group > 1 or leaves.charges is not None:
        saved = leaves.saved_above(found, count, 1, level) - leaves.through_top(level)[found]
        if leaves.shares_hosts:
            saved += _pairs(leaves, found)
        if leaves.charges is not None:
            saved = leaves.scale * saved - leaves.charged(found, count, 1)
        most = int(saved.max())
        first = found[saved == most]
    with_members = first[leaves.here[first] > 0]
    if len(with_members):
        first = with_members
    path = leaves.path
    if leaves.charges is not None and len(path) >= POD:
        excess = LEAVES_OF_POD * leaves.room[path[0, first]] + leaves.room[path[1, first]]
        first, path = first[excess == excess.min()], path[POD:]
    for row in path:
        if len(first) == 1:
            break
        room = leaves.room[row[first]]
        first = first[room == room.min()]
    if len(first) > 1:
        first = first[[np.argmin(problem.tie.among(leaves.index[first]))]]
    leaf = int(first[0])
    return OneLeaf(
        leaf=int(leaves.index[leaf]),
        top=int(leaves.path[level - 1, leaf]),
        saved=most,
        is_new=not leaves.here.item(leaf),
        is_best=count == 1 or level == 1 or _is_best(leaves, level, is_allowed, most),
    )


def _pairs(leaves: OpenLeaves, found: Array) -> Array:
    """Return the pairs on one host of all VMs in each of some leaves, exact also if mixed."""
    problem, count = leaves.problem, leaves.count
    pairs = leaves.pairs(count)[found]
    if not leaves.has_members:
        return pairs
    mixed = np.flatnonzero(leaves.is_mixed[found])
    if len(mixed):
        among = np.flatnonzero(np.isin(problem.topology.leaf_index, leaves.index[found[mixed]]))
        inside = leaf_hosts(problem, count, among)
        for i in mixed.tolist():
            pairs[i] = leaf_gains(inside[int(leaves.index[found[i]])], count)[count]
    return pairs


def _is_best(leaves: OpenLeaves, level: int, is_allowed: Mask, saved: int) -> bool:
    """True if no plan on two leaves or more saves as much as one that is known."""
    count, most = leaves.count, leaves.count - 1
    [allowed] = is_allowed.nonzero()
    # Above the leaves no plan saves more than if all VMs were below the same switches.
    above = leaves.saved_above(allowed, count, 1, level) - leaves.through_top(level)[allowed]
    above -= leaves.saved_by_leaves(allowed, count, level)
    charged = leaves.least_charged(most, with_pods=True)[allowed]
    # The second bound is nearer, and needs the hosts of all leaves in order.
    for means in (leaves.means_on_largest, leaves.most_means):
        hops = means(most)[allowed] * count + above
        if int(whole_bound(leaves.scale * hops - charged * count).max()) < saved:
            return True
    return False
