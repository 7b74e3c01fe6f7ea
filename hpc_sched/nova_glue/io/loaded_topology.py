"""The topology that this nova-scheduler uses: loaded at start, reloaded when it changes."""

from __future__ import annotations

import math
import re
import threading
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from nova.conf import CONF
from oslo_log import log as logging

from hpc_sched import clock, conf, exceptions
from hpc_sched.configuration import topology_options
from hpc_sched.nova_glue.io import scheduler_digests
from hpc_sched.nova_glue.io.fabric import (
    MAX_PROBLEMS,
    Fabric,
    Loaded,
    check_complete,
    error_text,
    fingerprints,
    read_source,
    source_name,
)
from hpc_sched.nova_glue.io.periodic_thread import PeriodicThread
from hpc_sched.topology.model import Topology

if TYPE_CHECKING:
    from hpc_sched.topology.compare.difference import Difference
    from hpc_sched.topology.compare.settling import Waiting

LOG = logging.getLogger(__name__)

# Seconds after a read of a command's output or a database in which the start reuses it.
_START = 30.0
# In place of a digest, in shadow mode.
NO_TOPOLOGY = "none"
_NUMBER = re.compile(r"0x[0-9a-fA-F]+|[0-9]+")


@dataclass(frozen=True, slots=True)
class _Missing:
    """A topology that could not be loaded when it was tried last, in shadow mode."""

    error: str = "the topology has not been loaded yet"
    logged: str = ""  # the error without its numbers
    tried_at: float = -math.inf  # a monotonic time


load_lock = threading.Lock()  # held while a topology is being read
_loaded: Loaded | None = None
_missing = _Missing()
_logged_options: set[str] = set()  # errors in options that have been logged, in shadow mode


def start() -> None:
    """Check the options and load the topology, for filters and weighers.

    In shadow mode errors are logged, once each, except an invalid mode.

    :raises exceptions.TopologyError: if the topology is missing or invalid
    :raises ValueError: if an option of [hpc_sched] has an invalid value
    """
    conf.register_opts(CONF)
    _check_options()
    if not conf.is_shadow(CONF):
        load()
    # Every filter and weigher calls this: a command that fails is run once for all.
    elif clock.current.monotonic() - _missing.tried_at >= _START:
        _try_to_load()
    # oslo.config keeps a set of hooks: repeated calls register one.
    CONF.register_mutate_hook(on_mutate)


def _check_options() -> None:
    """Raise ValueError for an option with an invalid value; in shadow mode log each once."""
    if not conf.is_shadow(CONF):
        conf.check(CONF)
        return
    for text in map(str, conf.errors(CONF)):
        if text not in _logged_options:
            LOG.error("%s; nova-scheduler runs all the same, its mode is shadow", text)
        _logged_options.add(text)


def load() -> Fabric:
    """Load the configured topology, or reuse the loaded one; raises as :func:`start` does."""
    global _loaded
    conf.register_opts(CONF)
    source = topology_options.source(CONF)
    with load_lock:
        before = _loaded
        files = fingerprints(source[1])
        # Every filter and weigher calls this: a command or the database is read once for all.
        if (
            before
            and not before.error
            and (before.source, before.files) == (source, files)
            and (source[1].get("path") or clock.current.monotonic() - before.read_at < _START)
        ):
            return before.fabric
        driver, description, mark = read_source(source)
        fabric = Fabric(driver.parse(description))
        _loaded = Loaded(source, mark, fabric, files, clock.current.monotonic())
    LOG.info("Topology loaded: %s (%s)", fabric.topology.summary(), source_name(source))
    _log_remarks(fabric.topology)
    _report_digests()
    return fabric


def _try_to_load() -> None:
    """Load the topology in shadow mode; log a new error once."""
    global _missing
    try:
        load()
    except Exception as error:
        text, is_known = error_text(error)
        logged = _NUMBER.sub("#", text)
        if logged != _missing.logged:
            LOG.error("%s; without a topology nothing is planned", text, exc_info=not is_known)
        _missing = _Missing(text, logged, clock.current.monotonic())
        if _loaded is None:
            scheduler_digests.use_topology(NO_TOPOLOGY, "no topology")
    else:
        _missing = _Missing()


def reload() -> bool:
    """Read the topology again if its description has changed; return whether it changed.

    Requests being served keep the old one. Each new mistake in the description or in an option is
    logged once, as an ERROR, and the last good topology stays in use.
    """
    if _loaded is None and conf.is_shadow(CONF):
        _try_to_load()
        return _loaded is not None
    is_changed = _read_again()
    # Options may have changed too.
    _report_digests()
    return is_changed


