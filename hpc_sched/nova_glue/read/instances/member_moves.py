"""The members of a group that are being moved, or must be, and where they will be."""

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from nova import context as nova_context
from nova.scheduler import host_manager

from hpc_sched.nova_glue.io import databases
from hpc_sched.nova_glue.read.instances import in_flight_instances, member_records
from hpc_sched.nova_glue.read.instances.member_records import CellMember


@dataclass(frozen=True, slots=True)
class MovedMembers:
    """The members of a group that have a place, and those that must leave theirs."""

    placed: list[CellMember]  # at the place they move to
    leaving: list[CellMember]
    # Those whose place is not claimed yet, as far as is known: requests only say where they go.
    unclaimed: frozenset[str] = frozenset()

    @property
    def places(self) -> Counter[in_flight_instances.Place]:
        """The places of members, as (host, nodename)."""
        return Counter((vm.host, vm.nodename) for vm in self.placed if vm.host)

    @property
    def places_left(self) -> Counter[in_flight_instances.Place]:
        """The places that members must leave."""
        return Counter((vm.host or "", vm.nodename) for vm in self.leaving)

    @property
    def building(self) -> list[str]:
        """The uuids of members that build or unshelve, and have no place that is known."""
        return [vm.uuid for vm in self.placed if not vm.host and vm.building]


def after_moves(
    context: nova_context.RequestContext,
    records: member_records.GroupRecords,
    states: Sequence[host_manager.HostState],
    destinations: Mapping[str, str],
) -> MovedMembers:
    """Return the members where they will be.

    Members on hosts that are down must move, if the instance of the request moves those on disabled
    ones as well. Those with a place elsewhere, which is claimed, are there. Look-ups in Placement
    for members that move, as :func:`in_flight_instances.places_of` says; one query for the cells
    and one in each if their places are on hosts that are no candidates.

    :param destinations: nodenames of the hosts on which instances are being placed, by instance
    """
    members = records.others
    moving = [one for one in members if one.is_moving or one.uuid in destinations]
    sources = {member.uuid: member.nodename or "" for member in moving}
    looked_up = in_flight_instances.places_of(context, sorted(sources), states, sources)
    if looked_up.problem:
        records.problems.append(looked_up.problem)
    stated = _stated(members, destinations, states)
    claimed = looked_up.all_places
    down = _down(context, records, states, [*claimed.values(), tuple(stated.values())])
    placed, leaving, unclaimed = [], [], set()
    for member in members:
        goals = [place for place in claimed.get(member.uuid, ()) if place[0] not in down]
        place = stated.get(member.uuid)
        if place is not None and place[0] not in down:
            placed.append(member._replace(host=place[0], nodename=place[1]))
            if place not in goals:
                unclaimed.add(member.uuid)
        elif goals:
            placed.append(member._replace(host=goals[0][0], nodename=goals[0][1]))
        elif not member.must_move(is_move=records.is_move):
            placed.append(member)
        elif member.uuid not in looked_up.missed:
            leaving.append(member)
    return MovedMembers(placed, leaving, frozenset(unclaimed))


def _stated(
    members: Sequence[CellMember],
    destinations: Mapping[str, str],
    states: Sequence[host_manager.HostState],
) -> dict[str, in_flight_instances.Place]:
    """Return the places of members as the requests say that place them."""
    nodes = {one.uuid: destinations[one.uuid] for one in members if one.uuid in destinations}
    host_of = {state.nodename: state.host for state in states} if nodes else {}
    return {uuid: (host_of.get(node, node), node) for uuid, node in nodes.items()}


def _down(
    context: nova_context.RequestContext,
    records: member_records.GroupRecords,
    states: Sequence[host_manager.HostState],
    some: Sequence[Sequence[in_flight_instances.Place]],
) -> Collection[str]:
    """Return those of the service hosts of some places on which an instance cannot stay."""
    # HostStates are of hosts that are up.
    unsure = {host for places in some for host, _ in places} - {state.host for state in states}
    try:
        down = member_records.down_hosts(context, unsure, with_disabled=records.is_move)
    except databases.OUTAGES as error:
        records.problems.append(databases.api_problem(error))
        return ()
    records.problems.extend(down.problems)
    return down.rows
