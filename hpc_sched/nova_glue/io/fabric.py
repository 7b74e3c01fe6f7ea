"""A loaded topology, as requests use it."""

from __future__ import annotations

import threading
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from oslo_log import log as logging

from hpc_sched import clock, digests
from hpc_sched.topology import canonical_text, hostlist
from hpc_sched.topology.host_names import HostNames
from hpc_sched.topology.model import Topology

if TYPE_CHECKING:
    from hpc_sched.topology.compare.settling import Waiting

LOG = logging.getLogger(__name__)

# Longest list of host names in a log line: a request waits while they are folded.
MAX_LISTED = 1000
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
