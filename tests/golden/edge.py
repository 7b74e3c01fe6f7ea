"""The one place where the golden set meets the plugin's modules and stands in for databases.

Whoever moves or renames a module of the plugin follows it here; :mod:`tests.golden.requests` and
what it draws know Nova and plain values alone.
"""

import logging
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest import mock

import nova.conf
import yaml
from nova import objects
from nova.scheduler import host_manager
from nova.scheduler.weights import cpu, ram

import hpc_sched
from hpc_sched import conf
from hpc_sched.core.sharing.cache_interference import Application
from hpc_sched.filters import all_filters
from hpc_sched.nova_glue.claim import abandoned_claims, claim_followup, hold_followup
from hpc_sched.nova_glue.claim.holds import store
from hpc_sched.nova_glue.io import allocations, loaded_topology, placement
from hpc_sched.nova_glue.io.allocations import Answer, Written
from hpc_sched.nova_glue.read.hold import NO_HOLDS
from hpc_sched.nova_glue.read.instances import colocated_instances, group_members, request_instances
from hpc_sched.nova_glue.read.instances.host_instances import HostInstances
from hpc_sched.nova_glue.read.instances.placed_instance import PlacedInstance
from hpc_sched.nova_glue.read.room import host_processors, host_state_room
from hpc_sched.nova_glue.record import landed_record
from hpc_sched.weighers import all_weighers
from tests.functional import states
from tests.golden import trees
from tests.golden.clouds import Host
from tests.golden.scene import Scene
from tests.golden.wanting import Setup

CONF = nova.conf.CONF
GROUP = "hpc_sched"  # of our options in nova.conf
LOGGER = logging.getLogger("hpc_sched")
# What is said once per start, and says nothing of a request.
_AT_START = ("Topology loaded", "Read interference index", f"hpc_sched {hpc_sched.__version__} on")


@contextmanager
def enabled(scene: Scene, folder: Path) -> Iterator[None]:
    """Configure Nova and the plugin as a scene's site has, with its fabric; undo it afterwards."""
    setup = scene.setup
    topology = folder / f"{scene.seed}.yaml"
    topology.write_text(yaml.safe_dump(trees.text_of(scene.fabric)))
    with states.configured(topology):
        named = [f"hpc_sched.weighers.{name}" for name in setup.weighers]
        CONF.set_override("enabled_filters", list(setup.filters), "filter_scheduler")
        CONF.set_override("weight_classes", named, "filter_scheduler")
        CONF.set_override("max_attempts", setup.attempts, "scheduler")
        CONF.set_override("decision_log", str(folder / f"{scene.seed}.jsonl"), GROUP)
        for name, value in setup.options.items():
            CONF.set_override(name, value, GROUP)
        if setup.index:
            index = folder / f"{scene.seed}.csv"
            index.write_text("".join(f"{', '.join(map(str, row))}\n" for row in setup.index))
            CONF.set_override("interference_file", str(index), GROUP)
        conf.check(CONF)
        loaded_topology.load()
        yield


def chains(setup: Setup) -> tuple[list[Any], list[Any]]:
    """Return the filters and the weighers that a site has enabled, in its order."""
    by_name = {made.__name__: made for made in (*all_filters(), *all_weighers())}
    stock = [ram.RAMWeigher(), cpu.CPUWeigher()] if setup.with_stock else []
    filters = [by_name[name]() for name in setup.filters]
    return filters, [*(by_name[name]() for name in setup.weighers), *stock]


@contextmanager
def databases_of(scene: Scene) -> Iterator[None]:
    """Let the databases and Placement say what a scene has, the edge that has no server here."""
    group = group_members.GroupMembership(
        members=Counter(dict(scene.members)),
        queue=scene.queue,
        left=scene.count,
        is_move=scene.is_move,
        problems=scene.problems,
        is_partial=scene.is_partial,
        orphans=scene.orphans,
    )
    occupancy = HostInstances(
        at=_occupants(scene),
        reservation_id=None if scene.group else scene.group_id,
        is_move=scene.is_move,
        down_cells=scene.silent_cells,
        problems=scene.problems,
        in_flight_unknown=scene.in_flight_unknown,
    )
    with (
        mock.patch.object(group_members, "read", return_value=group),
        mock.patch.object(group_members, "is_placed", return_value=scene.is_move),
        mock.patch.object(colocated_instances, "read_hosts", return_value=occupancy),
        mock.patch.object(
            host_state_room, "empty_capacities", lambda demand: _sizes(scene, demand)
        ),
        mock.patch.object(host_processors, "read_processors", return_value=_processors(scene)),
        # Nor is there a Placement: HostStates have the last word.
        mock.patch.object(placement, "_read", return_value=placement.ProviderStocks()),
        mock.patch.object(request_instances, "read", return_value=_created(scene)),
        mock.patch.object(request_instances, "are_others_placed", return_value=False),
        mock.patch.object(allocations, "write", return_value=Written(Answer.DONE)),
        # Threads would log seconds later, among the lines of another case.
        mock.patch.object(landed_record, "follow"),
        mock.patch.object(claim_followup, "follow"),
        mock.patch.object(abandoned_claims.thread, "start"),
        mock.patch.object(store, "read", return_value=NO_HOLDS),
        mock.patch.object(store, "write", return_value=Written(Answer.DONE)),
        mock.patch.object(hold_followup, "follow"),
    ):
        yield


