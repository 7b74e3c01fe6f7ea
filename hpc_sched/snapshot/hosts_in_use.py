"""The VMs of a snapshot by application class, and the hosts in use: those with a VM."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

from hpc_sched.core.cost.usage import Usage
from hpc_sched.core.extra_spec_names import APP_CLASSES
from hpc_sched.snapshot import colocation
from hpc_sched.snapshot.cloud import Cloud
from hpc_sched.snapshot.host_usage import VCPUS

ALL = "all"
Place = tuple[str, str]  # service host and nodename


@dataclass(frozen=True, slots=True)
class InUse:
    """VMs that have a host, running or not, and their hosts."""

    vms: int
    vcpus: int  # of these VMs
    hosts: int
    hourly: Usage  # of an hour in this state


@dataclass(frozen=True, slots=True)
class _VM:
    app_class: str
    place: Place
    vcpus: int


def by_class(cloud: Cloud) -> dict[str, InUse]:
    """Return what the VMs of each application class have in use, and under ALL those of all.

    Classes without a VM are left out. A host that several classes share counts for each of them,
    and once for all. A VM has the vcpus of its flavor. The cores of a host are the vcpus that it
    offers to VMs, shared and dedicated ones, allocation ratio included; of a host that reports
    none, such as a bare-metal node, the vcpus of its VMs. Linear in VMs.
    """
    vcpus = {server.uuid: server.flavor.vcpus for server in cloud.snapshot.servers}
    vms = [
        _VM(application.app_class, place, vcpus[uuid])
        for place, there in colocation.running(cloud).items()
        for uuid, application in there.items()
    ]
    cores: dict[Place, float] = {}
    for vm in vms:
        cores[vm.place] = cores.get(vm.place, 0) + vm.vcpus
    for node in cloud.snapshot.hypervisors:
        offered = sum(node.capacity.get(name, 0) for name in VCPUS)
        if offered:
            cores[node.host, node.nodename] = offered
    found = {name: [vm for vm in vms if vm.app_class == name] for name in APP_CLASSES}
    found = {name: there for name, there in found.items() if there} | {ALL: vms}
    return {name: _in_use(there, cores) for name, there in found.items()}


def all_hosts(cloud: Cloud) -> set[Place]:
    """Return the hosts of a cloud, with those that only VMs name: their hypervisors are gone."""
    nodes = ((node.host, node.nodename) for node in cloud.snapshot.hypervisors)
    return {*nodes, *colocation.running(cloud)}


def _in_use(vms: list[_VM], cores: Mapping[Place, float]) -> InUse:
    places = {vm.place for vm in vms}
    vcpus: Counter[str] = Counter()
    for vm in vms:
        vcpus[vm.app_class] += vm.vcpus
    hourly = Usage(vcpus, len(places), sum(cores[place] for place in sorted(places)))
    return InUse(len(vms), sum(vcpus.values()), len(places), hourly)
