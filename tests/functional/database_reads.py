"""Everything that the plugin reads of Nova's databases, with what each read must return."""

from __future__ import annotations

import functools
import json
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from nova import context as nova_context
from nova import objects
from nova.compute import task_states, vm_states

from hpc_sched.core.sharing.cache_interference import Application
from hpc_sched.nova_glue.claim import group_turns
from hpc_sched.nova_glue.io import aggregates_driver, databases
from hpc_sched.nova_glue.read import request_spec
from hpc_sched.nova_glue.read.instances import (
    group_members,
    host_instances,
    instance_applications,
    instances_without_cell,
    member_records,
    request_instances,
)
from hpc_sched.nova_glue.read.instances.placed_instance import PlacedInstance
from hpc_sched.nova_glue.read.room import host_processors, host_state_room
from hpc_sched.status.checks import app_classes
from hpc_sched.status.inspected_cloud import InspectedCloud
from tests.functional.claims import request
from tests.functional.engines import CELLS, Databases
from tests.functional.population import (
    CPU_INFO,
    FLAVORS,
    GROUP,
    NEW,
    OLD,
    VCPUS,
    VM,
    Population,
    group_uuid,
    hosts_of,
    is_disabled,
    leaves,
    vcpus_of,
)
from tests.functional.population_rows import FORGOTTEN

BIG_TABLES = frozenset(
    {
        "build_requests",
        "compute_nodes",
        "instance_extra",
        "instance_group_member",
        "instance_mappings",
        "instances",
        "migrations",
        "request_specs",
        "services",
    }
)


@dataclass(frozen=True)
class Cloud:
    """The databases and what has been written there."""

    databases: Databases
    population: Population

    @property
    def alone(self) -> VM:
        """A VM of a request of many without a server group."""
        return next(
            vm for vm in self.population.vms if vm.is_there and not (vm.group or vm.other_flavor)
        )

    def cell_ids(self, vms: list[VM]) -> dict[int, list[str]]:
        """Return uuids by the id of their cell."""
        found: dict[int, list[str]] = {}
        for vm in vms:
            if vm.cell is not None:
                found.setdefault(self.databases.cell_ids[vm.cell], []).append(vm.uuid)
        return found


@dataclass(frozen=True)
class Read:
    """One read of the plugin."""

    ask: Callable[[Cloud], Any]
    truth: Callable[[Cloud], Any]
    api: int = 0  # queries of the API database, that for the cells included
    each_cell: int = 0  # queries of each cell
    cells: tuple[str, ...] = CELLS  # that are asked
    # Tables read from end to end by design: every row is wanted, or nearly so.
    whole: frozenset[str] = field(default_factory=frozenset)
    is_small: bool = False  # wants so few rows that an index always pays

    @property
    def queries(self) -> dict[str, int]:
        """Queries by database, those without any left out."""
        counts = {"api": self.api} | dict.fromkeys(self.cells, self.each_cell)
        return {part: count for part, count in counts.items() if count}


def _admin() -> nova_context.RequestContext:
    return nova_context.get_admin_context()


def _api_members(group: str) -> Callable[[Cloud], Any]:
    def ask(_: Cloud) -> Any:
        return _known(member_records.api_members(_admin(), group_uuid(group), ()))

    return ask


def _named_vms(group: str) -> Callable[[Cloud], Any]:
    def ask(on: Cloud) -> Any:
        uuids = [vm.uuid for vm in on.population.by_group[group]]
        return _known(member_records.api_members(_admin(), None, uuids))

    return ask


def _known(vms: list[member_records.ApiMember]) -> set[tuple[Any, ...]]:
    assert len({vm.uuid for vm in vms}) == len(vms)
    return {(vm.uuid, vm.cell_id, vm.build_request is not None, vm.orphan) for vm in vms}


def _true_group(group: str) -> Callable[[Cloud], Any]:
    def truth(on: Cloud) -> Any:
        return {
            (
                vm.uuid,
                on.databases.cell_ids[vm.cell] if vm.cell else None,
                vm.build_request is not None,
                vm.build_request is not None and vm.build_request < on.population.now,
            )
            for vm in on.population.by_group[group]
        }

    return truth


