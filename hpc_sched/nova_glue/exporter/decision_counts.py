"""Counts of requests, and of the decisions on them."""

import threading
from collections.abc import Callable, Collection, Iterable, Mapping

import nova.conf

from hpc_sched import conf
from hpc_sched.core.arrays import Mask
from hpc_sched.core.logged.decision_summary import PLANNING, total_seconds
from hpc_sched.metrics import catalogue, counts
from hpc_sched.nova_glue.io import databases, placement
from hpc_sched.nova_glue.request_metrics import RequestMetrics

CONF = nova.conf.CONF

MAX_PROJECTS = 200  # values of the label project; others are counted together
OTHER_PROJECTS = "other"
# How the names of sources begin.
_KINDS = {
    databases.API_DATABASE: catalogue.API_DATABASE,
    "cell ": catalogue.CELL,
    placement.PLACEMENT: catalogue.PLACEMENT,
}

_projects: set[str] = set()
_lock = threading.Lock()


class RequestCounts(RequestMetrics):
    """Counts what requests report."""

    def __init__(self, start: Callable[[], None]) -> None:
        self._start = start  # starts the thread that writes, unless there is one

    def begun(self) -> None:
        """Note a request: the first one of a worker starts the thread that writes metrics."""
        self._start()

    def decided(
        self,
        answer: str,
        project: str | None,
        times: Mapping[str, float],
        shunned: Mapping[str, Mask],
        *,
        is_proven: bool,
    ) -> None:
        """Count the decision on a group."""
        add(answer, project)
        counts.observe(catalogue.PLANNING, times[PLANNING])
        counts.observe(catalogue.REQUEST, total_seconds(times))
        for part, seconds in times.items():
            counts.add(catalogue.PART_SECONDS, seconds, part=part)
        if not is_proven:
            counts.count(catalogue.UNPROVEN)
        counts.set_all(catalogue.SHUNNED, {why: int(mask.sum()) for why, mask in shunned.items()})

    def decided_early(self, answer: str, project: str | None) -> None:
        """Count the decision on a request whose group has not been read."""
        add(answer, project)

    def claimed(self, *, is_held: bool) -> None:
        """Count a plan that was to be claimed at once."""
        counts.count(
            catalogue.GANG_CLAIMS, answer=catalogue.HELD if is_held else catalogue.NOT_HELD
        )

    def sent(self, answer: str) -> None:
        """Count a transaction by Placement's answer."""
        counts.count(catalogue.TRANSACTIONS, answer=answer)

    def degraded(self, source: str, others: Collection[str]) -> None:
        """Count a source that did not answer a request, unless others of its kind are counted."""
        if (kind := kind_of(source)) not in map(kind_of, others):
            counts.count(catalogue.DEGRADED, source=kind)

    def failed(self, plugin: str) -> None:
        """Count an exception that was caught in a filter or weigher."""
        counts.count(catalogue.ERRORS, plugin=plugin)

    def lost_line(self) -> None:
        """Count a line that could not be written to the decision log."""
        counts.count(catalogue.LOST_LINES)


def add(answer: str, project: str | None) -> None:
    """Count the decision on one request.

    :param answer: one of ``catalogue.ANSWERS``
    :param project: of the request; counted by it only with ``metrics_project``
    """
    if not counts.is_on():
        return
    mode = CONF.hpc_sched.mode
    counts.count(catalogue.DECISIONS, answer=answer, mode=mode)
    if conf.flag(CONF, "metrics_project"):
        shown = _shown(project)
        for known in catalogue.ANSWERS:
            counts.expose(catalogue.PROJECT_DECISIONS, answer=known, mode=mode, project=shown)
        counts.count(catalogue.PROJECT_DECISIONS, answer=answer, mode=mode, project=shown)


def show(projects: Iterable[str]) -> None:
    """Count projects by their ids: an earlier worker has, whose counts this one goes on from."""
    for project in sorted(projects):
        _shown(project)


def kind_of(source: str, other: str = catalogue.OTHER) -> str:
    """Return the kind of a source, as the metrics name it.

    :param other: the kind of a source whose name says none
    """
    return next((kind for start, kind in _KINDS.items() if source.startswith(start)), other)


def _shown(project: str | None) -> str:
    if project in (None, OTHER_PROJECTS):
        return OTHER_PROJECTS
    with _lock:
        if len(_projects) < MAX_PROJECTS:
            _projects.add(project)
        return project if project in _projects else OTHER_PROJECTS