def _read_again() -> bool:
    global _loaded
    with load_lock:
        before = _loaded
        if before is None:
            return False
        source, files = before.source, before.files
        mark: object = None
        try:
            _check_options()
            source = topology_options.source(CONF)
            files = fingerprints(source[1])
            driver, description, mark = read_source(source)
            is_same = mark is not None and (before.source, before.seen) == (source, mark)
            if is_same and (before.error or not before.waiting):
                _loaded = replace(before, files=files, read_at=clock.current.monotonic())
                return False
            newest = before.waiting.newest if is_same and before.waiting else None
            parsed = newest or driver.parse(description)
            check_complete(parsed)
            is_first = not before.is_other and before.source == source
            new, waiting, change = _compared(before, parsed, driver.is_discovered and is_first)
        except Exception as error:
            text, is_known = error_text(error)
            # Errors of commands and databases differ by process ids and times: ignore numbers.
            mistake = text if mark is not None else _NUMBER.sub("#", text)
            if (before.source, before.error) != (source, mistake):
                LOG.error("%s; the last good topology stays in use", text, exc_info=not is_known)
            _loaded = replace(
                before,
                source=source,
                # Without a known fault in the description it is read again.
                seen=mark if is_known else None,
                files=files,
                error=mistake,
                is_other=before.is_other or before.source != source,
            )
            return False
        # An unchanged fabric keeps its set of unknown hosts that have been logged.
        fabric = Fabric(new) if change else before.fabric
        _loaded = Loaded(source, mark, fabric, files, clock.current.monotonic(), waiting=waiting)
    name = source_name(source)
    if change:
        LOG.info("Topology changed: %s; now %s (%s)", change.summary(), new.summary(), name)
        _log_remarks(new)
    elif waiting and not before.waiting:
        LOG.debug("The topology has changed; the change waits for topology_settle_time (%s)", name)
    elif before.error:
        LOG.info("The topology is right again, and unchanged (%s)", name)
    return bool(change)


def _compared(before: Loaded, new: Topology, waits: bool) -> tuple[Topology, Waiting, Difference]:
    """Return the fabric to use, the changes that wait, and how it differs from the one in use.

    :param waits: whether changes wait for topology_settle_time
    """
    # Loaded with the first change: most fabrics stay what they are.
    from hpc_sched.topology.compare import settling

    used, waiting = before.fabric.topology, settling.NOTHING
    if waits and (seconds := conf.number(CONF, "topology_settle_time")):
        waiting = before.waiting or settling.NOTHING
        new, waiting = settling.settled(used, new, waiting, clock.current.monotonic(), seconds)
    return new, waiting, settling.changes(used, new)


def _report_digests() -> None:
    if (loaded := _loaded) is not None:
        described = f"{loaded.source[0]}, {loaded.fabric.topology.summary()}"
        scheduler_digests.use_topology(loaded.fabric.digest, described)


def reload_interval() -> float:
    """Return the seconds between two reads; the default if the option is invalid."""
    return conf.number(CONF, "topology_reload_interval")


watch = PeriodicThread(reload, reload_interval)


def current() -> Fabric:
    """Return the fabric in use; load it if there is none, and start the thread for changes.

    :raises exceptions.TopologyError: in shadow mode if there is none: no request waits for it
    """
    if (loaded := _loaded) is None and conf.is_shadow(CONF):
        watch.start()
        raise exceptions.TopologyError(_missing.error)
    fabric = loaded.fabric if loaded is not None else load()
    watch.start()
    return fabric


def status() -> Loaded | None:
    """Return the state of the fabric in use, or None if none is loaded."""
    return _loaded


def on_mutate(_conf: object, _fresh: object) -> None:
    """Check for a change now: Nova's service received SIGHUP."""
    # The parent of the workers has no thread to do so in the background. It reads at once, so that
    # the workers that it forks next start with the new topology.
    if not watch.wake():
        reload()


def _log_remarks(topology: Topology) -> None:
    for text in topology.incomplete:
        LOG.warning("Topology: incomplete: %s", text)
    for remark in topology.remarks[:MAX_PROBLEMS]:
        LOG.warning("Topology: %s", remark)
    more = len(topology.remarks) - MAX_PROBLEMS
    if more > 0:
        LOG.warning("Topology: %d more remarks, see hpc-sched topology validate", more)
    ratios = conf.uplink_oversubscription(CONF)
    if ratios or any(switch.links for switch in topology.switches):
        # Most descriptions state no links.
        from hpc_sched.topology.compare import lint

        if found := lint.of_load(topology, ratios):
            LOG.warning("Topology: %s", "; ".join(found))