def _cell_members(group: str) -> Callable[[Cloud], Any]:
    def ask(on: Cloud) -> Any:
        by_cell = on.cell_ids(on.population.by_group[group])
        return _placed(member_records.cell_members(_admin(), by_cell))

    return ask


def _placed(answers: databases.CellAnswers[member_records.CellMember]) -> set[tuple[Any, ...]]:
    assert not answers.down
    assert len({vm.uuid for vm in answers.rows}) == len(answers.rows)
    return {(vm.uuid, vm.host, vm.nodename, vm.building) for vm in answers.rows}


def _true_places(vms: list[VM]) -> set[tuple[Any, ...]]:
    return {
        (vm.uuid, vm.host, vm.host, vm.awaits_host)
        for vm in vms
        if vm.cell in CELLS and not vm.deleted
    }


def _siblings(on: Cloud) -> Any:
    vm = on.alone
    cell = on.databases.cell_ids[vm.cell or ""]
    return _placed(member_records.siblings(_admin(), vm.uuid, cell))


def _true_siblings(on: Cloud) -> Any:
    vms = [vm for vm in on.population.vms if vm.cell == on.alone.cell]
    return _true_places([vm for vm in vms if vm.reservation == on.alone.reservation])


def request_of(group: str, uuid: str | None = None) -> request_spec.RequestedGroup:
    """Return what the scheduler knows of a request for more VMs of a server group."""
    spec = request(group=group_uuid(group), policy="soft-anti-affinity", count=4, uuid=uuid)
    found = request_spec.from_spec(spec, ("leaf",))
    assert found is not None
    return found


def _group(group: str) -> Callable[[Cloud], Any]:
    def ask(on: Cloud) -> Any:
        vms = on.population.by_group[group]
        own = next((vm.uuid for vm in vms if _waits(on, vm)), None)
        look_up = functools.partial(group_turns.turn_of(None).look_up, anew=True)
        found = group_members.read(
            request_of(group, own),
            (),
            look_up,
        )
        assert found.problems == ()
        queue = set(found.queue) - (set() if own else {found.queue[0]})
        return found.members, queue, found.orphans, found.cells, found.is_move

    return ask


def _true_members(group: str) -> Callable[[Cloud], Any]:
    def truth(on: Cloud) -> Any:
        vms = on.population.by_group[group]
        orphans = [vm for vm in vms if vm.cell is None and not _waits(on, vm)]
        queue = {vm.uuid for vm in vms if vm.cell is None or _follows(vm)}
        cells = frozenset(on.cell_ids(vms))
        return on.population.members(group), queue, len(orphans), cells, False

    return truth


def _follows(vm: VM) -> bool:
    """True if a VM without a host is shelved, or building: it will need a place."""
    if vm.host is not None or vm.deleted:
        return False
    is_shelved = vm.vm_state == vm_states.SHELVED_OFFLOADED
    return is_shelved or vm.task_state == task_states.SPAWNING


def _waits(on: Cloud, vm: VM) -> bool:
    return vm.build_request is not None and vm.build_request >= on.population.now


def _occupied(on: Cloud) -> Any:
    instance_applications.cache = instance_applications.ApplicationCache()
    return occupants(on, host_instances.read(_admin(), [on.alone.uuid], ()))


def occupants(on: Cloud, read: host_instances.AllInstances) -> Any:
    """Return who is where as one VM sees it, whether that moves, and its request."""
    found = read.seen_by(on.alone.uuid, ())
    assert found.problems == ()
    everyone = Counter(
        (vm.uuid, vm.host, vm.nodename, vm.vcpus, vm.reservation_id)
        for here in found.at.values()
        for vm in here
    )
    return everyone, found.is_move, found.reservation_id


def _true_occupied(on: Cloud) -> Any:
    found = Counter[tuple[Any, ...]]()
    for vm in on.population.vms:
        if vm.is_there and vm.uuid != on.alone.uuid:
            found[vm.uuid, vm.host, vm.host, VCPUS[vm.flavor], vm.reservation] += 1
        other = vm.moves_to or vm.moves_from
        if other and vm.other_flavor:
            found[vm.uuid, other, other, VCPUS[vm.other_flavor], vm.reservation] += 1
    return found, True, on.alone.reservation


