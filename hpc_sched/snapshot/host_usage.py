"""What runs on the hosts of a fabric, and which of its hosts Nova knows."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from hpc_sched.snapshot.cloud import Cloud
from hpc_sched.snapshot.model import Hypervisor, Snapshot
from hpc_sched.topology import plurals
from hpc_sched.topology.model import Topology
from hpc_sched.topology.writers import svg

# Shared and dedicated processors of the host.
_VCPUS = ("VCPU", "PCPU")


@dataclass(frozen=True, slots=True)
class HostUse:
    """One host of the fabric that Nova knows."""

    vms: int
    vcpus_used: float
    vcpus: float  # 0 on bare metal
    enabled: bool
    up: bool

    @property
    def state(self) -> str:
        """What it is shown as in a picture, see ``topology.svg``."""
        if not (self.enabled and self.up):
            return svg.OFF
        return svg.USED if self.vms else svg.FREE


@dataclass(frozen=True, slots=True)
class Totals:
    """What some hosts have together."""

    vms: int = 0
    vcpus_used: float = 0
    vcpus: float = 0
    free: int = 0  # hosts that take VMs and have none
    disabled: int = 0  # hosts
    down: int = 0  # hosts that are enabled
    absent: int = 0  # hosts that Nova does not know

    @property
    def off(self) -> int:
        """Hosts that take no VMs."""
        return self.disabled + self.down + self.absent


@dataclass(frozen=True, slots=True)
class Occupancy:
    """A fabric and a cloud brought together."""

    hypervisors: int  # that Nova has
    hosts: Mapping[str, HostUse]  # by the topology's name; those that Nova knows
    absent: tuple[str, ...]  # hosts of the topology that Nova does not know
    strangers: tuple[str, ...]  # hosts of Nova that the topology does not name, sorted
    # Hosts of the topology that are several hypervisors at once, with their nodenames.
    doubled: Mapping[str, tuple[str, ...]]

    def totals(self, hosts: Iterable[str]) -> Totals:
        """Return what hosts of the topology have together."""
        vms = free = disabled = down = absent = 0
        used = vcpus = 0.0
        for host in hosts:
            use = self.hosts.get(host)
            if use is None:
                absent += 1
                continue
            vms += use.vms
            used += use.vcpus_used
            vcpus += use.vcpus
            free += use.state == svg.FREE
            disabled += not use.enabled
            down += use.enabled and not use.up
        return Totals(vms, used, vcpus, free, disabled, down, absent)

    def states(self) -> dict[str, str]:
        """Return what each host is shown as in a picture."""
        return {host: use.state for host, use in self.hosts.items()}

    def notes(self) -> dict[str, str]:
        """Return what a picture says of each host."""
        return {host: _note(use) for host, use in self.hosts.items()}


def of(topology: Topology, snapshot: Snapshot) -> Occupancy:
    """Return what runs on the hosts of a fabric. Linear in hosts and VMs."""
    cloud = Cloud.of(snapshot, topology)
    known = [host for host in topology.hosts if host in cloud.hosts]
    return Occupancy(
        hypervisors=len(snapshot.hypervisors),
        hosts={
            host: _use(cloud.hosts[host], len(cloud.servers_on.get(host, ()))) for host in known
        },
        absent=tuple(host for host in topology.hosts if host not in cloud.hosts),
        strangers=cloud.unknown,
        doubled={
            host: tuple(sorted(node.nodename for node in cloud.hosts[host]))
            for host in known
            if len(cloud.hosts[host]) > 1
        },
    )


def _use(nodes: Sequence[Hypervisor], vms: int) -> HostUse:
    return HostUse(
        vms=vms,
        vcpus_used=sum(node.used.get(name, 0) for node in nodes for name in _VCPUS),
        vcpus=sum(node.capacity.get(name, 0) for node in nodes for name in _VCPUS),
        enabled=all(node.enabled for node in nodes),
        up=all(node.up for node in nodes),
    )


def _note(use: HostUse) -> str:
    parts = [plurals.text(use.vms, "VM")]
    if use.vcpus:
        parts.append(f"{use.vcpus_used:g} of {use.vcpus:g} vcpus used")
    if not use.enabled:
        parts.append("disabled")
    if not use.up:
        parts.append("down")
    return ", ".join(parts)
