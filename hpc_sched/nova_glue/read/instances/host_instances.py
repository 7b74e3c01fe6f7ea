"""All instances that hold room on hosts, of every project, read from Nova in bulk."""

import datetime
import itertools
import operator
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from nova import context as nova_context
from nova.conf import CONF
from nova.scheduler import host_manager

from hpc_sched.nova_glue.io import databases
from hpc_sched.nova_glue.read.instances import (
    in_flight_instances,
    instance_applications,
    request_instances,
)
from hpc_sched.nova_glue.read.instances.kept import cell_read, host_vms
from hpc_sched.nova_glue.read.instances.kept.host_vms import HostVMs, Place
from hpc_sched.nova_glue.read.instances.kept.kept_cell import KeptCell
from hpc_sched.nova_glue.read.instances.placed_instance import PlacedInstance, other_sides

_PLACE = operator.attrgetter("host", "nodename")


@dataclass(frozen=True, slots=True)
class HostInstances:
    """The instances on each host when a request was first seen, without the request's own."""

    at: Mapping[Place, Sequence[PlacedInstance]]
    reservation_id: str | None = None  # of the request's own instances
    is_move: bool = False  # the request's instance exists in a cell already
    # Uuids of the cells that did not answer; their instances are those of an earlier read.
    down_cells: frozenset[str] = frozenset()
    problems: tuple[str, ...] = ()  # what could not be read
    in_flight_unknown: str | None = None  # reason why instances in flight may be missing
    # Uuid to host and nodename, by Placement.
    in_flight: Mapping[str, tuple[str, str | None]] = field(default_factory=dict)

    def on(self, state: host_manager.HostState) -> HostVMs:
        """Return the instances on a host: with its nodename, and without any."""
        return self.on_each([state])[0]

    def on_each(self, states: Sequence[host_manager.HostState]) -> list[HostVMs]:
        """Return the instances on each of some hosts. O(hosts)."""
        at = self.at
        found = [at.get(place, host_vms.NONE) for place in map(_PLACE, states)]
        without_node = {place[0]: there for place, there in at.items() if place[1] is None}
        if without_node:
            found = [
                (*there, *without_node.get(state.host, ()))
                for state, there in zip(states, found, strict=True)
            ]
        # What was read of most hosts has been summed up for requests before.
        return [there if isinstance(there, HostVMs) else HostVMs(there) for there in found]


@dataclass(frozen=True, slots=True)
class AllInstances:
    """The instances on all hosts as one read has found them, for several requests."""

    cells: Mapping[str, KeptCell]  # by uuid, those of down cells as they were read before
    at: Mapping[Place, HostVMs]  # the instances of all cells on the hosts of their own records
    options: tuple[Any, ...]  # on which their applications depend
    # Where they migrate from or to; in flight, host "" and the nodename.
    others: Sequence[PlacedInstance]
    # Those that are being created in no cell yet, to the reservation id of their request.
    being_created: Mapping[str, str | None]
    awaiting: Sequence[PlacedInstance]  # a host, newest first
    looked_up: frozenset[str] = frozenset()  # those of them that Placement was asked about
    look_up_problem: str | None = None
    down_cells: frozenset[str] = frozenset()
    problems: tuple[str, ...] = ()
    unlisted: str | None = None  # reason why instances that are being created are not known

    def seen_by(self, own: str, states: Sequence[host_manager.HostState]) -> HostInstances:
        """Return the instances without those of one request. O(hosts), to copy references.

        :param own: uuid of the instance that is scheduled
        :param states: of the hosts that may hold instances in flight
        """
        made_with = self.being_created.get(own)
        own_creates = {
            uuid
            for uuid, reservation in self.being_created.items()
            if uuid == own or (made_with and reservation == made_with)
        } | {own}
        in_cells, (problem, unknown) = self._find(own), self._missed(own_creates)
        host_of: dict[str, str] | None = None
        others, in_flight = list[PlacedInstance](), {}
        for vm in self.others:
            if vm.uuid in own_creates:
                continue
            if not vm.host:
                host_of = host_of or {state.nodename: state.host for state in states}
                host = host_of.get(vm.nodename or "", vm.nodename or "")
                vm = vm._replace(host=host, in_flight=True)
                in_flight[vm.uuid] = host, vm.nodename
            others.append(vm)
        return HostInstances(
            host_vms.corrected(self.at, [vm for vm in in_cells if vm.host], others),
            made_with or next((vm.reservation_id for vm in in_cells), None),
            bool(in_cells),
            self.down_cells,
            (*self.problems, *([problem] if problem else [])),
            unknown,
            in_flight,
        )

    def _find(self, uuid: str) -> list[PlacedInstance]:
        """Return an instance as its cell has it, or none."""
        return [vm for cell in self.cells.values() if (vm := cell.find(uuid)) is not None]

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
    """Return all instances on hosts or in flight with their applications, for some requests.

    Two queries in the API database, those of :func:`cell_read.read` in each cell, and those of
    :func:`instance_applications.read` for instances that are new; one more in the API database
    while a resize has not reached its destination; look-ups in Placement as
    :func:`in_flight_instances.places_of` says, ``in_flight_lookups`` for each request at most.

    An instance that migrates, or waits for its resize to be confirmed, is on both, or twice on one.

    :param owns: uuids of the scheduled instances, one a request; without any nothing is looked up
    :param states: of one of the requests
    :param before: an earlier read, which is corrected; cells that do not answer are as it has them
    :raises exceptions.UnansweredError: if the API database has never listed the cells
    """
    own_uuids, problems = sorted(set(owns))[: databases.MAX_UUIDS], list[str]()
    options = instance_applications.options()
    known = _usable(before, options)
    requested, answers, unlisted = _answers(context, own_uuids, known, problems)
    down_cells = frozenset(answers.down_uuids)
    cells = {cell.uuid: cell for cell in answers.rows}
    cells |= {uuid: cell_read.forget_time(known[uuid]) for uuid in down_cells & known.keys()}
    sides = other_sides(context, [m for c in cells.values() for m in c.migrating], problems)
    # Instances may have been created in a cell between the two reads.
    requested = [vm for vm in requested if not _is_in(cells, vm.uuid)]
    being_created = {vm.uuid: vm.reservation_id for vm in requested}
    lost = before if answers.problems or unlisted is not None else None
    carried = _carried(lost, cells, being_created) if lost is not None else {}
    awaiting = _awaiting(cells, [*requested, *carried.values(), *sides])
    on_hosts = [vm for vm in sides if vm.host]
    made = AllInstances(cells, {}, options, on_hosts, being_created, awaiting)
    made = replace(made, down_cells=down_cells, problems=tuple(problems), unlisted=unlisted)
    made = _with_coming(context, made, carried, own_uuids, states)
    return _with_applications(context, made, known)


