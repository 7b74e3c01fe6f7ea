"""Usage of a fabric's hosts, and the differences between the fabric and Nova's hosts."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from hpc_sched.snapshot.cloud import Cloud
from hpc_sched.snapshot.snapshot_model import Hypervisor, Server, Snapshot
from hpc_sched.topology import plurals
from hpc_sched.topology.model import Topology
from hpc_sched.topology.writers import svg

# Shared and dedicated processors.
VCPUS = ("VCPU", "PCPU")


@dataclass(frozen=True, slots=True)
class HostUse:
    """One host of the fabric that Nova has."""

    vms: int
    vcpus_used: float
    vcpus: float  # 0 on bare metal
    enabled: bool
    up: bool

    @property
    def state(self) -> str:
        """Its state in a picture, see ``topology.writers.svg``."""
        state = svg.USED if self.vms else svg.FREE
        return state if self.enabled and self.up else svg.OFF

    @property
    def note(self) -> str:
        """Its text in a picture."""
        parts = (
            plurals.text(self.vms, "VM"),
            f"{self.vcpus_used:g} of {self.vcpus:g} vcpus used" if self.vcpus else "",
            "" if self.enabled else "disabled",
            "" if self.up else "down",
        )
        return ", ".join(filter(None, parts))


@dataclass(frozen=True, slots=True)
class Totals:
    """Sums over hosts."""

    vms: int = 0
    vcpus_used: float = 0
    vcpus: float = 0
    free: int = 0  # hosts that take VMs and have none
    disabled: int = 0  # hosts
    down: int = 0  # enabled hosts
    absent: int = 0  # hosts that Nova does not have

    @property
    def off(self) -> int:
        """Hosts that take no VMs."""
        return self.disabled + self.down + self.absent


@dataclass(frozen=True, slots=True)
class FabricUsage:
    """Usage of a fabric's hosts."""

    hypervisors: int  # of Nova
    hosts: Mapping[str, HostUse]  # by the topology's name; hosts that Nova has
    absent: tuple[str, ...]  # hosts of the topology that Nova does not have
    unnamed: tuple[str, ...]  # hosts of Nova that the topology does not name, sorted
    doubled: Mapping[str, tuple[str, ...]]  # host to nodenames, if several hypervisors match it

    def totals(self, hosts: Iterable[str]) -> Totals:
        """Return the sums over hosts of the topology."""
        wanted = list(hosts)
        uses = [self.hosts[host] for host in wanted if host in self.hosts]
        return Totals(
            vms=sum(use.vms for use in uses),
            vcpus_used=sum((use.vcpus_used for use in uses), 0.0),
            vcpus=sum((use.vcpus for use in uses), 0.0),
            free=sum(use.state == svg.FREE for use in uses),
            disabled=sum(not use.enabled for use in uses),
            down=sum(use.enabled and not use.up for use in uses),
            absent=len(wanted) - len(uses),
        )

    def states(self) -> dict[str, str]:
        """Return the state of each host in a picture."""
        return {host: use.state for host, use in self.hosts.items()}

    def notes(self) -> dict[str, str]:
        """Return the text of each host in a picture."""
        return {host: use.note for host, use in self.hosts.items()}


def of(topology: Topology, snapshot: Snapshot) -> FabricUsage:
    """Return the usage of a fabric's hosts. Linear in hosts and VMs."""
    cloud = Cloud.of(snapshot, topology)
    known = {host: cloud.hosts[host] for host in topology.hosts if host in cloud.hosts}
    return FabricUsage(
        hypervisors=len(snapshot.hypervisors),
        hosts={host: _use(nodes, cloud.servers_on.get(host, ())) for host, nodes in known.items()},
        absent=tuple(host for host in topology.hosts if host not in known),
        unnamed=cloud.unknown,
        doubled={
            host: tuple(sorted(node.nodename for node in nodes))
            for host, nodes in known.items()
            if len(nodes) > 1
        },
    )


def _use(nodes: Sequence[Hypervisor], servers: Sequence[Server]) -> HostUse:
    return HostUse(
        vms=len(servers),
        vcpus_used=sum(node.used.get(name, 0) for node in nodes for name in VCPUS),
        vcpus=sum(node.capacity.get(name, 0) for node in nodes for name in VCPUS),
        enabled=all(node.enabled for node in nodes),
        up=all(node.up for node in nodes),
    )
