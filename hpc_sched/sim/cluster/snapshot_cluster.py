"""The cluster of a snapshot of a real cloud: free resources and running instances."""

import math

import numpy as np

from hpc_sched.core.sharing.cache_interference import Application
from hpc_sched.sim.cluster.cluster import MEMORY_MB, VCPUS, Cluster
from hpc_sched.snapshot import colocated_vms
from hpc_sched.snapshot.cloud import Cloud
from hpc_sched.snapshot.hypervisor_processors import per_hypervisor

# Placement's resource classes: shared processors, or pinned ones if there are none.
_PROCESSORS = ("VCPU", "PCPU")
_MOST = (1 << 63) - 1


def cluster_of(cloud: Cloud) -> tuple[Cluster, tuple[str, ...]]:
    """Return the cluster, and notes on what was left out. Linear in hosts and instances.

    Running instances stay to the end. Hosts whose service is down or disabled take no VM, and
    neither do bare-metal nodes, which have no vcpus. Jobs request vcpus and memory alone: devices,
    traits and disks of a host do not count.
    """
    topology, nodes = cloud.topology, cloud.snapshot.hypervisors
    total = np.zeros((len(topology.hosts), 2), dtype=np.int64)
    used, most = np.zeros_like(total), np.zeros_like(total)
    processors: list[str | None] = [None] * len(total)
    running: dict[int, list[Application]] = {}
    down = set(range(len(total)))
    without_vcpus = divided = 0
    there = colocated_vms.running(cloud)
    cores = np.zeros(len(total), dtype=np.int64)
    features: dict[str, frozenset[str]] = {}
    for node, processor, reported in zip(nodes, *per_hypervisor(cloud), strict=True):
        host = topology.index_of(cloud.name_at[node.host, node.nodename])
        kind = next((name for name in _PROCESSORS if node.capacity.get(name)), None)
        if kind is None:
            without_vcpus += 1
            continue
        # Jobs are placed by sums: exact where one provider has what a VM takes of a host.
        parts = (
            kind in one.inventories or "MEMORY_MB" in one.inventories for one in node.providers
        )
        divided += sum(parts) > 1
        for column, name in ((VCPUS, kind), (MEMORY_MB, "MEMORY_MB")):
            total[host, column] += math.floor(node.capacity.get(name, 0))
            used[host, column] += math.ceil(node.used.get(name, 0))
            stocks = (one.inventories[name] for one in node.providers if name in one.inventories)
            bound = max(
                (min(stock.capacity, stock.max_unit or stock.capacity) for stock in stocks),
                default=math.floor(node.capacity.get(name, 0)),
            )
            most[host, column] = max(int(most[host, column]), min(bound, _MOST))
        processors[host] = processor
        if processor is not None and reported:
            features[processor] = reported.features
        cores[host] = reported.all_cores if reported else total[host, VCPUS]
        running.setdefault(host, []).extend(there.get((node.host, node.nodename), {}).values())
        if cloud.takes_vms(node):
            down.discard(host)
    notes = {
        f"{without_vcpus} hosts without vcpus take no VM in the simulation": without_vcpus,
        f"{divided} hosts have vcpus or memory in several resource providers: a VM may take "
        "parts of several in the simulation": divided,
        f"{len(down)} hosts of the fabric take no VM: down, disabled or unknown": down,
    }
    cluster = Cluster(
        topology=topology,
        total=total,
        processors=tuple(processors),
        cores=cores,
        features=features,
        used=used,
        most_of_vm=most,
        running={host: tuple(vms) for host, vms in running.items() if vms},
        down=frozenset(down),
    )
    return cluster, tuple(note for note, found in notes.items() if found)
