"""Counts of the decisions on requests."""

import threading
from collections.abc import Iterable

import nova.conf

from hpc_sched import conf
from hpc_sched.metrics import catalogue, counts

CONF = nova.conf.CONF

MAX_PROJECTS = 200  # values of the label project; others are counted together
OTHER_PROJECTS = "other"

_projects: set[str] = set()
_lock = threading.Lock()


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


def _shown(project: str | None) -> str:
    if project in (None, OTHER_PROJECTS):
        return OTHER_PROJECTS
    with _lock:
        if len(_projects) < MAX_PROJECTS:
            _projects.add(project)
        return project if project in _projects else OTHER_PROJECTS
