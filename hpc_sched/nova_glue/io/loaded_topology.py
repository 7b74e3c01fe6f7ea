"""The fabric that this nova-scheduler places on: loaded at start, reloaded when it changes."""

import re
import threading
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import nova.conf
from nova.scheduler import host_manager
from oslo_config import cfg
from oslo_log import log as logging

from hpc_sched import conf, exceptions
from hpc_sched.nova_glue.io import topology_watch
from hpc_sched.nova_glue.io.watched_file import fingerprint
from hpc_sched.topology import hostlist
from hpc_sched.topology.compare import difference
from hpc_sched.topology.host_names import HostNames
from hpc_sched.topology.model import Topology
from hpc_sched.topology.readers import driver_command
from hpc_sched.topology.readers import topology_driver as topology_base

CONF = nova.conf.CONF
LOG = logging.getLogger(__name__)

# Folding names without a pattern (UUIDs) takes its time, and this happens within a request.
MAX_LISTED = 1000
_MAX_PROBLEMS = 20
# How many seconds after a look at a command's output or a database the start takes it as it was.
_START = 30.0
_NUMBER = re.compile(r"0x[0-9a-fA-F]+|[0-9]+")


class Fabric:
    """One loaded topology with the index that finds Nova's hosts in it.

    Immutable but for the note that its unknown hosts have been reported.
    """

    def __init__(self, topology: Topology) -> None:
        self.topology = topology
        self.names = HostNames(topology)
        self._lock = threading.Lock()
        self._reported: frozenset[str] | None = None

    def name_of(self, host: str, nodename: str | None) -> str:
        """Return the topology's name of a hypervisor; its own name where it has none."""
        return self.names.find(host, nodename) or nodename or host

    def report_unknown(self, names: Iterable[str]) -> None:
        """Log the hosts that the topology does not name: one WARNING per load, then INFO."""
        with self._lock:
            first = self._reported is None
            new = frozenset(names) - (self._reported or frozenset())
            if not new:
                return
            self._reported = (self._reported or frozenset()) | new
        shown = sorted(new)[:MAX_LISTED]
        LOG.log(
            logging.WARNING if first else logging.INFO,
            "%d hosts are not in the topology and count as leaves of their own at the "
            "greatest distance: %s%s",
            len(new),
            hostlist.fold(shown),
            f" and {len(new) - len(shown)} more" if len(new) > len(shown) else "",
        )


def names_in(
    current: Fabric, states: Sequence[host_manager.HostState]
) -> tuple[list[str], list[str]]:
    """Return the topology's name of each host, and the names it does not know.

    A short name that two hosts of the cloud would share belongs to neither.
    """
    return current.names.find_all([(state.host, state.nodename) for state in states])


@dataclass(frozen=True, slots=True)
class _Held:
    """The fabric in use, and the description that was looked at last."""

    source: tuple[str, dict[str, Any]]  # driver and options
    seen: object  # mark of the description, of a wrong one too; None where nobody can tell
    fabric: Fabric
    files: tuple[object, ...] = ()  # what tells that the source's files are the same
    read_at: float = 0.0  # a time.monotonic()
    wrong: str = ""  # what was said of a description that is wrong; of one that is missing, less


_lock = threading.Lock()
_held: _Held | None = None


def start() -> None:
    """Make ready what filters and weighers need: a scheduler that lacks it does not start.

    :raises exceptions.TopologyError: where the topology is missing or wrong
    :raises ValueError: where an option of [hpc_sched] has a value that cannot be used
    """
    conf.register_opts(CONF)
    conf.check(CONF)
    load()
    # One function however often it is registered: a set.
    CONF.register_mutate_hook(_on_mutate)


def load() -> Fabric:
    """Return the fabric that the configuration names, read anew only if that has changed.

    Called when filters and weighers are built, so that a scheduler whose topology is missing
    or wrong does not start.

    :raises exceptions.TopologyError: naming file, line or key, and what was expected
    """
    global _held
    conf.register_opts(CONF)
    source = conf.topology_source(CONF)
    with _lock:
        held = _held
        seen = _fingerprints(source[1])
        # Every filter and weigher asks; a command or the database is asked once for all.
        if (
            held is not None
            and not held.wrong
            and (held.source, held.files) == (source, seen)
            and (source[1].get("path") or time.monotonic() - held.read_at < _START)
        ):
            return held.fabric
        driver = topology_base.driver(source[0], **source[1])
        description = driver.read()
        fabric = Fabric(driver.parse(description))
        _held = _Held(source, driver.mark(description), fabric, seen, time.monotonic())
    LOG.info("Topology loaded: %s (%s)", fabric.topology.summary(), _name(source))
    _log_remarks(fabric.topology)
    return fabric


