"""The VMs of a snapshot by application class, and the hosts in use: those with a VM."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from hpc_sched.core.cost import Usage
from hpc_sched.core.extra_spec_names import APP_CLASSES
from hpc_sched.snapshot import colocated_vms
from hpc_sched.snapshot.cloud import Cloud
from hpc_sched.snapshot.host_usage import VCPUS
from hpc_sched.snapshot.snapshot_model import Server
from hpc_sched.topology.grouping import by_key

ALL = "all"
Place = tuple[str, str]  # service host and nodename


@dataclass(frozen=True, slots=True)
class InUse:
    """VMs that have a host, running or not, and their hosts."""

    vms: int
    vcpus: int  # of these VMs
    hosts: int
    hourly: Usage  # of an hour in this state


def by_class(cloud: Cloud) -> dict[str, InUse]:
    """Return what the VMs of each application class have in use, and under ALL those of all.

    Classes without a VM are left out. A host that several classes share counts for each of them,
    and once for all. A VM has the vcpus of its flavor. The cores of a host are the vcpus that it
    offers to VMs, shared and dedicated ones, allocation ratio included; of a host that reports
    none, such as a bare-metal node, the vcpus of its VMs. Linear in VMs.
    """
    servers = {server.uuid: server for server in cloud.snapshot.servers}
    running = colocated_vms.running(cloud)
    vms = by_key(
        (application.app_class, servers[uuid])
        for there in running.values()
        for uuid, application in there.items()
    )
    cores: dict[Place, float] = {
        place: sum(servers[uuid].flavor.vcpus for uuid in there) for place, there in running.items()
    } | {
        node.place: offered
        for node in cloud.snapshot.hypervisors
        if (offered := sum(node.capacity.get(name, 0) for name in VCPUS))
    }
    found = {name: {name: vms[name]} for name in APP_CLASSES if name in vms} | {ALL: vms}
    return {name: _in_use(of_classes, cores) for name, of_classes in found.items()}


def all_hosts(cloud: Cloud) -> set[Place]:
    """Return the hosts of a cloud, with those that only VMs name: their hypervisors are gone."""
    return {
        *(node.place for node in cloud.snapshot.hypervisors),
        *colocated_vms.running(cloud),
    }


def _in_use(vms: Mapping[str, Sequence[Server]], cores: Mapping[Place, float]) -> InUse:
    """Return what VMs have in use, by their application classes."""
    places = {vm.place for there in vms.values() for vm in there if vm.place}
    vcpus = {name: sum(vm.flavor.vcpus for vm in there) for name, there in vms.items()}
    hourly = Usage(vcpus, len(places), sum(cores[place] for place in sorted(places)))
    return InUse(sum(map(len, vms.values())), sum(vcpus.values()), len(places), hourly)