@contextmanager
def listening(folder: Path) -> Iterator[list[str]]:
    """Collect what the plugin logs, from INFO on, without times and names of folders."""
    said: list[str] = []

    class Listener(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            text = record.getMessage().replace(f"{folder}/", "")
            if record.exc_info and record.exc_info[0] is not None:
                text += f" [{record.exc_info[0].__name__}: {record.exc_info[1]}]"
            if not text.startswith(_AT_START):
                said.append(f"{record.levelname} {text}")

    listener, level = Listener(), LOGGER.level
    LOGGER.addHandler(listener)
    LOGGER.setLevel(logging.INFO)
    LOGGER.propagate = False
    try:
        yield said
    finally:
        LOGGER.removeHandler(listener)
        LOGGER.setLevel(level)
        LOGGER.propagate = True


def state_of(host: Host, *, is_offered: bool) -> host_manager.HostState:
    """Return a host as Nova's scheduler sees it.

    :param is_offered: whether Placement's offers are with it, as on newer releases
    """
    vcpus, memory_mb, disk_gb = host.used(with_coming=False)
    state = states.host_state(
        host.host,
        host.node,
        cell_uuid=host.cell,
        vcpus_total=host.vcpus,
        vcpus_used=vcpus,
        total_usable_ram_mb=host.memory_mb,
        free_ram_mb=host.memory_mb - memory_mb,
        total_usable_disk_gb=host.disk_gb,
        disk_mb_used=disk_gb * 1024,
        free_disk_mb=(host.disk_gb - disk_gb) * 1024,
        cpu_info=host.cpu_info,
        num_instances=sum(not vm.in_flight for vm in host.vms),
        aggregates=[
            objects.Aggregate(id=i, name=f"a{i}", hosts=[host.host], metadata=dict(metadata))
            for i, metadata in enumerate(host.metadata)
        ],
    )
    state.allocation_candidates = [{"allocations": {}, "mappings": {}}] if is_offered else []
    return state


def request_of(scene: Scene) -> objects.RequestSpec:
    """Return the request of a scene for its first VM."""
    wanted = scene.wanted
    made = states.spec(
        group="group" if scene.group else None,
        group_policy=wanted.policy or "",
        rules={"max_server_per_host": str(wanted.max_per_host)} if wanted.max_per_host else None,
        count=wanted.count,
        vcpus=wanted.size[0],
        extra_specs=dict(wanted.extra_specs),
        hints=dict(wanted.hints),
        uuid=scene.own[0],
    )
    made.flavor.memory_mb, made.flavor.root_gb = wanted.size[1:]
    if scene.group:
        made.instance_group.uuid = scene.group
        made.instance_group.policy = wanted.policy
    return made


def _created(scene: Scene) -> dict[int, str]:
    """Return the VMs of which there are build requests; a move has none."""
    return {} if scene.is_move else dict(enumerate(scene.own))


def _occupants(scene: Scene) -> Mapping[tuple[str, str | None], list[PlacedInstance]]:
    return {
        host.place: [
            PlacedInstance(
                uuid=f"{host.node}-{i}",
                host=host.host,
                nodename=host.node,
                reservation_id=None,
                type_id=None,
                vcpus=vm.vcpus,
                memory_mb=vm.memory_mb,
                disk_gb=vm.disk_gb,
                in_flight=vm.in_flight,
                application=Application(vm.app_class, vm.name, vm.score, vm.group),
            )
            for i, vm in enumerate(host.vms)
        ]
        for host in scene.hosts.values()
        if host.cell not in scene.silent_cells
    }


def _sizes(scene: Scene, demand: Mapping[str, int]) -> dict[tuple[str, str], int] | None:
    """Return how many VMs every host takes while it has none; None where a cell is silent."""
    if scene.silent_cells:
        return None
    states_ = {node: state_of(host, is_offered=False) for node, host in scene.hosts.items()}
    return {
        (scene.hosts[node].host, node): host_state_room.empty_capacity(state, demand)
        for node, state in states_.items()
    }


def _processors(scene: Scene) -> tuple[dict[str, list[str]], dict[tuple[str, str | None], str]]:
    """Return what databases say of the processors of all hosts, candidates or not."""
    metadata = {
        host.host: [said["hpc:processor"] for said in host.metadata if "hpc:processor" in said]
        for host in scene.hosts.values()
    }
    reported = {host.place: host.cpu_info for host in scene.hosts.values() if host.cpu_info}
    return {host: said for host, said in metadata.items() if said}, reported
