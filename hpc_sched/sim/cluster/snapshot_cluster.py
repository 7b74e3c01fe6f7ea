"""The cluster of a snapshot of a real cloud: free resources and running instances."""

import math

import numpy as np

from hpc_sched.core.sharing.cache_interference import Application
from hpc_sched.sim.cluster.cluster import MEMORY_MB, VCPUS, Cluster
from hpc_sched.snapshot import colocation
from hpc_sched.snapshot.cloud import Cloud
from hpc_sched.snapshot.hypervisor_processors import per_hypervisor

# Placement's resource classes: shared processors, or pinned ones if there are none.
_PROCESSORS = ("VCPU", "PCPU")


def cluster_of(cloud: Cloud) -> tuple[Cluster, tuple[str, ...]]:
    """Return the cluster, and notes on what was left out. Linear in hosts and instances.

    Running instances stay to the end. Hosts whose service is down or disabled take no VM, and
    neither do bare-metal nodes, which have no vcpus.
    """
    topology, nodes = cloud.topology, cloud.snapshot.hypervisors
    total = np.zeros((len(topology.hosts), 2), dtype=np.int64)
    used = np.zeros_like(total)
    processors: list[str | None] = [None] * len(total)
    running: dict[int, list[Application]] = {}
    down = set(range(len(total)))
    without_vcpus = 0
    there = colocation.running(cloud)
    cores = np.zeros(len(total), dtype=np.int64)
    for node, processor, reported in zip(nodes, *per_hypervisor(cloud), strict=True):
        host = topology.index_of(cloud.name_at[node.host, node.nodename])
        kind = next((name for name in _PROCESSORS if node.capacity.get(name)), None)
        if kind is None:
            without_vcpus += 1
            continue
        for column, name in ((VCPUS, kind), (MEMORY_MB, "MEMORY_MB")):
            total[host, column] += math.floor(node.capacity.get(name, 0))
            used[host, column] += math.ceil(node.used.get(name, 0))
        processors[host] = processor
        cores[host] = reported.all_cores if reported else total[host, VCPUS]
        running.setdefault(host, []).extend(there.get((node.host, node.nodename), ()))
        if cloud.takes_vms(node):
            down.discard(host)
    notes = []
    if without_vcpus:
        notes.append(f"{without_vcpus} hosts without vcpus take no VM in the simulation")
    if down:
        notes.append(f"{len(down)} hosts of the fabric take no VM: down, disabled or unknown")
    cluster = Cluster(
        topology=topology,
        total=total,
        processors=tuple(processors),
        cores=cores,
        used=used,
        running={host: tuple(vms) for host, vms in running.items() if vms},
        down=frozenset(down),
    )
    return cluster, tuple(notes)
