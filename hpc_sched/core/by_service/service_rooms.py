"""The largest group that anti-affinity permits below one switch, by services with many nodes.

A service takes few VMs, wherever its nodes are. So what leaves take together is less than the sum
of what each takes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Self

import numpy as np

from hpc_sched.core import leaf_slots
from hpc_sched.core.arrays import Array
from hpc_sched.core.constraints import Bounds, server_group_policy
from hpc_sched.core.constraints.server_group_policy import HardPolicy
from hpc_sched.core.placement_input import PlacementInput
from hpc_sched.core.plan.rejection import conflict_of
from hpc_sched.core.plan.result import Gang
from hpc_sched.core.plan.switch_rooms import rooms_below
from hpc_sched.core.plan.time_limit import Effort
from hpc_sched.topology.model import Topology

if TYPE_CHECKING:
    # Loaded by the first request that needs them: on bare metal, with a bound on leaves.
    from hpc_sched.core.by_service.coverage import LeafSet
    from hpc_sched.core.by_service.coverage_bound import LeafRooms
    from hpc_sched.core.by_service.leaf_choice import LeafChoice

# Sums that one search may make: 0.3 to 0.5 s.
SUMS = 100_000_000
_ANY = 1 << 62  # more VMs than any group has


@dataclass(frozen=True, slots=True)
class GroupRoom:
    """The room for a group below one switch of a level."""

    top: int  # the switch. Indices in topology.switches
    leaves: tuple[int, ...]  # some that take the VMs, within the bounds
    vms: int
    at_most: int  # VMs that no group exceeds, below any switch of the level

    @property
    def is_proven(self) -> bool:
        """True if no larger group fits."""
        return self.vms == self.at_most

    def gang(self, topology: Topology, level: int) -> Gang:
        """Return the group as one that fits under a switch of the level."""
        return Gang(topology.levels[level - 1], self.vms, topology.switches[self.top].name)


@dataclass(frozen=True, slots=True, eq=False)
class _Below:
    """The leaves below one switch."""

    top: int
    leaves: Array  # those with room, in tie order. Indices in topology.switches
    choice: LeafChoice
    start: LeafSet

    @classmethod
    def of(cls, request: PlacementInput, policy: HardPolicy, top: int, bounds: Bounds) -> Self:
        """Return the leaves below a switch. O(hypervisors + leaves * services)."""
        from hpc_sched.core.by_service.leaf_choice import LeafChoice

        topology = request.topology
        is_open = server_group_policy.open_room(policy, request.room) > 0
        nodes = np.flatnonzero(is_open & (request.switches(topology.switches[top].level) == top))
        used = leaf_slots.used_leaves(request)
        number = len(topology.leaves)
        if bounds.most_leaves is not None:
            number = bounds.most_leaves - len(used)
        if not number:
            nodes = nodes[np.isin(request.switches(1)[nodes], used)]
        leaves = np.unique(request.switches(1)[nodes])
        leaves = leaves[np.argsort(request.tie.among(leaves))]
        rooms, _ = _leaf_rooms(request, policy, nodes, leaves)
        forced = tuple(np.flatnonzero(np.isin(leaves, used)).tolist())
        missing = max(bounds.least_leaves - len(used), 0)
        choice = LeafChoice(rooms, forced, min(number, len(leaves) - len(forced)), missing)
        return cls(top, leaves, choice, choice.first())

    def room(self, found: LeafSet) -> GroupRoom:
        """Return the room on a set of the leaves."""
        leaves = self.leaves[list(found.leaves)]
        return GroupRoom(self.top, tuple(leaves.tolist()), found.vms, found.vms)


def largest(
    request: PlacementInput,
    policy: HardPolicy,
    level: int,
    bounds: Bounds,
    wanted: int | None = None,
    sums: int | None = None,
) -> GroupRoom | None:
    """Return the most new VMs that fit within bounds below one switch of a level.

    None if members break a bound. It is not proven that these are the most if too many steps are
    needed. Of equal switches the first in tie order that is found.

    :param wanted: VMs that are enough: any leaves that take them are returned, and
        ``at_most`` is less only if it is proven that no leaves do
    :param sums: that a search may make, SUMS by default; 0: no search
    """
    problem = request.problem()
    if conflict_of(problem, bounds, level) is not None:
        return None
    domain = request.topology.groups[level - 1]
    if not len(domain):
        return None
    tops = np.unique(domain[request.members > 0] if request.members.any() else domain)
    # What leaves take one by one, and what all leaves take together.
    apart = rooms_below(problem, level, bounds)
    together = np.bincount(domain, request.per_host(request.capacity_at(level)), len(apart))
    bound = np.minimum(apart, together.astype(np.int64))
    tops = tops[np.lexsort((request.tie.among(tops), -bound[tops]))]
    has_choice = level > 1 and (bounds.most_leaves is not None or bounds.least_leaves > 1)
    if not has_choice:
        top, vms = int(tops[0]), int(bound[tops[0]])
        return GroupRoom(top, tuple(np.unique(request.switches(1)).tolist()), vms, vms)
    most_below = dict(zip(tops.tolist(), bound[tops].tolist(), strict=True))
    return _searched(request, policy, bounds, most_below, wanted, SUMS if sums is None else sums)


def _searched(
    request: PlacementInput,
    policy: HardPolicy,
    bounds: Bounds,
    most_below: Mapping[int, int],
    wanted: int | None,
    sums: int,
) -> GroupRoom:
    """Return the answer of :func:`largest` where leaves must be chosen.

    :param most_below: switches with the VMs that no leaves below exceed, greatest first
    """
    enough, floor = (_ANY, -1) if wanted is None else (wanted, wanted - 1)
    best: GroupRoom | None = None
    tried = list[_Below]()
    for top, bound in most_below.items():
        if best is not None and bound <= max(floor, best.vms):
            break
        one = _Below.of(request, policy, top, bounds)
        tried.append(one)
        if best is None or one.start.vms > best.vms:
            best = one.room(one.start)
        if best.vms >= enough:
            return best
    assert best is not None
    most, effort = min(floor, max(most_below.values())), Effort()
    with effort.at_most(sums):
        for one in tried:
            least = max(floor, best.vms)
            if one.choice.is_whole or most_below[one.top] <= least:
                continue
            found, exceeded_by_none = one.choice.best(one.start, least, enough, effort)
            most = max(most, min(exceeded_by_none, most_below[one.top]))
            if found.vms > best.vms:
                best = one.room(found)
            if best.vms >= enough:
                return best
    return replace(best, at_most=max(most, best.vms))


def room_on(request: PlacementInput, policy: HardPolicy, found: GroupRoom, bounds: Bounds) -> Array:
    """Return the room per hypervisor on some leaves, each service's allowance shared out.

    Any plan within it keeps anti-affinity, and there is one of ``found.vms`` VMs within bounds.
    Leaves with members come first, then those with most room. Shape (hypervisors,).
    """
    leaf, used = request.switches(1), leaf_slots.used_leaves(request)
    level = request.topology.switches[found.top].level
    is_in = np.isin(leaf, found.leaves) & (request.switches(level) == found.top)
    room = np.where(is_in, request.room, 0)
    first = np.zeros_like(room)
    if bounds.least_leaves > len(used):
        first[_own_nodes(request, policy, room, bounds.least_leaves - len(used))] = 1
    roomy = np.bincount(leaf, request.capacity, len(request.topology.switches))
    is_new = np.ones(len(roomy), dtype=np.bool_)
    is_new[used] = False
    rank = np.argsort(np.lexsort((request.tie.ranks, -roomy, is_new)))
    order = policy.order[np.argsort(rank[leaf[policy.order]], kind="stable")]
    left = policy.with_placed(first)
    shared = server_group_policy.shared_out(
        replace(left, order=order), room - first, np.zeros_like(leaf), left.allowed
    )
    return first + shared


def _own_nodes(request: PlacementInput, policy: HardPolicy, room: Array, missing: int) -> list[int]:
    """Return a node on each of up to ``missing`` new leaves that together may take a VM each."""
    from hpc_sched.core.by_service.leaf_choice import LeafChoice

    leaf, order = request.switches(1), policy.order
    nodes = order[np.minimum(room, policy.allowed[policy.service])[order] > 0]
    leaves = np.unique(leaf[nodes])
    rooms, services = _leaf_rooms(request, policy, nodes, leaves)
    used = np.flatnonzero(np.isin(leaves, leaf_slots.used_leaves(request)))
    choice = LeafChoice(rooms, tuple(used.tolist()), 0, missing)
    wanted = choice.own_services(range(len(leaves)), missing)
    column = np.full(len(policy.members), -1)
    column[services] = np.arange(len(services))
    own: dict[int, int] = {}
    for node, row in zip(
        nodes.tolist(), np.searchsorted(leaves, leaf[nodes]).tolist(), strict=True
    ):
        if wanted.get(row, -2) == column[policy.service[node]]:
            own.setdefault(row, node)
    return [*own.values()]


def _leaf_rooms(
    request: PlacementInput, policy: HardPolicy, nodes: Array, leaves: Array
) -> tuple[LeafRooms, Array]:
    """Return the rooms of leaves, and the services that take less than all their nodes there.

    O(nodes + leaves * services of this kind).
    """
    from hpc_sched.core.by_service.coverage_bound import LeafRooms

    row = np.zeros(len(request.topology.switches), dtype=np.int64)
    row[leaves] = np.arange(len(leaves))
    pairs, place = np.unique(
        policy.service[nodes] * len(leaves) + row[request.switches(1)[nodes]], return_inverse=True
    )
    service, at = pairs // max(len(leaves), 1), pairs % max(len(leaves), 1)
    room = np.bincount(place, request.room[nodes], len(pairs)).astype(np.int64)
    room = np.minimum(room, policy.allowed[service])
    is_bound = np.bincount(service, room, len(policy.members)) > policy.allowed
    services, together = np.flatnonzero(is_bound), is_bound[service]
    rooms = np.zeros((len(leaves), len(services)), dtype=np.int64)
    rooms[at[together], np.searchsorted(services, service[together])] = room[together]
    others = np.bincount(at[~together], room[~together], len(leaves)).astype(np.int64)
    return LeafRooms(rooms, policy.allowed[services], others), services
