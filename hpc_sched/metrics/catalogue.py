"""The metrics of nova-scheduler: names, types, labels, and how those of the workers are merged.

No label names a host, an instance, a group or a request; a project only with ``metrics_project``.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import product

from hpc_sched.core.logged.decision_summary import ACTIVE, PARTS, SHADOW

PREFIX = "hpc_sched_"
SERVER = "hpc_sched"  # what the endpoints call themselves in HTTP
PATH = "/metrics"
COUNTER, GAUGE, HISTOGRAM = "counter", "gauge", "histogram"

# What decided, as in the decision log's ``decision``; a plan that does not exist is no refusal.
ANSWERS = ("planned", "no_plan", "refused")
MODES = (ACTIVE, SHADOW)
API_DATABASE, CELL, PLACEMENT, OTHER = "api_database", "cell", "placement", "other"
SOURCES = (API_DATABASE, CELL, PLACEMENT, OTHER)
# Reasons as hpc_sched.nova_glue.read.room.shunned_hosts has them.
SHUNNED_BY_NOVA = ("failed builds (BuildFailureWeigher)", "another cell (CrossCellWeigher)")
HELD, NOT_HELD = "held", "not_held"

# From a plan on a small cloud to planning_timeout, in seconds.
BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)


@dataclass(frozen=True, slots=True, eq=False)
class Metric:
    """One metric; equal to itself only."""

    name: str  # a counter's without _total
    kind: str
    help: str
    labels: Mapping[str, tuple[str, ...]] = field(default_factory=dict)  # to the values known
    # How prometheus_client merges a gauge of several workers; see its multiprocess mode.
    merged: str = ""

    @property
    def exposed_name(self) -> str:
        """The name under which it is found, a histogram's without _bucket, _sum and _count."""
        return f"{self.name}_total" if self.kind == COUNTER else self.name

    def known_series(self) -> Iterator[dict[str, str]]:
        """Yield the labels of the series that are there from the start."""
        for values in product(*self.labels.values()):
            yield dict(zip(self.labels, values, strict=True))


def _metric(kind: str, name: str, what: str, merged: str = "", **labels: tuple[str, ...]) -> Metric:
    return Metric(PREFIX + name, kind, what, labels, merged)


DECISIONS = _metric(
    COUNTER,
    "decisions",
    "Decisions on groups, one for each request, by answer.",
    answer=ANSWERS,
    mode=MODES,
)
# Only with metrics_project. A second metric: a series of a project begins with its first decision,
# which Prometheus does not see as an increase, and would be missing in the sum over projects.
PROJECT_DECISIONS = _metric(
    COUNTER,
    "project_decisions",
    "Decisions on groups by project, with metrics_project alone.",
    answer=ANSWERS,
    mode=MODES,
    project=(),
)
UNPROVEN = _metric(
    COUNTER,
    "unproven_plans",
    "Plans that are not proven best: planning_timeout was over, or too many steps.",
)
PLANNING = _metric(
    HISTOGRAM, "planning_seconds", "Time spent on the plans of a request, in seconds."
)
REQUEST = _metric(
    HISTOGRAM,
    "request_seconds",
    "Time that hpc_sched spent on a request until its decision was logged, in seconds.",
)
PART_SECONDS = _metric(
    COUNTER,
    "request_part_seconds",
    "The same time, summed by what it was spent on.",
    part=PARTS,
)
GANG_CLAIMS = _metric(
    COUNTER,
    "gang_claims",
    "Requests whose plan was to be claimed at once, by whether the claim is held.",
    answer=(HELD, NOT_HELD),
)
TRANSACTIONS = _metric(
    COUNTER,
    "claim_transactions",
    "Transactions sent to Placement to claim a plan, by its answer; conflicts are sent again.",
    answer=(
        *("done", "no_room", "conflict", "consumer_changed", "consumer_pending"),
        *("failed", "unknown"),
    ),
)
DEGRADED = _metric(
    COUNTER,
    "degraded_decisions",
    "Requests that were decided without a source that did not answer, by kind of source.",
    source=SOURCES,
)
ERRORS = _metric(
    COUNTER,
    "plugin_errors",
    "Exceptions out of hpc_sched's code that a filter or weigher caught, by its class.",
    plugin=(),
)
LOST_LINES = _metric(
    COUNTER, "lost_decision_lines", "Lines that could not be written to decision_log."
)
SHUNNED = _metric(
    GAUGE,
    "shunned_hosts",
    "Hosts that another weigher put behind all others, at the last decision on a group; 0 an hour "
    "after it.",
    "livemostrecent",
    reason=SHUNNED_BY_NOVA,  # other weighers, too
)
OPEN_BREAKERS = _metric(
    GAUGE,
    "open_circuit_breakers",
    "Sources that are left alone after a timeout, and for one pause more, by kind.",
    "livesum",
    source=SOURCES,
)
TOPOLOGY_GOOD = _metric(
    GAUGE,
    "topology_good",
    "1 if the last description of the fabric is in use, 0 if it was refused by any worker.",
    "livemin",
)
TOPOLOGY_READ = _metric(
    GAUGE,
    "topology_read_timestamp_seconds",
    "Unix time of the last good reading of the fabric, of the worker where it is oldest.",
    "livemin",
)
TOPOLOGY_INTERVAL = _metric(
    GAUGE,
    "topology_reload_interval_seconds",
    "Seconds between two readings of the fabric; 0: only on SIGHUP.",
    "livemax",
)
TOPOLOGY_HOSTS = _metric(GAUGE, "topology_hosts", "Hosts in the topology in use.", "livemin")
TOPOLOGY_LEAVES = _metric(
    GAUGE, "topology_leaves", "Leaf switches in the topology in use.", "livemin"
)
TOPOLOGY_UNKNOWN = _metric(
    GAUGE,
    "topology_unknown_hosts",
    "Candidates of the last hour that the topology does not name.",
    "livemax",
)
TOPOLOGY_WAITING = _metric(
    GAUGE,
    "topology_waiting_changes",
    "Changes of hosts and switches that wait for topology_settle_time.",
    "livemax",
)
TOPOLOGY_INCOMPLETE = _metric(
    GAUGE,
    "topology_incomplete",
    "1 if the description in use was cut off, else 0.",
    "livemax",
)
WORKERS = _metric(GAUGE, "workers", "Workers of nova-scheduler that have metrics.", "livesum")
BUILD = _metric(
    GAUGE, "build_info", "1, with the versions as labels.", "livemax", version=(), nova=()
)

METRICS = (
    *(
        DECISIONS,
        PROJECT_DECISIONS,
        UNPROVEN,
        PLANNING,
        REQUEST,
        PART_SECONDS,
        GANG_CLAIMS,
        TRANSACTIONS,
    ),
    *(DEGRADED, ERRORS),
    *(LOST_LINES, SHUNNED, OPEN_BREAKERS, TOPOLOGY_GOOD, TOPOLOGY_READ, TOPOLOGY_INTERVAL),
    *(TOPOLOGY_HOSTS, TOPOLOGY_LEAVES, TOPOLOGY_UNKNOWN, TOPOLOGY_WAITING, TOPOLOGY_INCOMPLETE),
    *(WORKERS, BUILD),
)
