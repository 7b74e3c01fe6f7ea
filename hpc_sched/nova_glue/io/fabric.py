"""A loaded topology, as requests use it, and the source that it was read from."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from nova.conf import CONF
from oslo_config import cfg
from oslo_log import log as logging

from hpc_sched import clock, digests, exceptions
from hpc_sched.nova_glue.io.watched_file import fingerprint
from hpc_sched.topology import canonical_text, hostlist
from hpc_sched.topology.host_names import HostNames
from hpc_sched.topology.model import Topology
from hpc_sched.topology.readers import topology_driver
from hpc_sched.topology.readers.reader_errors import shown_command

if TYPE_CHECKING:
    from hpc_sched.topology.compare.settling import Waiting

LOG = logging.getLogger(__name__)

# Longest list of host names in a log line: a request waits while they are folded.
MAX_LISTED = 1000
# Of a description, in the log.
MAX_PROBLEMS = 20
# Seconds for which the metrics show what requests have found last.
RECENT = 3600.0


class Fabric:
    """A loaded topology with its digest, the index of Nova's hosts, and the unknown ones."""

    def __init__(self, topology: Topology) -> None:
        self.topology = topology
        self.names = HostNames(topology)
        self.digest = digests.of(canonical_text.lines_of(topology))
        self._lock = threading.Lock()
        # Those that were logged, to the monotonic time at which each was a candidate last.
        self._unknown: dict[str, float] = {}

    def name_of(self, host: str, nodename: str | None) -> str:
        """Return a hypervisor's name in the topology, or its own if it is unknown there."""
        return self.names.find(host, nodename) or nodename or host

    @property
    def unknown_hosts(self) -> int:
        """The number of unknown hosts among the candidates of the last hour."""
        since = clock.current.monotonic() - RECENT
        with self._lock:
            return sum(seen >= since for seen in self._unknown.values())

    def report_unknown(self, names: Iterable[str]) -> None:
        """Log hosts that the topology does not name, once each: one WARNING per load, then INFO."""
        with self._lock:
            level = logging.INFO if self._unknown else logging.WARNING
            found = set(names)
            new = found - self._unknown.keys()
            self._unknown.update(dict.fromkeys(found, clock.current.monotonic()))
        if new:
            LOG.log(
                level,
                "%d hosts are not in the topology and count as leaves of their own at the "
                "greatest distance: %s",
                len(new),
                hostlist.first(sorted(new), MAX_LISTED),
            )


@dataclass(frozen=True, slots=True)
class Loaded:
    """The fabric in use, and the description that was read last."""

    source: tuple[str, dict[str, Any]]  # driver and options, of that description
    seen: object  # mark of the last description, valid or not; None to read it again
    fabric: Fabric
    files: tuple[object, ...] = ()  # fingerprints of the source's files
    read_at: float = 0.0  # monotonic time of the last good reading
    error: str = ""  # logged last; without its numbers if the description was not read
    waiting: Waiting | None = None  # changes for topology_settle_time
    is_other: bool = False  # the fabric in use comes from another source

    @property
    def is_refused(self) -> bool:
        """True if the description that was read last is not in use, being wrong."""
        return bool(self.error)

    @property
    def waiting_changes(self) -> int:
        """The number of hosts and switches whose changes wait."""
        return len(self.waiting.hosts) + len(self.waiting.switches) if self.waiting else 0


def read_source(
    source: tuple[str, dict[str, Any]],
) -> tuple[topology_driver.TopologyDriver, Any, object]:
    """Return the driver of a source, the description that it reads, and the description's mark.

    The mark changes with the description, and with the option that decides whether it is used. It
    is None if the driver has none.
    """
    driver = topology_driver.driver(source[0], **source[1])
    description = driver.read()
    if (mark := driver.mark(description)) is not None:
        mark = mark, CONF.hpc_sched.topology_accept_incomplete
    return driver, description, mark


def check_complete(topology: Topology) -> None:
    """Raise TopologyError for a description that was cut off, unless that is accepted."""
    if topology.incomplete and not CONF.hpc_sched.topology_accept_incomplete:
        why = "incomplete, and topology_accept_incomplete is false"
        raise exceptions.TopologyError(*(f"{text}: {why}" for text in topology.incomplete))


def fingerprints(options: Mapping[str, Any]) -> tuple[object, ...]:
    """Return a value that changes with the files that options name."""
    return tuple(fingerprint(options.get(name)) for name in ("path", "name_map"))


def source_name(source: tuple[str, Mapping[str, Any]]) -> str:
    """Return the file, command or driver of a source, for log lines."""
    driver, options = source
    command = options.get("command")
    return str(options.get("path") or (shown_command(command) if command else driver))


def error_text(error: Exception) -> tuple[str, bool]:
    """Return the log text of an error, and whether it is a known kind, without a traceback."""
    if isinstance(error, exceptions.TopologyError):
        return "; ".join(error.problems[:MAX_PROBLEMS]), True
    if isinstance(error, exceptions.ConfigError | cfg.Error):
        return str(error), True
    # A site's own driver may raise anything.
    return f"Reading the topology failed: {type(error).__name__}: {error}", False