def _applications(limit: int | None) -> Callable[[Cloud], Any]:
    """Return what asks for the applications of all VMs, or of a few as after a boot."""

    def ask(on: Cloud) -> Any:
        those = [
            PlacedInstance(vm.uuid, vm.host or "", vm.host, vm.reservation, None, 1, 1, 1)
            for vm in _those(on, limit)
        ]
        instance_applications.cache = instance_applications.ApplicationCache()
        found, problems = instance_applications.read(_admin(), those)
        assert problems == ()
        running: dict[tuple[str, str | None], Counter[Application | None]] = {}
        for vm in found:
            running.setdefault((vm.host, vm.nodename), Counter())[vm.application] += 1
        return running

    return ask


def _true_applications(limit: int | None) -> Callable[[Cloud], Any]:
    def truth(on: Cloud) -> Any:
        found: dict[tuple[str | None, str | None], Counter[Application]] = {}
        for vm in _those(on, limit):
            said = FLAVORS[vm.flavor]
            application = Application(
                said.get("hpc:app_class", "sync" if vm.group else "none"),
                said.get("hpc:app_name"),
                float(said.get("hpc:cache_score", 0)),
                group_uuid(vm.group) if vm.group else vm.reservation,
            )
            found.setdefault((vm.host, vm.host), Counter())[application] += 1
        return found

    return truth


def _those(on: Cloud, limit: int | None) -> list[VM]:
    return [vm for vm in on.population.vms if vm.is_there][-limit if limit else None :]


def _processors(_: Cloud) -> Any:
    places = [(host, host) for cell in CELLS for host in hosts_of(cell)[90:110]]
    cells = [2, 3]
    return host_processors.read_processors(places, cells)


def _true_processors(_: Cloud) -> Any:
    listed = [(cell, host) for cell in CELLS for host in hosts_of(cell)[90:110]]
    stated = {h: [f"type-{cell}"] for cell, h in listed if h in hosts_of(cell)[:100]}
    return stated, {(h, h): json.dumps(CPU_INFO[h[0]]) for _, h in listed}


def _sizes(_: Cloud) -> Any:
    return host_state_room.empty_capacities({"VCPU": 16})


