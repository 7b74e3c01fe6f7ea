"""A snapshot on its fabric: the topology's host of each hypervisor and VM."""

import difflib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

from hpc_sched import exceptions, terminal_text
from hpc_sched.core.room.device_fitting import DeviceFitting
from hpc_sched.snapshot.snapshot_model import Flavor, Group, Hypervisor, Server, Snapshot
from hpc_sched.topology.grouping import by_key
from hpc_sched.topology.host_names import HostNames
from hpc_sched.topology.model import Topology

Thing = TypeVar("Thing", bound=Server | Group)

_MAX_SHOWN = 5


@dataclass(frozen=True, slots=True)
class Cloud:
    """A snapshot with the topology's names of hosts; others have leaves of their own."""

    snapshot: Snapshot
    topology: Topology
    description: Topology  # without the hosts that it does not name
    name_at: Mapping[tuple[str, str], str]  # service host and nodename to host
    hosts: Mapping[str, tuple[Hypervisor, ...]]  # mostly one per name
    unknown: tuple[str, ...]  # hosts that the description does not name
    host_of: Mapping[str, str]  # uuid of a server to its host; servers without a host are left out
    servers_on: Mapping[str, tuple[Server, ...]]
    group_of: Mapping[str, Group]  # uuid of a server to its group
    drained: frozenset[str] = frozenset()  # hosts that take no new VMs
    # Returns the fitting of a flavor's NUMA cells and PCI devices, or None if none is needed, or
    # Nova is not installed; SnapshotError for a flavor that Nova refuses. None: nothing is fitted.
    fittings: Callable[[Flavor, Snapshot], DeviceFitting | None] | None = None

    @classmethod
    def of(cls, snapshot: Snapshot, fabric: Topology) -> "Cloud":
        """Return a snapshot on a fabric. Linear in hosts and servers."""
        names = HostNames(fabric)
        nodes = snapshot.hypervisors
        found, unknown = names.find_all([node.place for node in nodes])
        name_at = {node.place: name for name, node in zip(found, nodes, strict=True)}
        hosts = by_key(zip(found, nodes, strict=True))
        placed = [
            (name_at.get(place) or names.find(*place) or place[1], server)
            for server in snapshot.servers
            if (place := server.place)
        ]
        servers_on = by_key(placed)
        return cls(
            snapshot=snapshot,
            topology=fabric.including([*hosts, *servers_on]),
            description=fabric,
            name_at=name_at,
            hosts={name: tuple(there) for name, there in hosts.items()},
            unknown=tuple(sorted({*unknown, *(set(servers_on) - set(fabric.hosts) - set(hosts))})),
            host_of={server.uuid: name for name, server in placed},
            servers_on={name: tuple(servers) for name, servers in servers_on.items()},
            group_of={uuid: group for group in snapshot.groups for uuid in group.members},
        )

    def group(self, wanted: str) -> Group:
        """Return the server group of a uuid or a name; raises as :func:`find_one` does."""
        return find_one(wanted, "server group", self.snapshot.groups)

    def flavor(self, name: str) -> Flavor:
        """Return the flavor of a name; SnapshotError, naming similar ones, if there is none."""
        flavors = {flavor.name: flavor for flavor in self.snapshot.flavors}
        if name not in flavors:
            raise exceptions.SnapshotError(f"there is no flavor {name!r}{similar(name, flavors)}")
        return flavors[name]

    def members_of(self, group: Group) -> tuple[Server, ...]:
        """Return the existing VMs of a group, sorted by name, then uuid."""
        members = set(group.members)
        return tuple(server for server in self.snapshot.servers if server.uuid in members)

    def aggregate_metadata(self) -> dict[str, list[Mapping[str, str]]]:
        """Return the metadata of the host aggregates of each service host."""
        return by_key(
            (host, aggregate.metadata)
            for aggregate in self.snapshot.aggregates
            for host in aggregate.hosts
        )

    def takes_vms(self, node: Hypervisor) -> bool:
        """True if a hypervisor takes new VMs: its service is enabled and up, and not drained."""
        return node.enabled and node.up and self.name_at[node.place] not in self.drained


def find_one(wanted: str, kind: str, things: Sequence[Thing]) -> Thing:
    """Return the server or group of a uuid or a name. Linear in the things.

    :raises exceptions.SnapshotError: if there is none, naming similar ones, or several
    """
    by_uuid = [thing for thing in things if thing.uuid == wanted]
    found = by_uuid or [thing for thing in things if thing.name == wanted]
    if len(found) == 1:
        return found[0]
    if found:
        uuids = sorted(thing.uuid for thing in found)
        more = f" and {len(uuids) - _MAX_SHOWN} more" if len(uuids) > _MAX_SHOWN else ""
        raise exceptions.SnapshotError(
            f"{len(found)} {kind}s are called {wanted!r}: expected a uuid, one of "
            f"{', '.join(uuids[:_MAX_SHOWN])}{more}"
        )
    names = (name for thing in things for name in (thing.name, thing.uuid))
    raise exceptions.SnapshotError(f"there is no {kind} {wanted!r}{similar(wanted, names)}")


def similar(wanted: str, names: Iterable[str]) -> str:
    """Return the end of a sentence that lists similar names; empty if there are none."""
    known = sorted({name for name in names if name})
    found = difflib.get_close_matches(wanted, known, n=_MAX_SHOWN)
    found += [name for name in known if wanted and wanted in name and name not in found]
    shown = [terminal_text.text_of(name) for name in found[:_MAX_SHOWN]]
    return f": there is {', '.join(shown)}" if found else ""
