"""The cloud of a history: hosts, groups, VMs, and Nova's scheduler for them.

Scheduler, report client, RequestSpecs and HostStates are Nova's, rows and Placement in memory, as
in ``tests/protocol``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from nova import context as nova_context
from nova import exception, objects
from nova.scheduler import host_manager
from nova.scheduler.client import report
from oslo_versionedobjects.fields import CoercedCollectionMixin

from hpc_sched import clock
from hpc_sched.nova_glue.read.room import compared_hosts
from tests.group_histories import call_line, holds
from tests.group_histories.fabrics import Fabric
from tests.group_histories.seen_cloud import Rows, SeenCloud
from tests.group_histories.servers import Group, Server
from tests.protocol.actors import Stage, StageClock
from tests.protocol.network import Network
from tests.protocol.nova_model import PLENTY, Scheduler, name_of, uuid_of
from tests.protocol.nova_rows import NovaRows
from tests.protocol.placement_model import PlacementModel, Provider

# A time in seconds since 1970, at which histories begin.
BEGIN = 1_700_000_000.0
METAL = "CUSTOM_BAREMETAL"
_OF_METAL = {f"resources:{name}": "0" for name in ("VCPU", "MEMORY_MB", "DISK_GB")}
OWNER = {"project_id": "project", "user_id": "user"}
_CELL = objects.CellMapping(uuid=uuid_of("cell"), id=1, name="cell")


@dataclass(eq=False)
class GroupCloud(SeenCloud):
    """All of a cloud but the calls to Placement, which a history answers."""

    rows: NovaRows
    schedulers: Mapping[str, Scheduler]
    placement: PlacementModel = field(default_factory=PlacementModel)
    groups: dict[str, Group] = field(default_factory=dict)
    servers: dict[str, Server] = field(default_factory=dict)
    out: dict[str, str] = field(default_factory=dict)  # service to how: forced, dead, ...

    @property
    def now(self) -> float:
        """The time of the plugin's clock, in seconds since 1970."""
        return self.stage.now

    @property
    def allocations(self) -> Mapping[str, Rows]:
        """What each consumer has in Placement."""
        return self.placement.allocations

    def begin(self, fabric: Fabric, sizes: Mapping[str, int]) -> None:
        """Begin with nodes that take some VMs each."""
        self._nodes = {fabric.nodename(node): node for node in sizes}
        self.fabric, self.sizes = fabric, sizes
        self.stage = Stage(lambda process: process.enter())
        self.stage.now = BEGIN
        self.network = Network(self.placement, self.stage, call_line.answer)
        report.PLACEMENTCLIENT = self.client = report.SchedulerReportClient(
            adapter=self.network.adapter()
        )
        clock.current = StageClock(self.stage)
        compared_hosts.forget_all()
        self.rows.clear()
        self.placement.classes.add(METAL)
        self.demand = {METAL: 1} if fabric.is_metal else {"VCPU": 1, "MEMORY_MB": 64}
        for node, size in sizes.items():
            totals = {METAL: 1} if fabric.is_metal else {"VCPU": size, "MEMORY_MB": PLENTY}
            self.placement.providers[uuid_of(node)] = Provider(fabric.nodename(node), totals)
            vcpus = 0 if fabric.is_metal else size
            self.rows.add_node(fabric.service(node), fabric.nodename(node), vcpus)
        for service in {fabric.service(node) for node in sizes}:
            self.rows.set_service(service)
        for scheduler in self.schedulers.values():
            scheduler.forget()
        holds.forget()
        if sum(sizes.values()) % 4:
            holds.prepare(self)

    def pass_time(self, seconds: float) -> None:
        """Let time pass."""
        self.stage.now += seconds

    def provider(self, node: str) -> str:
        """Return the uuid of a node."""
        return uuid_of(node)

    def name_of(self, uuid: str) -> str:
        """Return the name of a VM."""
        return name_of(uuid)

    def node_called(self, nodename: str) -> str:
        """Return the node that Nova calls so."""
        return self._nodes.get(nodename, nodename)

    def save(self, server: Server) -> None:
        """Write the row of a VM in its cell."""
        at = server.node
        self.rows.set_instance(
            server.uuid,
            reservation_id=server.reservation,
            vm_state=server.state,
            task_state=server.task,
            host=None if at is None else self.fabric.service(at),
            node=None if at is None else self.fabric.nodename(at),
            **OWNER,
        )

    def hold(self, consumer: str, nodes: Sequence[str]) -> None:
        """Set the nodes that a consumer holds, as API and computes do."""
        record = self.placement.consumers.get(consumer)
        body = {
            "allocations": {uuid_of(node): {"resources": self.demand} for node in nodes},
            "consumer_generation": None if record is None else record.generation,
            **OWNER,
        }
        if nodes or record is not None:
            answer = self.placement.send("PUT", f"/allocations/{consumer}", body)
            assert answer, answer.text

    def schedule(
        self, scheduler: Scheduler, servers: Sequence[Server], *, ignored: str | None, is_move: bool
    ) -> list[str]:
        """Return the node of each VM; an actor's.

        :param ignored: a node that Nova leaves out with its service
        """
        demand = "%2C".join(f"{name}%3A{amount}" for name, amount in self.demand.items())
        found = self.client.get(f"/allocation_candidates?resources={demand}").json()
        names = {uuid_of(node): node for node in self.sizes}
        requests: dict[str, list[Any]] = {}
        for one in found["allocation_requests"]:
            [provider] = one["allocations"]
            if self.is_up(names[provider]):
                requests.setdefault(provider, []).append(one)
        if not requests:
            raise exception.NoValidHost(reason="no allocation candidates")
        states = [self._state(names[provider]) for provider in requests]
        spec = self._spec(servers, ignored, is_move=is_move)
        uuids = [server.uuid for server in servers]
        context = nova_context.get_admin_context()
        try:
            chosen = scheduler._schedule(context, spec, uuids, requests, states, "1.36", True)
        finally:
            # A RequestSpec is in cycles. Python frees them at a time of its own.
            for value in vars(spec).values():
                if isinstance(value, CoercedCollectionMixin):
                    value._obj = None
        return [names[first.compute_node_uuid] for first, *_ in chosen]

    def _state(self, node: str) -> host_manager.HostState:
        """Return a HostState as a compute reports it: what its VMs take, not what is claimed."""
        service, size = self.fabric.service(node), self.sizes[node]
        servers = [server for server in self.servers.values() if server.is_there]
        number = sum(server.node == node for server in servers)
        used = number + sum(server.source == node for server in servers)
        state = host_manager.HostState(service, self.fabric.nodename(node), uuid_of("cell"))
        state.uuid = uuid_of(node)
        state.num_instances = number
        state.instances = {
            server.uuid: objects.Instance(uuid=server.uuid)
            for server in servers
            if server.node and self.fabric.service(server.node) == service
        }
        if self.fabric.is_metal:
            state.vcpus_total = state.vcpus_used = 0
            state.total_usable_ram_mb = state.free_ram_mb = 0
        else:
            state.vcpus_total, state.vcpus_used = size, used
            state.total_usable_ram_mb, state.free_ram_mb = PLENTY, PLENTY - 64 * used
        state.total_usable_disk_gb, state.free_disk_mb = 1000, 1000 * 1024
        state.cpu_allocation_ratio = state.ram_allocation_ratio = 1.0
        state.disk_allocation_ratio = 1.0
        return state

    def _spec(
        self, servers: Sequence[Server], ignored: str | None, *, is_move: bool
    ) -> objects.RequestSpec:
        first = servers[0]
        group, is_metal = first.group, self.fabric.is_metal
        metal = {f"resources:{METAL}": "1", **_OF_METAL} if is_metal else {}
        size = {"vcpus": 1, "memory_mb": 64, "root_gb": 0, "ephemeral_gb": 0, "swap": 0}
        nothing = dict.fromkeys(("image", "force_hosts", "force_nodes", "pci_requests"))
        found = objects.RequestSpec(
            flavor=objects.Flavor(**size, extra_specs={**group.wish.extra_specs, **metal}),
            num_instances=first.number,
            instance_uuid=first.uuid,
            scheduler_hints={},
            instance_group=None,
            is_bfv=False,
            requested_resources=[],
            requested_destination=objects.Destination(cell=_CELL) if is_move else None,
            ignore_hosts=None if ignored is None else [self.fabric.service(ignored)],
            numa_topology=None,
            **nothing,
            **OWNER,
        )
        if not group.is_deleted:
            own = [server for server in self.servers.values() if server.group is group]
            found.instance_group = objects.InstanceGroup(
                uuid=group.uuid,
                policy=group.policy,
                rules={},
                # Nova leaves those that are deleted in the list.
                members=[server.uuid for server in own],
                hosts=sorted(
                    {self.fabric.service(one.node) for one in own if one.is_there and one.node}
                ),
            )
        return found
