"""Reads what a group's request is decided from: first, and again while others are placed."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Protocol

import numpy as np
from nova import objects
from nova.scheduler import host_manager

from hpc_sched.core.arrays import Array
from hpc_sched.core.capacity import UNBOUNDED
from hpc_sched.core.constraints import server_group_policy
from hpc_sched.core.extra_spec_names import ISOLATED
from hpc_sched.nova_glue.io.fabric import Fabric
from hpc_sched.nova_glue.read import request_spec
from hpc_sched.nova_glue.read.caps import counting_filters
from hpc_sched.nova_glue.read.hold import Holds
from hpc_sched.nova_glue.read.inputs import Inputs, ReadRequest
from hpc_sched.nova_glue.read.instances import group_members
from hpc_sched.nova_glue.read.instances.colocated_instances import ColocatedInstances
from hpc_sched.nova_glue.read.room import compared_hosts, held_room, shunned_hosts
from hpc_sched.nova_glue.read.room.host_rooms import HostRooms

if TYPE_CHECKING:
    from hpc_sched.nova_glue.read.isolated_instances import IsolatedInstances


class ReadHolds(Protocol):
    """Returns all holds of the cloud; never raises."""

    def __call__(self, *, needs_turn: bool = False) -> Holds:
        """Return the holds; with ``needs_turn`` their turn even where none are used."""


def read(
    spec: objects.RequestSpec,
    states: Sequence[host_manager.HostState],
    fabric: Fabric,
    colocated: Callable[[], ColocatedInstances],
    look_up: Callable[
        [request_spec.RequestedGroup, Mapping[str, tuple[str, str | None]]], group_members.LookUp
    ],
    read_holds: ReadHolds,
) -> Inputs | None:
    """Return the inputs of a request that is first seen, or None without a group to plan.

    Queries: those of :func:`group_members.read`; of :func:`colocated_instances.read` where VMs of
    others matter, once more for isolation; of :class:`HostRooms` for devices and shared disks.

    :param colocated: reads the instances on the hosts, or returns what was read
    :param look_up: returns what looks up members that may be in flight, by request and the
        instances in flight that were read with those on the hosts
    :param read_holds: one call to Placement
    """
    request = request_spec.from_spec(spec, fabric.topology.request_levels)
    # An invalid guarantee does not block an instance that may never have been in a group.
    if request is None or (request.has_lost_group and request.hpc_specs.is_unclear):
        return None
    there = colocated() if request.bounded_by or request.by_mdobp else None
    in_flight = there.host_instances.in_flight if there is not None else {}
    holds = read_holds(needs_turn=request.hpc_specs.objective == ISOLATED)
    look = look_up(request, in_flight)
    found = group_members.read(request, states, look, (), holds.destinations)
    if request.has_lost_group and found.is_alone:
        return None
    request = request.knowing(found.uuids)
    shunned = shunned_hosts.find(states, spec)
    rooms = _rooms(spec, request, found, states, holds)
    bounds = [] if there is None else [there.room(name, states) for name in request.bounded_by]
    unbounded = np.full(len(states), UNBOUNDED, dtype=np.int64)
    left = np.minimum.reduce([unbounded, *bounds])
    isolated = _isolated(request, found, states, holds)
    read = (request, found, states, fabric, rooms, there, shunned, left, holds, isolated)
    return Inputs(*read, ReadRequest(*read).group_request())


def read_again(
    inputs: Inputs,
    hosts: Sequence[int] | None,
    look_up: group_members.LookUp | None,
    claimed: Collection[str] = (),
    read_holds: ReadHolds | None = None,
    *,
    needs_members: bool = True,
) -> Inputs | None:
    """Return the inputs after rooms, then members were read again; None if they cannot be read.

    While others of the group are placed, the members that were read first may lack VMs whose
    places the rooms, read later, lack as well. The other way round a VM may count twice, and
    the claim decides.

    Two calls to Placement for each of a few hosts, or for all, and what
    :func:`group_members.read` says; for an isolated group what :func:`read` says of its others,
    where the holds are read.

    :param hosts: positions of HostStates; None for all
    :param look_up: for members in flight; None if the members are not read
    :param claimed: instances of the request that it has claimed itself
    :param read_holds: returns the holds; None if they are not read again
    :param needs_members: whether members that cannot be read make it None
    """
    if (hosts is None or hosts) and not inputs.rooms.refresh(hosts):
        return None
    if look_up is None:
        return inputs
    is_isolated = inputs.request.hpc_specs.objective == ISOLATED
    holds = inputs.holds if read_holds is None else read_holds(needs_turn=is_isolated)
    found = group_members.read(inputs.request, inputs.states, look_up, claimed, holds.destinations)
    if found.is_partial:
        return None if needs_members else inputs
    # Members that are claimed by now are in the rooms: their holds do not count any more.
    inputs.rooms.keep_free(_held_for_others(inputs.request, found, inputs.states, holds))
    if read_holds is not None:
        isolated = _isolated(inputs.request, found, inputs.states, holds)
        inputs = replace(inputs, holds=holds, isolated=isolated)
    return inputs.with_members(found)


def _isolated(
    request: request_spec.RequestedGroup,
    found: group_members.GroupMembership,
    states: Sequence[host_manager.HostState],
    holds: Holds,
) -> IsolatedInstances | None:
    if request.hpc_specs.objective != ISOLATED:
        return None
    from hpc_sched.nova_glue.read import isolated_instances

    return isolated_instances.read(request, found.uuids, states, holds)


def _rooms(
    spec: objects.RequestSpec,
    request: request_spec.RequestedGroup,
    found: group_members.GroupMembership,
    states: Sequence[host_manager.HostState],
    holds: Holds,
) -> HostRooms:
    most = server_group_policy.most_per_host(request.max_per_host)
    in_flight = set(found.in_flight.values())
    for state in states if in_flight else ():
        if (state.host, state.nodename) in in_flight:
            # Placement has the VM, its HostState has not: others of the group must not count on it.
            compared_hosts.forget(state)
    rooms = HostRooms(states, request.query, request.fitting, most_per_host=most)
    if counting_filters.enabled():
        from hpc_sched.nova_glue.read.caps import filter_caps

        rooms.caps = filter_caps.of(spec, states)
    rooms.keep_free(_held_for_others(request, found, states, holds))
    return rooms


def _held_for_others(
    request: request_spec.RequestedGroup,
    found: group_members.GroupMembership,
    states: Sequence[host_manager.HostState],
    holds: Holds,
) -> Array:
    """Return the VMs that each HostState takes fewer for what is held there.

    That is for other groups, and for VMs of the group that are being placed, as members.
    """
    own = {request.instance_uuid, *(found.uuids - found.unclaimed)}
    return held_room.lost(states, request.demand, holds.taken_by_others(own))
