"""Nova in memory: schedulers, and what API, conductor and computes do before and after them.

Real are RequestSpecs and HostStates, the scheduler's loop with claims, filters and weighers, and
the report client; rows and Placement are in memory. The fabric::

              spine
            /       \\
         leaf1      leaf2
         h1 h2      h3 h4
"""

from __future__ import annotations

import functools
import types
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from unittest import mock

import nova.conf
from nova import context as nova_context
from nova import exception, objects
from nova.objects import request_spec  # noqa: F401 - the modules of the plugin need its class
from nova.scheduler import host_manager, manager
from nova.scheduler import utils as scheduler_utils
from nova.scheduler.client import report
from oslo_versionedobjects.fields import CoercedCollectionMixin

from hpc_sched import clock, conf
from hpc_sched.nova_glue.claim import (
    abandoned_claims,
    claim_followup,
    group_turns,
    hold_followup,
    overbooking,
)
from hpc_sched.nova_glue.claim.holds import hold_ends
from hpc_sched.nova_glue.io import loaded_topology
from hpc_sched.nova_glue.read.room import compared_hosts
from hpc_sched.nova_glue.record import landed_record
from tests.functional.trees import write_tree
from tests.protocol import nova_rows
from tests.protocol.actors import Call, Stage, StageClock
from tests.protocol.network import Network
from tests.protocol.nova_rows import CELL, CELL0, NovaRows
from tests.protocol.placement_model import PlacementModel, Provider
from tests.turned_clock import own_moments

CONF = nova.conf.CONF

TREE = {"spine": {"leaf1": ["h1", "h2"], "leaf2": ["h3", "h4"]}}
HOSTS = ("h1", "h2", "h3", "h4")
LEAF_OF = {host: leaf for leaf, hosts in TREE["spine"].items() for host in hosts}
DEMAND = {"VCPU": 1, "MEMORY_MB": 64}
PLENTY = 1 << 16
_CANDIDATES = "/allocation_candidates?resources=VCPU%3A1%2CMEMORY_MB%3A64"

objects.register_all()


@functools.cache
def uuid_of(name: str) -> str:
    """Return the uuid of a VM, host, group or consumer: VMs sort as their names do."""
    return f"{name.encode().hex():0<8}-0000-4000-8000-000000000000"


@functools.cache
def name_of(uuid: str) -> str:
    """Return what a uuid stands for."""
    return bytes.fromhex(uuid[:8]).rstrip(b"\0").decode()


@dataclass(eq=False)
class VM:
    """An instance, as its user sees it."""

    uuid: str
    group: str | None
    constraint: Mapping[str, str]
    reservation: str
    state: str = "scheduling"  # active, error, deleted
    host: str | None = None
    alternates: Sequence[objects.Selection] = ()

    @property
    def name(self) -> str:
        """Its name."""
        return name_of(self.uuid)


class Scheduler(manager.SchedulerManager):
    """A process of nova-scheduler: Nova's manager, and the plugin's memory of this process."""

    def __init__(self, name: str) -> None:
        """Load filters and weighers as Nova does; nothing is read."""
        self.name = name
        with (
            mock.patch.object(host_manager.HostManager, "refresh_cells_caches"),
            mock.patch.object(host_manager.HostManager, "_init_aggregates"),
        ):
            self.host_manager = host_manager.HostManager()
        self.forget()

    def forget(self) -> None:
        """Begin anew, as a process that was restarted."""
        self.turns: weakref.WeakValueDictionary[str, Any] = weakref.WeakValueDictionary()
        self.followed: list[Any] = []
        self.examined = abandoned_claims._Memory({})
        self.moves: list[Any] = []  # with holds of their own

    def enter(self) -> None:
        """Let the plugin's modules use the memory of this process."""
        group_turns._turns = self.turns
        claim_followup._followed = self.followed
        abandoned_claims._memory = self.examined
        hold_followup._followed = self.moves

    def _get_all_host_states(self, context: Any, spec: Any, summaries: Any) -> Any:
        return iter(summaries)


