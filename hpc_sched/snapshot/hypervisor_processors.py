"""The processor types of a snapshot's hypervisors, and of the members of a group."""

import math
from collections import Counter
from collections.abc import Iterable

from hpc_sched.core.arrays import Array
from hpc_sched.core.processors.group_processors import HostProcessors
from hpc_sched.core.processors.processor import METADATA, Processor, of_cpu_info, types_of
from hpc_sched.snapshot import nova_options
from hpc_sched.snapshot.cloud import Cloud
from hpc_sched.snapshot.snapshot_model import Server


def of(cloud: Cloud, members: Iterable[Server], room: Array) -> HostProcessors:
    """Return the types of hypervisors and members. Linear in hypervisors.

    :param members: VMs of the group
    :param room: VMs that each hypervisor takes, shape (hypervisors,); types without room are
        omitted
    """
    nodes = cloud.snapshot.hypervisors
    names, reported = per_hypervisor(cloud)
    by_place = {node.place: name for node, name in zip(nodes, names, strict=True)}
    return HostProcessors.of(
        names,
        reported,
        [math.floor(node.capacity.get("VCPU", 0) + node.capacity.get("PCPU", 0)) for node in nodes],
        room > 0,
        Counter(by_place.get(vm.place) for vm in members if vm.place),
        nova_options.ranking(cloud.snapshot),
    )


def per_hypervisor(cloud: Cloud) -> tuple[list[str | None], list[Processor | None]]:
    """Return type and reported processor of each hypervisor."""
    metadata = cloud.aggregate_metadata()
    nodes = cloud.snapshot.hypervisors
    reported = [of_cpu_info(node.cpu_info) for node in nodes]
    stated = [[row.get(METADATA, "") for row in metadata.get(node.host, ())] for node in nodes]
    in_file = (cloud.topology.processor_of(cloud.name_at[node.place]) for node in nodes)
    return types_of(stated, in_file, reported), reported