def _awaiting(
    cells: Mapping[str, KeptCell], others: Sequence[PlacedInstance]
) -> list[PlacedInstance]:
    """Return the instances that await a host, in the order of look-ups: newest first.

    The oldest have mostly failed.

    :param others: that their cells do not have so; those on hosts are left out
    """
    awaiting = [vm for vm in others if not vm.host]
    awaiting += [vm for cell in cells.values() for vm in cell.awaiting]
    awaiting.sort(key=lambda vm: (vm.since or datetime.datetime.min, vm.uuid), reverse=True)
    return awaiting


def _usable(before: AllInstances | None, options: tuple[Any, ...]) -> Mapping[str, KeptCell]:
    """Return the cells of an earlier read, without applications if options have changed these."""
    if before is None or before.options == options:
        return before.cells if before is not None else {}
    return {uuid: cell.unread() for uuid, cell in before.cells.items()}


def _is_in(cells: Mapping[str, KeptCell], uuid: str) -> bool:
    return any(cell.find(uuid) is not None for cell in cells.values())


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
        others=[*made.others, *coming],
        awaiting=left,
        looked_up=frozenset(wanted) - found.missed,
        look_up_problem=found.problem,
    )


def _with_applications(
    context: nova_context.RequestContext, found: AllInstances, known: Mapping[str, KeptCell]
) -> AllInstances:
    """Return the instances with their applications; those that stayed have theirs already.

    :param known: cells as they were read before: after one was read as a whole, VMs that are gone
        are forgotten
    """
    alive, read = None, found.cells
    if any(uuid not in known or read[uuid].whole_at > known[uuid].whole_at for uuid in read):
        alive = {vm.uuid for vm in found.others}
        alive.update(*(cell.rows for cell in read.values()))
    to_read = {uuid: cell.to_read() for uuid, cell in read.items()}
    made, problems = instance_applications.read(
        context,
        [*itertools.chain.from_iterable(to_read.values()), *found.others],
        alive=alive,
        is_api_down=found.unlisted is not None,
    )
    # An instance may be in two cells for a moment, each time on another host.
    rest, cells = iter(made), dict[str, KeptCell]()
    for uuid, instances in to_read.items():
        read_here = list(itertools.islice(rest, len(instances)))
        cells[uuid] = read[uuid].placed(read_here, instance_applications.is_settled)
    return replace(
        found,
        cells=cells,
        at=host_vms.union([cell.at for cell in cells.values()]),
        others=list(rest),
        problems=(*found.problems, *problems),
    )


def _answers(
    context: nova_context.RequestContext,
    owns: Sequence[str],
    known: Mapping[str, KeptCell],
    problems: list[str],
) -> tuple[list[PlacedInstance], databases.CellAnswers[KeptCell], str | None]:
    """Return the instances that are being created, those in cells, and why the former are not read.

    Adds what could not be read to the problems.

    :param known: cells as they were read before
    """
    unlisted, requested, outage = None, list[PlacedInstance](), None
    try:
        requested = request_instances.being_created(context, owns, problems)
    except databases.OUTAGES as error:
        outage, unlisted = error, databases.api_problem(error)
        problems.append(unlisted)
    try:
        answers = databases.read_cells(
            context, None, lambda cell, _: [cell_read.read(cell, known.get(cell.cell_uuid))]
        )
    except databases.OUTAGES as error:
        # The first error says more than that of a source that is left alone since.
        raise outage or error from None
    problems += answers.problems
    return requested, answers, unlisted


def _carried(
    before: AllInstances, cells: Mapping[str, KeptCell], being_created: Collection[str]
) -> dict[str, PlacedInstance]:
    """Return instances that awaited a host before, and may have one in a cell that is silent now.

    By uuid, with the nodename if Placement had one.
    """
    places = {vm.uuid: vm.nodename for vm in before.others if not vm.host}
    return {
        vm.uuid: vm._replace(nodename=places.get(vm.uuid))
        for vm in before.awaiting
        if vm.uuid not in being_created and not _is_in(cells, vm.uuid)
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
