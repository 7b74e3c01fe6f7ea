"""The problem of a group on a snapshot: what the scheduler would plan, from the APIs alone."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from hpc_sched.core import extra_specs, server_group_policy
from hpc_sched.core.capacity import UNBOUNDED, host_capacity
from hpc_sched.core.constraints import NO_CONSTRAINTS
from hpc_sched.core.extra_specs import SHARING_CLASSES, TOPOLOGY_CLASSES, HPCSpecs
from hpc_sched.core.plan.problem import Problem, tie_order
from hpc_sched.core.sharing.mdobp import MDOBPInput
from hpc_sched.snapshot import colocation, nova_options
from hpc_sched.snapshot.cloud import Cloud
from hpc_sched.snapshot.flavor_demand import demand_of
from hpc_sched.snapshot.model import Flavor, Hypervisor, Server
from hpc_sched.topology.model import Topology

Array = NDArray[np.int64]

# Which hosts a soft policy of the group prefers: those with more or with fewer of its VMs.
_MEMBERS_FIRST = {"soft-affinity": 1, "soft-anti-affinity": -1}


@dataclass(frozen=True, slots=True)
class Request:
    """Some VMs of one kind that belong together."""

    flavor: Flavor
    count: int
    group_id: str = ""  # breaks ties; VMs of that server group are no strangers
    policy: str | None = None
    max_per_host: int | None = None  # most VMs of the group on one service host, where bounded
    members: tuple[Server, ...] = ()  # VMs of the group; those with a host have a place
    boots_from_volume: bool = False
    moves: tuple[Server, ...] = ()  # VMs that count as gone: the request is for them


@dataclass(frozen=True, slots=True, eq=False)
class State:
    """A request on a cloud; arrays are per hypervisor of the snapshot. Built with :func:`of`."""

    cloud: Cloud
    request: Request
    hpc_specs: HPCSpecs
    topology: Topology  # one leaf for all where the fabric does not matter
    host_index: Array  # index in the topology's hosts
    room: Array  # how many VMs each takes, whatever the policy
    bound: server_group_policy.Bound | None

    @property
    def is_flat(self) -> bool:
        """Tell whether the group is not placed by the fabric."""
        return self.topology is not self.cloud.topology

    @property
    def on_fabric(self) -> "State":
        """The same request on the cloud's fabric, whether or not its class minds that."""
        if not self.is_flat:
            return self
        fabric, flat = self.cloud.topology, self.topology.hosts
        index = np.array([fabric.index_of(flat[i]) for i in self.host_index], dtype=np.int64)
        bound = self.bound
        if bound is not None:
            bound = replace(bound, leaf=fabric.leaf_index[index])
        return replace(self, topology=fabric, host_index=index, bound=bound)

    @property
    def sizes(self) -> tuple[int, ...]:
        """How many VMs to plan for, the most wanted first, down to what must fit."""
        constraints = self.hpc_specs.constraints
        placed = sum(1 for server in self.request.members if server.uuid in self.cloud.host_of)
        grown = max((constraints.group_size or 0) - placed, self.request.count)
        must = grown if constraints.require is not None else self.request.count
        return tuple(sorted({grown, must}, reverse=True))

    def problem(self, among: NDArray[np.bool_] | None = None) -> Problem:
        """Return the problem as the planner takes it.

        :param among: which hypervisors are candidates; all by default
        """
        return self._problem(
            server_group_policy.apply(self.bound, self._room(among), self._nobody, self.sizes)
        )

    def problem_at(self, level: int, among: NDArray[np.bool_] | None = None) -> Problem:
        """Return the problem by which the switches of a level are compared.

        What a service of many nodes may take counts once below each of them.
        """
        bound, topology = self.bound, self.topology
        if bound is not None:
            bound = replace(bound, leaf=topology.groups[level - 1][self.host_index])
        return self._problem(
            server_group_policy.apply(bound, self._room(among), self._nobody, self.sizes)
        )

    def problems_by_policy(self, among: NDArray[np.bool_] | None = None) -> Iterator[Problem]:
        """Yield problems whose plans keep a hard policy of services that own many nodes."""
        for room in server_group_policy.by_service(
            self.bound, self._room(among), self._nobody, self.sizes
        ):
            yield self._problem(room)

    def keeps_policy(self, planned: dict[str, int]) -> bool:
        """Tell whether planned VMs per host keep the group's hard policy service by service."""
        if self.bound is None:
            return True
        hosts = self.topology.hosts
        counts = np.array([planned.get(hosts[i], 0) for i in self.host_index.tolist()], np.int64)
        return server_group_policy.keeps(self.bound, counts, self._nobody)

    @property
    def _nobody(self) -> Array:
        return np.zeros_like(self.room)

    def _room(self, among: NDArray[np.bool_] | None) -> Array:
        return self.room if among is None else np.where(among, self.room, 0)

    def _problem(self, room: Array) -> Problem:
        topology, request = self.topology, self.request
        capacity = np.zeros(len(topology.hosts), dtype=np.int64)
        np.add.at(capacity, self.host_index, room)
        members = np.zeros_like(capacity)
        for server in request.members:
            host = self.cloud.host_of.get(server.uuid)
            if host is not None:
                members[topology.index_of(host)] += 1
        plugins = nova_options.enabled(self.cloud.snapshot)
        by_mdobp = self.hpc_specs.app_class in SHARING_CLASSES and plugins.has_mdobp
        return Problem(
            topology=topology,
            capacity=capacity,
            members=members,
            awaiting=request.count,
            tie=tie_order(topology, request.group_id),
            constraints=NO_CONSTRAINTS if self.is_flat else self.hpc_specs.constraints,
            pack_hosts=request.policy != "soft-anti-affinity" and not by_mdobp,
            packing=self._packing() if by_mdobp else None,
        )

    def _packing(self) -> MDOBPInput:
        """Return what MDOBP compares on each host of the topology."""
        demand = demand_of(self.request.flavor, boots_from_volume=self.request.boots_from_volume)
        cpu = "VCPU" if demand.get("VCPU") else "PCPU"
        demand = {**demand, cpu: demand.get("VCPU", 0) + demand.get("PCPU", 0)}
        with_disk = nova_options.option(self.cloud.snapshot, "mdobp_disk")
        names = [cpu, "MEMORY_MB", *(["DISK_GB"] if with_disk else [])]
        free = np.zeros((len(self.topology.hosts), len(names)))
        usable = np.zeros_like(free)
        for i, node in zip(self.host_index.tolist(), self.cloud.snapshot.hypervisors, strict=True):
            for at, name in enumerate(names):
                most = node.capacity.get(name, 0.0)
                usable[i, at] += most
                free[i, at] += most - node.used.get(name, 0.0)
        return MDOBPInput(
            demand=np.array([float(demand.get(name, 0)) for name in names]),
            free=free,
            usable=usable,
            members_first=_MEMBERS_FIRST.get(self.request.policy or "", 0),
        )