def reload() -> bool:
    """Read the fabric again if its description has changed, and tell whether it is another now.

    It is replaced as a whole, by one assignment: who has it keeps what it has. A description that
    is wrong, or an option, is one ERROR a mistake, and the last good fabric stays in use.
    """
    global _held
    with _lock:
        held = _held
        if held is None:
            return False
        source, files = held.source, held.files
        mark: object = None
        try:
            conf.check(CONF)
            source = conf.topology_source(CONF)
            files = _fingerprints(source[1])
            driver = topology_base.driver(source[0], **source[1])
            description = driver.read()
            mark = driver.mark(description)
            if mark is not None and (held.source, held.seen) == (source, mark):
                _held = replace(held, files=files, read_at=time.monotonic())
                return False
            new = driver.parse(description)
            change = difference.between(held.fabric.topology, new)
        except Exception as error:
            wrong, is_known = _wrong(error)
            # Commands and databases name processes and times: [4711] is no other mistake.
            mistake = wrong if mark is not None else _NUMBER.sub("#", wrong)
            if (held.source, held.wrong) != (source, mistake):
                LOG.error("%s; the last good topology stays in use", wrong, exc_info=not is_known)
            # What is no fault of the description is tried again.
            seen = mark if is_known else None
            _held = replace(held, source=source, seen=seen, files=files, wrong=mistake)
            return False
        # The same fabric keeps its note of the hosts that have been reported.
        fabric = Fabric(new) if change else held.fabric
        _held = _Held(source, mark, fabric, files, time.monotonic())
    if change:
        LOG.info(
            "Topology changed: %s; now %s (%s)", change.summary(), new.summary(), _name(source)
        )
        _log_remarks(new)
    elif held.wrong:
        LOG.info("The topology is right again, and unchanged (%s)", _name(source))
    return bool(change)


def _wrong(error: Exception) -> tuple[str, bool]:
    """Return what the log says of an error, and whether that needs no traceback."""
    if isinstance(error, exceptions.TopologyError):
        return "; ".join(error.problems[:_MAX_PROBLEMS]), True
    if isinstance(error, exceptions.ConfigError | cfg.Error):
        return str(error), True
    # A site's own driver may raise anything.
    return f"Reading the topology failed: {type(error).__name__}: {error}", False


def _interval() -> float:
    """Return the seconds between two looks, by default where the option is wrong."""
    try:
        return float(CONF.hpc_sched.topology_reload_interval)
    except ValueError:  # reload() tells of it
        return float(conf.TOPOLOGY_RELOAD_INTERVAL)


_watch = topology_watch.Watch(reload, _interval)


def current() -> Fabric:
    """Return the fabric as it was loaded last; loads it where nothing was.

    From the first call in a process on, a thread looks for changes.
    """
    held = _held
    fabric = held.fabric if held is not None else load()
    _watch.start()
    return fabric


def _on_mutate(_conf: object, _fresh: object) -> None:
    """Look for a change now: Nova's service has got SIGHUP.

    In the parent of the workers nobody is served: it reads at once, so that the workers which it
    forks next begin with what is right. A worker's thread does it in the background.
    """
    if not _watch.wake():
        reload()


def _fingerprints(options: Mapping[str, Any]) -> tuple[object, ...]:
    return tuple(fingerprint(options.get(name)) for name in ("path", "name_map"))


def _name(source: tuple[str, Mapping[str, Any]]) -> str:
    """Return what the log calls a source."""
    driver, options = source
    command = options.get("command")
    return str(options.get("path") or (driver_command.shown(command) if command else driver))


def _log_remarks(topology: Topology) -> None:
    for remark in topology.remarks[:_MAX_PROBLEMS]:
        LOG.warning("Topology: %s", remark)
    if len(topology.remarks) > _MAX_PROBLEMS:
        LOG.warning(
            "Topology: %d more remarks, see hpc-sched topology validate",
            len(topology.remarks) - _MAX_PROBLEMS,
        )