@dataclass(eq=False)
class NovaModel:
    """All of a cloud but the calls to Placement, whose fate the test says."""

    rows: NovaRows
    schedulers: Mapping[str, Scheduler]
    placement: PlacementModel = field(default_factory=PlacementModel)
    vms: dict[str, VM] = field(default_factory=dict)
    down: set[str] = field(default_factory=set)  # hosts
    policies: dict[str, str] = field(default_factory=dict)  # of groups

    def begin(self, sizes: Sequence[int], tell: Callable[[Call, Any], str]) -> None:
        """Begin with hosts that take some VMs each.

        :param tell: returns an answer to a call in words
        """
        self.stage = Stage(lambda process: process.enter() if process is not None else None)
        self.network = Network(self.placement, self.stage, tell)
        self.client = report.SchedulerReportClient(adapter=self.network.adapter())
        report.PLACEMENTCLIENT = self.client
        clock.current = StageClock(self.stage)
        compared_hosts.forget_all()
        self.rows.clear()
        for host, size in zip(HOSTS, sizes, strict=True):
            totals = {"VCPU": size, "MEMORY_MB": PLENTY}
            self.placement.providers[uuid_of(host)] = Provider(host, totals)
            self.rows.set_service(host)
        for scheduler in self.schedulers.values():
            scheduler.forget()

    def create(
        self, names: Sequence[str], group: str | None, constraint: Mapping[str, str]
    ) -> list[VM]:
        """Write what nova-api does for the VMs of a request."""
        uuids = [uuid_of(name) for name in names]
        group_uuid = uuid_of(group) if group is not None else None
        self.rows.add_request(uuids, group_uuid)
        made = [VM(uuid, group_uuid, constraint, f"r-{uuids[0]}") for uuid in uuids]
        self.vms.update((vm.name, vm) for vm in made)
        return made

    def schedule(self, scheduler: Scheduler, vms: Sequence[VM]) -> list[Any]:
        """Return the selections for VMs, as the conductor gets them; an actor's."""
        found = self.client.get(_CANDIDATES).json()
        if not found["allocation_requests"]:
            raise exception.NoValidHost(reason="no allocation candidates")
        requests: dict[str, list[Any]] = {}
        for one in found["allocation_requests"]:
            [provider] = one["allocations"]
            if self.placement.providers[provider].name not in self.down:
                requests.setdefault(provider, []).append(one)
        states = [self._state(provider) for provider in requests]
        spec = self._spec(vms)
        try:
            selections: list[Any] = scheduler._schedule(
                nova_context.get_admin_context(),
                spec,
                [vm.uuid for vm in vms],
                requests,
                states,
                "1.36",
                True,
            )
        finally:
            # A RequestSpec is in cycles. Python frees them at a time of its own.
            for value in vars(spec).values():
                if isinstance(value, CoercedCollectionMixin):
                    value._obj = None
        return selections

    def build(self, scheduler: Scheduler, vms: Sequence[VM]) -> None:
        """Place new VMs, as conductor and computes do; an actor's."""
        try:
            selections = self.schedule(scheduler, vms)
        except Exception:
            for vm in vms:
                self.fail(vm)
            raise
        for vm, (chosen, *alternates) in zip(vms, selections, strict=True):
            if not self.rows.has_build_request(vm.uuid):
                self.rows.remove_mapping(vm.uuid)
                self._delete_allocations(vm.uuid)
                continue
            self.rows.remove_build_request(vm.uuid)
            self.rows.add_instance(vm.uuid, vm.reservation, chosen.service_host)
            self.rows.map_to(vm.uuid, CELL)
            vm.state, vm.host, vm.alternates = "active", chosen.service_host, alternates

    def retry(self, vm: VM) -> None:
        """Build a VM on an alternate, after its compute has failed to; an actor's."""
        self._delete_allocations(vm.uuid)
        self.rows.place(vm.uuid, None)
        vm.host = None
        while vm.alternates:
            selection, *vm.alternates = vm.alternates
            if scheduler_utils.claim_resources(
                nova_context.get_admin_context(),
                self.client,
                self._spec([vm]),
                vm.uuid,
                objects.selection.jsonutils.loads(selection.allocation_request),
                allocation_request_version="1.36",
            ):
                vm.host = selection.service_host
                self.rows.place(vm.uuid, vm.host)
                return
        self.fail(vm)

    def delete(self, vm: VM) -> None:
        """Delete a VM; an actor's. While it is scheduled, its build request goes alone."""
        is_scheduled = vm.state == "scheduling"
        vm.state = "deleted"
        self.rows.delete(vm.uuid)
        if not is_scheduled:
            self._delete_allocations(vm.uuid)

    def evacuate(self, scheduler: Scheduler, vm: VM) -> None:
        """Move a VM from a host that is down: it holds both until it is rebuilt; an actor's."""
        source = vm.host
        [[chosen, *_]] = self.schedule(scheduler, [vm])
        self._leave(vm, source, chosen.service_host)

    def migrate(self, scheduler: Scheduler, vm: VM) -> None:
        """Move a VM that runs: a migration holds its source meanwhile; an actor's."""
        context, migration = nova_context.get_admin_context(), uuid_of(f"m{vm.name}")
        self.client.move_allocations(context, vm.uuid, migration)
        try:
            [[chosen, *_]] = self.schedule(scheduler, [vm])
        except Exception:
            self.client.move_allocations(context, migration, vm.uuid)
            raise
        vm.host = chosen.service_host
        self.rows.place(vm.uuid, vm.host)
        self._delete_allocations(migration)

    def unshelve(self, scheduler: Scheduler, vm: VM) -> None:
        """Shelve a VM, and place it again; an actor's."""
        vm.host = None
        self.rows.place(vm.uuid, None)
        self._delete_allocations(vm.uuid)
        [[chosen, *_]] = self.schedule(scheduler, [vm])
        vm.host = chosen.service_host
        self.rows.place(vm.uuid, vm.host)

    def fail(self, vm: VM) -> None:
        """Put a VM into cell0, in ERROR if it was not deleted meanwhile."""
        if vm.state != "deleted":
            vm.state = "error"
        self.rows.remove_build_request(vm.uuid)
        self.rows.map_to(vm.uuid, CELL0)

    def _leave(self, vm: VM, source: str | None, goal: str) -> None:
        """Take what an evacuated VM holds on its source away."""
        context = nova_context.get_admin_context()
        held = self.client.get_allocs_for_consumer(context, vm.uuid)
        if source != goal and source is not None:
            held["allocations"].pop(uuid_of(source), None)
            self.client.put(f"/allocations/{vm.uuid}", held, version="1.28")
        vm.host = goal
        self.rows.place(vm.uuid, goal)

    def _delete_allocations(self, uuid: str) -> None:
        self.client.delete_allocation_for_instance(
            nova_context.get_admin_context(), uuid, force=True
        )

    def _state(self, provider: str) -> host_manager.HostState:
        """Return a HostState as a compute reports it: what its VMs take, not what is claimed."""
        host = self.placement.providers[provider].name
        size = self.placement.providers[provider].totals["VCPU"]
        here = [vm for vm in self.vms.values() if vm.host == host and vm.state == "active"]
        state = host_manager.HostState(host, host, uuid_of("cell"))
        state.uuid = provider
        state.vcpus_total, state.vcpus_used = size, len(here)
        state.total_usable_ram_mb = PLENTY
        state.free_ram_mb = PLENTY - DEMAND["MEMORY_MB"] * len(here)
        state.total_usable_disk_gb, state.free_disk_mb = 1000, 1000 * 1024
        state.num_instances = len(here)
        state.instances = {vm.uuid: objects.Instance(uuid=vm.uuid) for vm in here}
        state.cpu_allocation_ratio = state.ram_allocation_ratio = 1.0
        state.disk_allocation_ratio = 1.0
        return state

    def _spec(self, vms: Sequence[VM]) -> objects.RequestSpec:
        first = vms[0]
        flavor = objects.Flavor(
            vcpus=DEMAND["VCPU"],
            memory_mb=DEMAND["MEMORY_MB"],
            root_gb=0,
            ephemeral_gb=0,
            swap=0,
            extra_specs=dict(first.constraint),
        )
        spec = objects.RequestSpec(
            flavor=flavor,
            num_instances=len(vms),
            instance_uuid=first.uuid,
            scheduler_hints={},
            instance_group=None,
            is_bfv=False,
            image=None,
            requested_resources=[],
            requested_destination=None,
            ignore_hosts=None,
            force_hosts=None,
            force_nodes=None,
            pci_requests=None,
            numa_topology=None,
            project_id="project",
            user_id="user",
        )
        if first.group is not None:
            others = [vm for vm in self.vms.values() if vm.group == first.group]
            spec.instance_group = objects.InstanceGroup(
                uuid=first.group,
                policy=self.policies.get(first.group, "soft-affinity"),
                rules={},
                members=[vm.uuid for vm in others if vm.state != "deleted"],
                hosts=sorted({vm.host for vm in others if vm.host and vm.state == "active"}),
            )
        return spec


