"""The metrics of a cloud: what it could take, for Prometheus."""

import datetime
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from prometheus_client.metrics_core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

import hpc_sched
from hpc_sched.snapshot import cloud_room, host_usage
from hpc_sched.snapshot.cloud import Cloud
from hpc_sched.snapshot.snapshot_model import Flavor
from hpc_sched.topology.writers import svg

PREFIX = "hpc_sched_cloud_"
# States of hosts in a picture to their names here.
_STATES = {svg.FREE: "free", svg.USED: "used", svg.OFF: "off"}
_ABSENT = "absent"

HELP = {
    "free_slots": "VMs of a flavor that the hosts take now, each host counted alone.",
    "largest_gang": "VMs of a flavor that fit under one switch of a level, as hpc-sched fits.",
    "fragmentation": "Part of a level's best possible group that does not fit, 0 to 1: "
    "1 - largest_gang / min(free_slots, largest_gang without VMs).",
    "free_leaves": "Leaf switches whose hosts all take VMs and have none.",
    "leaves": "Leaf switches of the topology.",
    "hosts": "Hosts of the topology: free, used, off (disabled or down), absent (not in Nova).",
    "unknown_hosts": "Hosts of Nova that the topology does not name.",
    "read_timestamp_seconds": "Unix time of the state that the other metrics show.",
    "read_good": "1 if the last reading of the cloud succeeded, 0 if the state is older.",
    "build_info": "1, with the version of hpc_sched as label.",
}
LABELS = {
    "free_slots": ("flavor",),
    "largest_gang": ("flavor", "level"),
    "fragmentation": ("flavor", "level"),
    "hosts": ("state",),
    "build_info": ("version",),
}


@dataclass
class CloudMetrics(Collector):
    """What was read of a cloud last; replaced as a whole by the thread that reads."""

    found: Sequence[Metric] = field(default_factory=tuple)
    is_good: bool = False

    def collect(self) -> Iterable[Metric]:
        """Return the families."""
        return [*self.found, _family("read_good", {(): float(self.is_good)})]

    def update(self, cloud: Cloud, flavors: Iterable[Flavor]) -> None:
        """Show a cloud."""
        self.found, self.is_good = families(cloud, flavors), True


def families(cloud: Cloud, flavors: Iterable[Flavor]) -> list[Metric]:
    """Return the metrics of a cloud for some flavors."""
    fabric = cloud.description
    usage = host_usage.of(fabric, cloud.snapshot)
    states = Counter(usage.states().values())
    hosts = {name: states[state] for state, name in _STATES.items()} | {_ABSENT: len(usage.absent)}
    rooms = [cloud_room.of(cloud, flavor) for flavor in flavors]
    levels = [(room, level) for room in rooms for level in room.largest]
    values: dict[str, dict[tuple[str, ...], float]] = {
        "free_slots": {(room.flavor,): room.slots for room in rooms},
        "largest_gang": {(room.flavor, level): room.largest[level] for room, level in levels},
        "fragmentation": {
            (room.flavor, level): room.fragmentation(level) for room, level in levels
        },
        "free_leaves": {(): len(cloud_room.free_leaves(fabric, usage))},
        "leaves": {(): len(fabric.leaves)},
        "hosts": {(state,): number for state, number in hosts.items()},
        "unknown_hosts": {(): len(cloud.unknown)},
        "read_timestamp_seconds": {(): _unix_time(cloud.snapshot.taken)},
        "build_info": {(hpc_sched.__version__,): 1},
    }
    return [_family(name, series) for name, series in values.items()]


def _family(name: str, series: dict[tuple[str, ...], float]) -> Metric:
    found = GaugeMetricFamily(PREFIX + name, HELP[name], labels=LABELS.get(name, ()))
    for labels, value in series.items():
        found.add_metric(labels, value)
    return found


def _unix_time(text: str) -> float:
    """Return the time of a snapshot; 0 if it has none that can be read."""
    try:
        return datetime.datetime.fromisoformat(text).timestamp()
    except ValueError:
        return 0.0
