"""Gauges of a worker's state, read by the thread that writes them: no request pays for them."""

import functools
from collections import Counter

from nova import version as nova_version

import hpc_sched
from hpc_sched import clock
from hpc_sched.metrics import catalogue, counts
from hpc_sched.nova_glue.exporter.decision_counts import kind_of
from hpc_sched.nova_glue.io import circuit_breaker, fabric, loaded_topology
from hpc_sched.nova_glue.io.loaded_topology import TopologyStatus


def update() -> None:
    """Set the gauges."""
    counts.set_to(catalogue.WORKERS, 1)
    counts.set_to(catalogue.BUILD, 1, version=hpc_sched.__version__, nova=_nova())
    # Cells are named by their uuids.
    sources = circuit_breaker.open_sources()
    found = Counter(kind_of(source, catalogue.CELL) for source in sources)
    for kind in catalogue.SOURCES:
        counts.set_to(catalogue.OPEN_BREAKERS, found[kind], source=kind)
    # Set at decisions alone: a host that is repaired since would be shown until the next one.
    counts.expire(catalogue.SHUNNED, fabric.RECENT)
    status = loaded_topology.status()
    if status is not None:
        _update_topology(status)
    else:
        # In shadow mode alone; in active mode nova-scheduler would not start.
        counts.set_to(catalogue.TOPOLOGY_GOOD, 0)


def _update_topology(status: TopologyStatus) -> None:
    topology = status.topology
    counts.set_to(catalogue.TOPOLOGY_GOOD, float(not status.is_refused))
    counts.set_to(catalogue.TOPOLOGY_READ, _unix_time(status.read_at))
    counts.set_to(catalogue.TOPOLOGY_INTERVAL, loaded_topology.reload_interval())
    counts.set_to(catalogue.TOPOLOGY_HOSTS, len(topology.hosts))
    counts.set_to(catalogue.TOPOLOGY_LEAVES, len(topology.leaves))
    counts.set_to(catalogue.TOPOLOGY_UNKNOWN, status.unknown_hosts)
    counts.set_to(catalogue.TOPOLOGY_WAITING, status.waiting_changes)
    counts.set_to(catalogue.TOPOLOGY_INCOMPLETE, float(bool(topology.incomplete)))


@functools.lru_cache(maxsize=1)
def _unix_time(monotonic: float) -> float:
    """Return a monotonic time as Unix time; the same for the same one."""
    return round(clock.current.unix_time() - (clock.current.monotonic() - monotonic), 3)


@functools.cache
def _nova() -> str:
    return str(nova_version.version_string())
