"""The limits of cache scores and the interference index of this cloud."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import nova.conf
from nova.scheduler import host_manager
from oslo_log import log as logging

from hpc_sched.core.sharing.cache_interference import (
    ALPHA,
    BETA,
    InterferenceIndex,
    Limits,
    limits_in,
)
from hpc_sched.core.sharing.interference_file import read_index
from hpc_sched.nova_glue.io.watched_file import WatchedFile

CONF = nova.conf.CONF
LOG = logging.getLogger(__name__)

_EMPTY = InterferenceIndex({})
_file: WatchedFile[InterferenceIndex] = WatchedFile("interference index", read_index)


@dataclass(frozen=True, slots=True)
class _Company:
    """An index, and the bad company in it at one tolerance."""

    index: InterferenceIndex
    tolerance: float
    bad: Mapping[str, frozenset[str]]
    applications: frozenset[str]


_company = _Company(_EMPTY, 1.0, {}, frozenset())


def start() -> None:
    """Read the interference index, if one is configured.

    :raises exceptions.InterferenceError: if it is missing or wrong
    """
    if CONF.hpc_sched.interference_file:
        _file.start(CONF.hpc_sched.interference_file)


def bad_company(name: str | None) -> frozenset[str]:
    """Return the applications with which a named one must not share a host.

    One stat() of the index, which is read again if it has changed.
    """
    return _current().bad.get(name, frozenset()) if name is not None else frozenset()


def is_unknown(name: str | None) -> bool:
    """True if an application is missing in an index that has any."""
    known = _current().applications
    return name is not None and bool(known) and name not in known


def limits_of(states: Sequence[host_manager.HostState]) -> list[Limits]:
    """Return the limits of each host: the options, or metadata of its aggregates.

    Of several aggregates the lowest value counts. Values that are no number >= 0 are ignored,
    with one WARNING a call.
    """
    default = Limits(CONF.hpc_sched[ALPHA], CONF.hpc_sched[BETA])
    wrong: set[str] = set()
    found = []
    for state in states:
        if not state.aggregates:
            found.append(default)
            continue
        limits, no_numbers = limits_in([there.metadata for there in state.aggregates], default)
        found.append(limits)
        wrong.update(no_numbers)
    if wrong:
        LOG.warning(
            "Metadata of host aggregates is left out, expected a number >= 0: %s",
            ", ".join(sorted(wrong)),
        )
    return found


def _current() -> _Company:
    global _company
    path, tolerance = CONF.hpc_sched.interference_file, CONF.hpc_sched.interference_tolerance
    index = (_file.current(path) if path else None) or _EMPTY
    held = _company
    if held.index is not index or held.tolerance != tolerance:
        held = _Company(index, tolerance, index.bad_company(tolerance), index.applications)
        _company = held
    return held
