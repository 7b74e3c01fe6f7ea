"""Gauges of a worker's state, read by the thread that writes them: no request pays for them."""

import functools
from collections import Counter

from nova import version as nova_version

import hpc_sched
from hpc_sched import clock
from hpc_sched.metrics import catalogue, counts
from hpc_sched.metrics.catalogue import Metric
from hpc_sched.nova_glue.exporter.decision_counts import kind_of
from hpc_sched.nova_glue.io import circuit_breaker, fabric, loaded_topology


def update() -> None:
    """Set the gauges."""
    counts.set_to(catalogue.WORKERS, 1)
    counts.set_to(
        catalogue.BUILD, 1, version=hpc_sched.__version__, nova=str(nova_version.version_string())
    )
    # Cells are named by their uuids.
    found = Counter(kind_of(one, catalogue.CELL) for one in circuit_breaker.open_sources())
    for kind in catalogue.SOURCES:
        counts.set_to(catalogue.OPEN_BREAKERS, found[kind], source=kind)
    # Set at decisions alone: a host that is repaired since would be shown until the next one.
    counts.expire(catalogue.SHUNNED, fabric.RECENT)
    for metric, value in _of_topology().items():
        counts.set_to(metric, value)


def _of_topology() -> dict[Metric, float]:
    loaded = loaded_topology.status()
    if loaded is None:
        # In shadow mode alone; in active mode nova-scheduler would not start.
        return {catalogue.TOPOLOGY_GOOD: 0.0}
    topology = loaded.fabric.topology
    return {
        catalogue.TOPOLOGY_GOOD: float(not loaded.is_refused),
        catalogue.TOPOLOGY_READ: _unix_time(loaded.read_at),
        catalogue.TOPOLOGY_INTERVAL: loaded_topology.reload_interval(),
        catalogue.TOPOLOGY_HOSTS: len(topology.hosts),
        catalogue.TOPOLOGY_LEAVES: len(topology.leaves),
        catalogue.TOPOLOGY_UNKNOWN: loaded.fabric.unknown_hosts,
        catalogue.TOPOLOGY_WAITING: loaded.waiting_changes,
        catalogue.TOPOLOGY_INCOMPLETE: float(bool(topology.incomplete)),
    }


@functools.lru_cache(maxsize=1)
def _unix_time(monotonic: float) -> float:
    """Return a monotonic time as Unix time; the same for the same one."""
    return round(clock.current.unix_time() - (clock.current.monotonic() - monotonic), 3)
