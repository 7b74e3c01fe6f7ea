"""All instances that hold room on hosts, of every project, read from Nova in bulk."""

import datetime
import itertools
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from nova import context as nova_context
from nova.conf import CONF
from nova.scheduler import host_manager

from hpc_sched.nova_glue.io import databases
from hpc_sched.nova_glue.read.instances import in_flight_instances, request_instances
from hpc_sched.nova_glue.read.instances.placed_instance import (
    CellInstances,
    PlacedInstance,
    in_cell,
    other_sides,
)


@dataclass(frozen=True, slots=True)
class HostInstances:
    """The instances on each host when a request was first seen, without the request's own."""

    at: Mapping[tuple[str, str | None], list[PlacedInstance]]  # by host and nodename
    reservation_id: str | None = None  # of the request's own instances
    is_move: bool = False  # the request's instance exists in a cell already
    # Uuids of the cells that did not answer; their instances are those of an earlier read.
    down_cells: frozenset[str] = frozenset()
    problems: tuple[str, ...] = ()  # what could not be read
    in_flight_unknown: str | None = None  # reason why instances in flight may be missing
    # Uuid to host and nodename, by Placement.
    in_flight: Mapping[str, tuple[str, str | None]] = field(default_factory=dict)

    def on(self, state: host_manager.HostState) -> list[PlacedInstance]:
        """Return the instances on a host: with its nodename, and without any."""
        with_node = self.at.get((state.host, state.nodename), [])
        without_node = self.at.get((state.host, None))
        return with_node + without_node if without_node else with_node


@dataclass(frozen=True, slots=True)
class AllInstances:
    """The instances on all hosts as one read has found them, for several requests."""

    instances: Sequence[PlacedInstance]  # on hosts; in flight, host "" and the nodename
    cells: Mapping[str, CellInstances]  # by uuid, those of down cells as they were read before
    # Instances in cells, and those that are being created, to the reservation id of their request.
    in_cells: Mapping[str, str | None]
    being_created: Mapping[str, str | None]
    awaiting: Sequence[PlacedInstance]  # a host, newest first
    looked_up: frozenset[str] = frozenset()  # those of them that Placement was asked about
    look_up_problem: str | None = None
    down_cells: frozenset[str] = frozenset()
    problems: tuple[str, ...] = ()
    unlisted: str | None = None  # reason why instances that are being created are not known

    def seen_by(self, own: str, states: Sequence[host_manager.HostState]) -> HostInstances:
        """Return the instances without those of one request. O(instances + HostStates).

        :param own: uuid of the instance that is scheduled
        :param states: of the hosts that may hold instances in flight
        """
        made_with = self.being_created.get(own)
        own_creates = {
            uuid
            for uuid, reservation in self.being_created.items()
            if uuid == own or (made_with and reservation == made_with)
        } | {own}
        host_of: dict[str, str] | None = None
        at: dict[tuple[str, str | None], list[PlacedInstance]] = {}
        in_flight = {}
        for vm in self.instances:
            if vm.uuid in own_creates:
                continue
            if not vm.host:
                host_of = host_of or {state.nodename: state.host for state in states}
                host = host_of.get(vm.nodename or "", vm.nodename or "")
                vm = vm._replace(host=host, in_flight=True)
                in_flight[vm.uuid] = host, vm.nodename
            at.setdefault((vm.host, vm.nodename), []).append(vm)
        problem, unknown = self._missed(own_creates)
        return HostInstances(
            at,
            made_with or self.in_cells.get(own),
            own in self.in_cells,
            self.down_cells,
            (*self.problems, *([problem] if problem else [])),
            unknown,
            in_flight,
        )

    def _missed(self, own_creates: Collection[str]) -> tuple[str | None, str | None]:
        """Return the problem of look-ups, and the reason why instances in flight may be missing.

        :param own_creates: the instances of the request itself
        """
        missed = [
            vm
            for vm in self.awaiting
            if vm.uuid not in self.looked_up and vm.uuid not in own_creates
        ]
        most = CONF.hpc_sched.in_flight_lookups
        if not missed or not most:
            return None, self.unlisted
        problem = self.look_up_problem or f"more than in_flight_lookups={most} VMs in flight"
        oldest = databases.oldest_build_request()
        may_miss = any(vm.since and vm.since >= oldest for vm in missed)
        return problem, self.unlisted or (problem if may_miss else None)


