"""The VMs on one host, with what requests need of them, computed once."""

import functools
from collections.abc import Iterable, Mapping, Sequence

import os_resource_classes as orc

from hpc_sched.core.sharing.host_applications import NO_APPLICATIONS, HostApplications
from hpc_sched.nova_glue.read.instances.placed_instance import PlacedInstance

Place = tuple[str, str | None]  # host and nodename


class HostVMs(tuple[PlacedInstance, ...]):
    """The VMs on one host; it does not change, and serves all requests until they do."""

    @functools.cached_property
    def applications(self) -> HostApplications:
        """The applications of those VMs of which they are known."""
        found = [vm.application for vm in self if vm.application is not None]
        return HostApplications.of(found) if found else NO_APPLICATIONS

    @functools.cached_property
    def unknown(self) -> int:
        """The number of VMs whose application is not known."""
        return len(self) - len(self.applications.each)

    @functools.cached_property
    def held(self) -> Mapping[str, float]:
        """What the VMs hold of each resource class that the host reports."""
        return _size(vm for vm in self if not vm.in_flight)

    @functools.cached_property
    def coming(self) -> Mapping[str, float]:
        """What VMs in flight will hold of it; empty without any."""
        found = [vm for vm in self if vm.in_flight]
        return _size(found) if found else {}


NONE = HostVMs()


def _size(vms: Iterable[PlacedInstance]) -> Mapping[str, float]:
    vcpus = memory_mb = disk_gb = 0.0
    for vm in vms:
        vcpus, memory_mb, disk_gb = vcpus + vm.vcpus, memory_mb + vm.memory_mb, disk_gb + vm.disk_gb
    return {orc.VCPU: vcpus, orc.PCPU: vcpus, orc.MEMORY_MB: memory_mb, orc.DISK_GB: disk_gb}


def union(cells: Sequence[Mapping[Place, HostVMs]]) -> Mapping[Place, HostVMs]:
    """Return the VMs of all cells by place. O(hosts), O(1) for one cell."""
    if len(cells) == 1:
        return cells[0]
    at: dict[Place, HostVMs] = {}
    for cell in cells:
        # Hosts of one name in two cells.
        both = {place: HostVMs((*at[place], *cell[place])) for place in at.keys() & cell.keys()}
        at |= cell
        at |= both
    return at


def corrected(
    before: Mapping[Place, HostVMs], gone: Iterable[PlacedInstance], new: Iterable[PlacedInstance]
) -> dict[Place, HostVMs]:
    """Return the VMs by place once some are no longer, and others are now, where they say.

    O(hosts) to copy the references, and the VMs of the hosts that change.

    :param gone: VMs as they were before, those that were changed too
    :param new: VMs as they are now
    """
    at, changed = dict(before), dict[Place, list[PlacedInstance]]()

    def on(vm: PlacedInstance) -> list[PlacedInstance]:
        place = vm.host, vm.nodename
        if (there := changed.get(place)) is None:
            there = changed[place] = list(at.get(place, NONE))
        return there

    for vm in gone:
        there = on(vm)
        there[:] = [one for one in there if one.uuid != vm.uuid]
    for vm in new:
        on(vm).append(vm)
    for place, vms in changed.items():
        if vms:
            at[place] = HostVMs(vms)
        else:
            at.pop(place, None)
    return at
