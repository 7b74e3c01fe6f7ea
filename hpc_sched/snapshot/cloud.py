"""A snapshot on its fabric: which host of the tree every hypervisor and every VM stands on."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from hpc_sched.snapshot import lookup
from hpc_sched.snapshot.model import Group, Hypervisor, Server, Snapshot
from hpc_sched.topology.host_names import HostNames
from hpc_sched.topology.model import Topology


@dataclass(frozen=True, slots=True)
class Cloud:
    """A snapshot whose hosts have the names of the topology; built with :meth:`of`.

    The topology has a leaf for every host that its description does not name.
    """

    snapshot: Snapshot
    topology: Topology
    levels: tuple[str, ...]  # as the description names them
    name_at: Mapping[tuple[str, str], str]  # service host and nodename to host
    hosts: Mapping[str, tuple[Hypervisor, ...]]  # mostly one a name
    unknown: tuple[str, ...]  # hosts that the description does not name
    host_of: Mapping[str, str]  # uuid of a server to its host, where it has one
    servers_on: Mapping[str, tuple[Server, ...]]
    group_of: Mapping[str, Group]  # uuid of a server to its group
    drained: frozenset[str] = field(default_factory=frozenset)  # hosts that take no VM

    @classmethod
    def of(cls, snapshot: Snapshot, fabric: Topology) -> "Cloud":
        """Return a snapshot on a fabric. Linear in hosts and servers."""
        names = HostNames(fabric)
        nodes = snapshot.hypervisors
        found, unknown = names.find_all([(node.host, node.nodename) for node in nodes])
        hosts: dict[str, tuple[Hypervisor, ...]] = {}
        name_at: dict[tuple[str, str], str] = {}
        for name, node in zip(found, nodes, strict=True):
            hosts[name] = (*hosts.get(name, ()), node)
            name_at[node.host, node.nodename] = name
        host_of: dict[str, str] = {}
        servers_on: dict[str, list[Server]] = {}
        for server in snapshot.servers:
            if server.host:
                place = (server.host, server.nodename or server.host)
                name = name_at.get(place) or names.find(*place) or place[1]
                host_of[server.uuid] = name
                servers_on.setdefault(name, []).append(server)
        return cls(
            snapshot=snapshot,
            topology=fabric.including([*hosts, *servers_on]),
            levels=fabric.levels,
            name_at=name_at,
            hosts=hosts,
            unknown=tuple(sorted({*unknown, *(set(servers_on) - set(fabric.hosts) - set(hosts))})),
            host_of=host_of,
            servers_on={name: tuple(servers) for name, servers in servers_on.items()},
            group_of={uuid: group for group in snapshot.groups for uuid in group.members},
        )

    def group(self, wanted: str) -> Group:
        """Return the server group of a uuid or a name.

        :raises exceptions.SnapshotError: where there is none, or several; naming similar ones
        """
        return lookup.one(wanted, "server group", self.snapshot.groups)

    def members_of(self, group: Group) -> tuple[Server, ...]:
        """Return the VMs of a group that exist, by name, then uuid."""
        members = set(group.members)
        return tuple(server for server in self.snapshot.servers if server.uuid in members)

    def takes_vms(self, node: Hypervisor) -> bool:
        """Tell whether a hypervisor takes new VMs: its service is enabled and up, not drained."""
        drained = self.name_at[node.host, node.nodename] in self.drained
        return node.enabled and node.up and not drained