def read(
    context: nova_context.RequestContext,
    owns: Sequence[str],
    states: Sequence[host_manager.HostState],
    before: AllInstances | None = None,
) -> AllInstances:
    """Return all instances on hosts or in flight, for some requests.

    Two queries in the API database and one in each cell; one more in a cell with migrations, and in
    the API database while a resize has not reached its destination; look-ups in Placement as
    :func:`in_flight_instances.places_of` says, ``in_flight_lookups`` for each request at most.

    An instance that migrates, or waits for its resize to be confirmed, is on both, or twice on one.

    :param owns: uuids of the scheduled instances, one a request; without any nothing is looked up
    :param states: of one of the requests
    :param before: an earlier read, for cells that do not answer
    :raises exceptions.UnansweredError: if the API database has never listed the cells
    """
    own_uuids, problems = sorted(set(owns))[: databases.MAX_UUIDS], list[str]()
    requested, answers, unlisted = _answers(context, own_uuids, problems)
    known = before.cells if before is not None else {}
    cells = {found.cell_uuid: found for found in answers.rows}
    cells |= {uuid: known[uuid] for uuid in answers.down_uuids & known.keys()}
    vms = [vm for found in cells.values() for vm in found.instances]
    moves = [row for found in cells.values() for row in found.migrating]
    in_cells = {vm.uuid: vm.reservation_id for vm in vms}
    # Instances may have been created in a cell between the two reads.
    requested = [vm for vm in requested if vm.uuid not in in_cells]
    being_created = {vm.uuid: vm.reservation_id for vm in requested}
    lost = before if answers.problems or unlisted is not None else None
    carried = _carried(lost, in_cells.keys() | being_created.keys()) if lost is not None else {}
    there = [*vms, *other_sides(context, moves, problems)]
    awaiting = [*requested, *carried.values(), *(vm for vm in there if not vm.host)]
    # The order of look-ups: the oldest have mostly failed.
    awaiting.sort(key=lambda vm: (vm.since or datetime.datetime.min, vm.uuid), reverse=True)
    on_hosts, down_cells = [vm for vm in there if vm.host], frozenset(answers.down_uuids)
    made = AllInstances(on_hosts, cells, in_cells, being_created, awaiting, down_cells=down_cells)
    made = replace(made, problems=tuple(problems), unlisted=unlisted)
    return _with_coming(context, made, carried, own_uuids, states)


def _with_coming(
    context: nova_context.RequestContext,
    made: AllInstances,
    carried: Mapping[str, PlacedInstance],
    owns: Sequence[str],
    states: Sequence[host_manager.HostState],
) -> AllInstances:
    """Return the instances with those in flight that have a host in Placement.

    :param carried: what awaited a host before, by uuid
    """
    wanted = _to_look_up(made.awaiting, made.being_created, owns)
    moving = {vm.uuid: vm.moves_from for vm in made.awaiting if vm.moves_from}
    found = in_flight_instances.places_of(context, wanted, states, moving, most=len(wanted))
    # After an evacuation allocations stay on hosts that are down.
    nodes = {uuid: [node for _, node in places] for uuid, places in found.all_places.items()}
    nodes |= {
        uuid: [vm.nodename] for uuid, vm in carried.items() if uuid in found.missed and vm.nodename
    }
    gone = carried.keys() - nodes.keys() - found.missed
    left = [vm for vm in made.awaiting if vm.uuid not in gone]
    coming = [vm._replace(nodename=node) for vm in left for node in nodes.get(vm.uuid, ())]
    return replace(
        made,
        instances=[*made.instances, *coming],
        awaiting=left,
        looked_up=frozenset(wanted) - found.missed,
        look_up_problem=found.problem,
    )


def _answers(
    context: nova_context.RequestContext, owns: Sequence[str], problems: list[str]
) -> tuple[
    list[PlacedInstance],
    databases.CellAnswers[CellInstances],
    str | None,
]:
    """Return the instances that are being created, those in cells, and why the former are not read.

    Adds what could not be read to the problems.
    """
    unlisted, requested, outage = None, list[PlacedInstance](), None
    try:
        requested = request_instances.being_created(context, owns, problems)
    except databases.OUTAGES as error:
        outage, unlisted = error, databases.api_problem(error)
        problems.append(unlisted)
    try:
        answers = databases.read_cells(context, None, lambda cell, _: [in_cell(cell, owns)])
    except databases.OUTAGES as error:
        # The first error says more than that of a source that is left alone since.
        raise outage or error from None
    problems += answers.problems
    return requested, answers, unlisted


def _carried(before: AllInstances, known: Collection[str]) -> dict[str, PlacedInstance]:
    """Return instances that awaited a host before, and may have one in a cell that is silent now.

    By uuid, with the nodename if Placement had one.
    """
    places = {vm.uuid: vm.nodename for vm in before.instances if not vm.host}
    return {
        vm.uuid: vm._replace(nodename=places.get(vm.uuid))
        for vm in before.awaiting
        if vm.uuid not in known
    }


def _to_look_up(
    awaiting: Iterable[PlacedInstance],
    being_created: Mapping[str, str | None],
    owns: Sequence[str],
) -> list[str]:
    """Return the instances that any request looks up: not its own, and the newest of the others."""
    chosen: set[str] = set()
    for made_with in {being_created.get(own): None for own in owns}:
        others = (
            vm.uuid
            for vm in awaiting
            if made_with is None or being_created.get(vm.uuid) != made_with
        )
        chosen.update(itertools.islice(others, CONF.hpc_sched.in_flight_lookups))
    return [vm.uuid for vm in awaiting if vm.uuid in chosen]
