"""Counts of the decisions on requests."""

import threading

import nova.conf

from hpc_sched.metrics import catalogue, counts

CONF = nova.conf.CONF

MAX_PROJECTS = 200  # values of the label project; others are counted together
OTHER_PROJECTS = "other"

_projects: set[str] = set()
_lock = threading.Lock()


def add(answer: str, project: str | None) -> None:
    """Count the decision on one request.

    :param answer: one of ``catalogue.ANSWERS``
    :param project: of the request; shown only with ``metrics_project``
    """
    if not counts.is_on():
        return
    mode = CONF.hpc_sched.mode
    if CONF.hpc_sched.metrics_project:
        counts.count(catalogue.DECISIONS, answer=answer, mode=mode, project=_shown(project))
    else:
        counts.count(catalogue.DECISIONS, answer=answer, mode=mode)


def _shown(project: str | None) -> str:
    if project is None:
        return OTHER_PROJECTS
    with _lock:
        if len(_projects) < MAX_PROJECTS:
            _projects.add(project)
        return project if project in _projects else OTHER_PROJECTS
