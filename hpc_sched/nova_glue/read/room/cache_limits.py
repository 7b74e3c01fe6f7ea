"""The limits of cache scores and the interference index of this cloud."""

import itertools
from collections.abc import Mapping, Sequence

from nova.conf import CONF
from nova.scheduler import host_manager
from oslo_log import log as logging

from hpc_sched import conf, digests
from hpc_sched.core.sharing.cache_interference import (
    ALPHA,
    BETA,
    InterferenceIndex,
    Limits,
    limits_in,
)
from hpc_sched.nova_glue.io import scheduler_digests
from hpc_sched.nova_glue.io.watched_file import WatchedFile

LOG = logging.getLogger(__name__)


def _read(path: str) -> InterferenceIndex:
    """Return the index of a file, and note its digest; raises as ``read_index`` does."""
    # Loaded by optional_modules.
    from hpc_sched.core.sharing.interference_file import read_index

    index = read_index(path)
    scheduler_digests.use_interference(digests.of(index.lines()))
    return index


_file: WatchedFile[InterferenceIndex] = WatchedFile("interference index", _read)


def start() -> None:
    """Read the interference index, if one is configured.

    :raises exceptions.InterferenceError: if it is missing or wrong; in shadow mode that is logged
    """
    try:
        path = CONF.hpc_sched.interference_file
        if path and conf.is_shadow(CONF):
            _file.current(path)
        elif path:
            _file.start(path)
    except Exception:
        if not conf.is_shadow(CONF):
            raise
        LOG.exception("[hpc_sched] interference_file cannot be read")


def incompatible(name: str | None) -> frozenset[str]:
    """Return the applications with which a named one must not share a host.

    One stat() of the index, which is read again if it has changed. One WARNING a call if the
    application is missing in an index that has any.
    """
    index = _index()
    if index is None or name is None or not index.performance:
        return frozenset()
    if name not in index.applications:
        LOG.warning("Application %s is not in the interference index: kept apart from none", name)
    pairs = {pair: speed for pair, speed in index.performance.items() if name in pair}
    found = InterferenceIndex(pairs).bad_company(CONF.hpc_sched.interference_tolerance)
    return found.get(name, frozenset())


def attracting(name: str | None) -> Mapping[str, float]:
    """Return the applications that attract a named one, each with what the two gain.

    As :meth:`InterferenceIndex.attracting`. One stat() of the index for an application with a name.
    """
    index = None if name is None else _index()
    if index is None:
        return {}
    return index.attracting(name, CONF.hpc_sched.interference_tolerance)


def _index() -> InterferenceIndex | None:
    path = CONF.hpc_sched.interference_file
    return _file.current(path) if path else None


def limits_of(states: Sequence[host_manager.HostState]) -> list[Limits]:
    """Return the limits of each host: the options, or metadata of its aggregates.

    Of several aggregates the lowest value counts. Values that are no number >= 0 are ignored,
    with one WARNING a call.
    """
    default = Limits(CONF.hpc_sched[ALPHA], CONF.hpc_sched[BETA])
    wrong: set[str] = set()
    # Most clouds have few aggregates, on many hosts, and few of these set a limit.
    each = list(itertools.chain.from_iterable(state.aggregates or () for state in states))
    aggregates = dict(zip(map(id, each), each, strict=True))
    setting = {name for name, one in aggregates.items() if one.metadata.keys() & {ALPHA, BETA}}
    if not setting:
        return [default] * len(states)
    found = []
    for state in states:
        metadata = [one.metadata for one in state.aggregates or () if id(one) in setting]
        limits, no_numbers = limits_in(metadata, default) if metadata else (default, [])
        found.append(limits)
        wrong.update(no_numbers)
    if wrong:
        LOG.warning(
            "Metadata of host aggregates is left out, expected a number >= 0: %s",
            ", ".join(sorted(wrong)),
        )
    return found
