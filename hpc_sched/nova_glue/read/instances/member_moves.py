"""The members of a group that are being moved, or must be, and where they will be."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from nova import context as nova_context
from nova.scheduler import host_manager

from hpc_sched.nova_glue.io import databases
from hpc_sched.nova_glue.read.instances import in_flight_instances, member_records
from hpc_sched.nova_glue.read.instances.member_records import CellMember


def after_moves(
    context: nova_context.RequestContext,
    records: member_records.GroupRecords,
    states: Sequence[host_manager.HostState],
) -> tuple[list[CellMember], list[CellMember]]:
    """Return the members with a place, at the place they move to, and those that must leave theirs.

    Members on hosts that are down must move, if the instance of the request moves those on disabled
    ones as well. Members that have a place elsewhere already, which is claimed, are there. Look-ups
    in Placement for members that are being moved, as :func:`in_flight_instances.places_of` says;
    one query for the cells and one in each if their places are on hosts that are no candidates.
    """
    members, problems, is_move = records.others, records.problems, records.is_move
    sources = {member.uuid: member.nodename or "" for member in members if member.is_moving}
    looked_up = in_flight_instances.places_of(context, sorted(sources), states, sources)
    found = looked_up.all_places
    unsure = {host for places in found.values() for host, _ in places}
    # HostStates are of hosts that are up.
    unsure -= {state.host for state in states}
    down: databases.CellAnswers[str] = databases.CellAnswers()
    try:
        down = member_records.down_hosts(context, unsure, with_disabled=is_move)
    except databases.OUTAGES as error:
        problems.append(databases.api_problem(error))
    problems += down.problems
    if looked_up.problem:
        problems.append(looked_up.problem)
    placed, leaving = [], []
    for member in members:
        goal = [place for place in found.get(member.uuid, ()) if place[0] not in down.rows]
        if goal:
            placed.append(member._replace(host=goal[0][0], nodename=goal[0][1]))
        elif not member.must_move(is_move=is_move):
            placed.append(member)
        elif member.uuid not in looked_up.missed:
            leaving.append(member)
    return placed, leaving


def with_destinations(
    records: member_records.GroupRecords,
    destinations: Mapping[str, str],
    states: Sequence[host_manager.HostState],
) -> member_records.GroupRecords:
    """Return records in which members that are being placed are there already.

    :param destinations: nodenames by instance
    """
    if destinations.keys().isdisjoint(member.uuid for member in records.others):
        return records
    host_of = {state.nodename: state.host for state in states}

    def placed(member: CellMember) -> CellMember:
        node = destinations.get(member.uuid)
        if node is None:
            return member
        return CellMember(member.uuid, host_of.get(node, node), node, building=False)

    return replace(records, others=list(map(placed, records.others)))