@contextmanager
def installed(folder: Path) -> Iterator[Callable[[], NovaModel]]:
    """Let plugin and Nova use clouds in memory; yield what begins one."""
    conf.register_opts(CONF)
    CONF([], default_config_files=[])
    options = {
        ("topology_file", "hpc_sched"): str(write_tree(folder / "topology.yaml", TREE)),
        ("topology_reload_interval", "hpc_sched"): 0,
        ("available_filters", "filter_scheduler"): [
            "nova.scheduler.filters.all_filters",
            "hpc_sched.filters.all_filters",
        ],
        ("enabled_filters", "filter_scheduler"): [
            "ServerGroupAntiAffinityFilter",
            "HPCGroupFilter",
            "HPCRackCapacityFilter",
        ],
        ("weight_classes", "filter_scheduler"): ["hpc_sched.weighers.hop_byte.HopByteWeigher"],
        ("track_instance_changes", "filter_scheduler"): False,
        # Holds have histories of their own, in tests/group_histories.
        ("follower_hold_time", "hpc_sched"): 0,
    }
    for (name, group), value in options.items():
        CONF.set_override(name, value, group)
    rows, before = NovaRows(), (clock.current, report.PLACEMENTCLIENT)
    turns, followed = group_turns._turns, claim_followup._followed
    examined = abandoned_claims._memory
    moves = hold_followup._followed
    try:
        loaded_topology.load()
        with ExitStack() as patches:
            patches.enter_context(nova_rows.installed(rows))
            patches.enter_context(own_moments())
            for module, name in (
                (claim_followup._thread, "start"),
                (claim_followup._thread, "wake"),
                (claim_followup.gc, "collect"),
                (abandoned_claims.thread, "start"),
                (hold_followup._thread, "start"),
                (hold_followup._thread, "wake"),
                (hold_ends._thread, "start"),
                (hold_ends._thread, "wake"),
                (landed_record, "follow"),
                (loaded_topology.watch, "start"),
            ):
                patches.enter_context(mock.patch.object(module, name, _nothing))
            # Here no time passes while others come.
            patches.enter_context(mock.patch.object(overbooking, "SHORT", 0.0))
            # Nova waits for a drawn time before it sends a claim again.
            waits = types.SimpleNamespace(sleep=lambda seconds: clock.current.sleep(seconds))
            patches.enter_context(mock.patch.object(report, "time", waits))
            means = types.SimpleNamespace(uniform=lambda least, most: (least + most) / 2)
            patches.enter_context(mock.patch.object(report, "random", means))
            schedulers = {name: Scheduler(name) for name in ("s1", "s2", "s3")}
            yield lambda: NovaModel(rows, schedulers)
    finally:
        clock.current, report.PLACEMENTCLIENT = before
        group_turns._turns, claim_followup._followed = turns, followed
        abandoned_claims._memory = examined
        hold_followup._followed = moves
        for name, group in options:
            CONF.clear_override(name, group)
        CONF.clear()


def _nothing(*_: Any) -> None:
    """Do nothing. A mock would keep all that it is called with."""