def _true_sizes(_: Cloud) -> Any:
    return {(host, host): vcpus_of(host) // 16 for cell in CELLS for host in hosts_of(cell)}


def _aggregates(_: Cloud) -> Any:
    read = aggregates_driver.AggregatesDriver().read()
    return {found.name: (found.hosts, dict(found.metadata)) for found in read}


def _true_aggregates(_: Cloud) -> Any:
    found = {leaf: (tuple(hosts), {"hpc:leaf": leaf}) for leaf, hosts in leaves().items()}
    for cell in CELLS:
        said = {"hpc:processor": f"type-{cell}"}
        found[f"cpu-{cell}"] = (tuple(hosts_of(cell)[:100]), said)
    return found


def _computes(_: Cloud) -> Any:
    found = InspectedCloud().computes()
    assert not found.problems
    return {(node.host, node.nodename, node.enabled) for node in found.rows}


def _true_computes(_: Cloud) -> Any:
    return {(host, host, not is_disabled(host)) for cell in CELLS for host in hosts_of(cell)}


def _server_groups(_: Cloud) -> Any:
    read = InspectedCloud().from_database("server groups", app_classes.read_groups)
    return {(found.name, found.policy, found.members, found.classed) for found in read}


def _true_server_groups(on: Cloud) -> Any:
    found = set()
    for name, vms in on.population.by_group.items():
        alive = [vm for vm in vms if not vm.deleted]
        classed = [vm for vm in alive if "hpc:app_class" in FLAVORS[vm.flavor]]
        found.add((name, "soft-anti-affinity", len(alive), len(classed)))
        found.add((f"{OLD}{name}", "soft-anti-affinity", 0, 0))
    return found


def _flavors(_: Cloud) -> Any:
    return sorted(InspectedCloud().from_database("flavors", app_classes.read_flavors))


def _true_flavors(_: Cloud) -> Any:
    return sorted(
        (key, value, name)
        for name, extra_specs in FLAVORS.items()
        for key, value in extra_specs.items()
        if key.startswith("hpc:")
    )


def _requested(on: Cloud, count: int | None) -> Any:
    vms = _coming(on)
    return request_instances.read(_admin(), vms[-1].uuid, count or len(vms))


def _coming(on: Cloud) -> list[VM]:
    return [vm for vm in on.population.vms if vm.reservation == NEW]


def _being_placed(on: Cloud) -> list[VM]:
    return [vm for vm in on.population.vms if _waits(on, vm)]


def _sixteen(on: Cloud) -> list[VM]:
    """Return VMs of which half are being placed, in the order of their uuids."""
    placed = [vm for vm in on.population.vms if vm.host][:8]
    return sorted([*placed, *_being_placed(on)[:8]], key=lambda vm: vm.uuid)


def _is_placed(on: Cloud) -> Any:
    waiting = next(vm for vm in on.population.vms if vm.cell is None)
    return group_members.is_placed(on.alone.uuid), group_members.is_placed(waiting.uuid)


def _newest_without_cell(_: Cloud) -> Any:
    found = instances_without_cell.read(_admin())
    assert [one.number for one in found] == sorted((one.number for one in found), reverse=True)
    return {(one.uuid, one.is_in_cell0, one.has_build_request) for one in found}


def _true_newest_without_cell(on: Cloud) -> Any:
    # The newest mappings are the last copies of rows, without build requests.
    newest = on.population.vms[-instances_without_cell.WINDOW :]
    return {
        (f"{vm.uuid[:30]}{FORGOTTEN - 1:06}", vm.cell is not None, False)
        for vm in newest
        if vm.cell in (None, "cell0")
    }


def _consumers_without_cell(on: Cloud) -> Any:
    found = instances_without_cell.of(_admin(), [*_some_consumers(on), group_uuid("no instance")])
    assert len({one.uuid for one in found}) == len(found)
    return {(one.uuid, one.is_in_cell0, one.has_build_request, one.number > 0) for one in found}


def _true_consumers_without_cell(on: Cloud) -> Any:
    vms = {vm.uuid: vm for vm in on.population.vms}
    found = {
        (uuid, vm.cell is not None, vm.build_request is not None, True)
        for uuid in _some_consumers(on)
        if (vm := vms[uuid]).cell in (None, "cell0")
    }
    return found | {(group_uuid("no instance"), False, False, False)}


def _some_consumers(on: Cloud) -> list[str]:
    vms = on.population.vms
    odd = [vm.uuid for vm in vms if vm.cell in (None, "cell0")]
    return [*odd[::20], *(vm.uuid for vm in vms if vm.host)][:300]


READS: Mapping[str, Read] = {
    f"the {GROUP} VMs of a group in both cells": Read(
        _api_members("wide"), _true_group("wide"), api=1
    ),
    "the VMs of a group of 16": Read(
        _api_members("small7"), _true_group("small7"), api=1, is_small=True
    ),
    f"{GROUP} VMs by name": Read(
        _named_vms("wide"),
        _true_group("wide"),
        api=1,
        # No more rows than VMs are named.
        whole=frozenset({"build_requests"}),
    ),
    "16 VMs by name": Read(_named_vms("small7"), _true_group("small7"), api=1, is_small=True),
    f"places of {GROUP} VMs in both cells": Read(
        _cell_members("wide"),
        lambda on: _true_places(on.population.by_group["wide"]),
        api=1,
        each_cell=1,
    ),
    f"places of {GROUP} VMs in one cell": Read(
        _cell_members("narrow"),
        lambda on: _true_places(on.population.by_group["narrow"]),
        api=1,
        each_cell=1,
        cells=("cell1",),
    ),
    f"places of {GROUP} VMs in every state": Read(
        _cell_members("mixed"),
        lambda on: _true_places(on.population.by_group["mixed"]),
        api=1,
        each_cell=1,
    ),
    "the VMs of one request": Read(
        _siblings, _true_siblings, api=1, each_cell=1, cells=("cell1",), is_small=True
    ),
    f"a group of {GROUP} as the scheduler sees it": Read(
        # One for the launches of those that are being placed.
        _group("wide"),
        _true_members("wide"),
        api=3,
        each_cell=1,
    ),
    "a group in every state as the scheduler sees it": Read(
        _group("mixed"), _true_members("mixed"), api=3, each_cell=1
    ),
    f"a group of which {GROUP} VMs are to be placed": Read(
        _group("coming"),
        _true_members("coming"),
        api=2,
        cells=(),
        # Half of all rows are wanted, by their uuids.
        whole=frozenset({"build_requests"}),
    ),
    "a group of 16 as the scheduler sees it": Read(
        _group("small7"), _true_members("small7"), api=2, each_cell=1, is_small=True
    ),
    "whether two VMs exist": Read(_is_placed, lambda _: (True, False), api=2, is_small=True),
    f"the {GROUP} VMs of a request, to claim them": Read(
        lambda on: _requested(on, None),
        lambda on: {number: vm.uuid for number, vm in enumerate(_coming(on))},
        api=2,
        # All are of one project here, by which Nova's schema has an index.
        whole=frozenset({"build_requests"}),
    ),
    "the only VM of a request, to claim it": Read(
        lambda on: _requested(on, 1),
        lambda on: {0: _coming(on)[-1].uuid},
        api=1,
        is_small=True,
    ),
    "whether VMs of other requests are being placed": Read(
        lambda on: [
            request_instances.are_others_placed(_admin(), {vm.uuid for vm in own})
            for own in (_coming(on), _being_placed(on))
        ],
        lambda on: [len(_being_placed(on)) > len(_coming(on)), False],
        api=2,
        # As many as are asked for, and one more.
        whole=frozenset({"build_requests"}),
    ),
    "the requests of those of 16 VMs that are being placed": Read(
        lambda on: request_instances.requests_of(_admin(), [vm.uuid for vm in _sixteen(on)]),
        lambda on: {vm.uuid: vm.reservation for vm in _sixteen(on) if _waits(on, vm)},
        api=1,
        is_small=True,
    ),
    # In both a build request may be looked for in each row of the few that there are.
    "the newest instances without a cell": Read(
        _newest_without_cell,
        _true_newest_without_cell,
        api=1,
        whole=frozenset({"build_requests"}),
        is_small=True,
    ),
    "which of some consumers are in no cell": Read(
        _consumers_without_cell,
        _true_consumers_without_cell,
        api=2,
        whole=frozenset({"build_requests"}),
        is_small=True,
    ),
    "every VM on every host": Read(
        _occupied,
        _true_occupied,
        # Build requests, cells, the flavors that resizes lead to; what they run, and cells again.
        api=5,
        each_cell=3,  # VMs, moves, and flavors
        # All VMs that run are wanted with their requests, and all build requests there are.
        whole=frozenset(
            {"instances", "instance_extra", "instance_mappings", "request_specs", "build_requests"}
        ),
    ),
    "what all VMs run": Read(
        _applications(None),
        _true_applications(None),
        api=2,
        each_cell=1,
        # More than can be listed: all requests and flavors but those of deleted VMs.
        whole=frozenset({"instances", "instance_extra", "instance_mappings", "request_specs"}),
    ),
    "what 1,000 VMs run": Read(_applications(1000), _true_applications(1000), api=2, each_cell=1),
    "what 16 VMs run": Read(
        _applications(16), _true_applications(16), api=2, each_cell=1, is_small=True
    ),
    "processors of 40 hosts": Read(_processors, _true_processors, api=2, each_cell=1),
    "sizes of all hosts": Read(
        _sizes, _true_sizes, api=1, each_cell=1, whole=frozenset({"compute_nodes"})
    ),
    "the fabric in aggregates": Read(_aggregates, _true_aggregates, api=2),
    "status: all computes": Read(
        _computes,
        _true_computes,
        api=1,
        each_cell=1,
        whole=frozenset({"compute_nodes", "services"}),
    ),
    "status: all server groups": Read(
        _server_groups,
        _true_server_groups,
        api=2,
        # Every member of every group is counted, and every request of one looked through.
        whole=frozenset({"instance_group_member", "instance_mappings", "request_specs"}),
    ),
    "status: flavors": Read(_flavors, _true_flavors, api=1),
    "status: host aggregates": Read(
        lambda _: {
            found.name: tuple(sorted(found.hosts))
            for found in InspectedCloud().from_database(
                "host aggregates", objects.AggregateList.get_all
            )
        },
        lambda on: (
            {name: hosts_ for name, (hosts_, _) in _true_aggregates(on).items()}
            | {f"zone{n}": tuple(hosts_of("cell1")[n : n + 5]) for n in range(50)}
        ),
        api=1,
    ),
}