def of(cloud: Cloud, request: Request) -> State:
    """Return a request on a cloud. Linear in hypervisors and VMs.

    Filters that look at anything but room, policy, services and the VMs on the hosts are not
    seen: availability zones, traits, images, networks.
    """
    nodes = cloud.snapshot.hypervisors
    asked = extra_specs.read(
        request.flavor.extra_specs, {}, cloud.levels, nova_options.defaults(cloud.snapshot)
    )
    names = [cloud.name_at[node.host, node.nodename] for node in nodes]
    is_flat = asked.app_class not in TOPOLOGY_CLASSES and not asked.needs_place
    topology = cloud.topology
    if is_flat:
        topology = Topology.from_tree({"cloud": list(topology.hosts)}, levels=("cloud",))
    host_index = np.array([topology.index_of(name) for name in names], dtype=np.int64)
    gone = frozenset(server.uuid for server in request.moves)
    runs, _ = extra_specs.application(
        request.flavor.extra_specs, {}, nova_options.defaults(cloud.snapshot), in_group=True
    )
    room = np.minimum(
        _rooms(cloud, request),
        colocation.rooms(cloud, replace(runs, group=request.group_id or None), gone),
    )
    # Where they are they can stay, also on hosts that take no others.
    own = Counter((vm.host, vm.nodename or vm.host) for vm in request.moves if vm.host)
    room = np.maximum(room, [own[node.host, node.nodename] for node in nodes])
    members: Counter[tuple[str, str | None]] = Counter(
        (server.host, server.nodename) for server in request.members if server.host
    )
    return State(
        cloud=cloud,
        request=request,
        hpc_specs=asked,
        topology=topology,
        host_index=host_index,
        room=room,
        bound=server_group_policy.bound(
            request.policy,
            request.max_per_host,
            members,
            [(node.host, node.nodename) for node in nodes],
            topology.leaf_index[host_index],
        ),
    )


def _rooms(cloud: Cloud, request: Request) -> Array:
    """Return how many VMs each hypervisor has free resources for; 0 where it takes none."""
    demand = demand_of(request.flavor, boots_from_volume=request.boots_from_volume)
    held: dict[tuple[str, str], Counter[str]] = {}
    for server in request.moves:
        if server.host:
            here = held.setdefault((server.host, server.nodename or server.host), Counter())
            here.update(demand_of(server.flavor, boots_from_volume=server.boots_from_volume))
    return np.array(
        [
            _room(node, demand, held.get((node.host, node.nodename), Counter()))
            if cloud.takes_vms(node)
            else 0
            for node in cloud.snapshot.hypervisors
        ],
        dtype=np.int64,
    )


def _room(node: Hypervisor, demand: dict[str, int], held: Counter[str]) -> int:
    # Disk may come from a provider that many hosts share; of anything else Placement offers
    # no host that has none of it.
    if any(name not in node.capacity for name in demand if name != "DISK_GB"):
        return 0
    free = {
        name: most - max(node.used.get(name, 0.0) - held[name], 0.0)
        for name, most in node.capacity.items()
    }
    is_bare_metal = not (node.capacity.get("VCPU") or node.capacity.get("PCPU"))
    return min(host_capacity(free, demand), 1 if is_bare_metal else UNBOUNDED)
