"""The fabric that this nova-scheduler places on: loaded at start, shared by all requests."""

import threading
from collections.abc import Iterable, Sequence

import nova.conf
from nova.scheduler import host_manager
from oslo_log import log as logging

from hpc_sched import conf, exceptions
from hpc_sched import topology as topology_
from hpc_sched.nova_glue.watched_file import fingerprint
from hpc_sched.topology import hostlist
from hpc_sched.topology.model import Topology
from hpc_sched.topology.names import HostNames

CONF = nova.conf.CONF
LOG = logging.getLogger(__name__)

# Folding names without a pattern (UUIDs) takes its time, and this happens within a request.
MAX_LISTED = 1000


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


_lock = threading.Lock()
_current: tuple[object, Fabric] | None = None


def load() -> Fabric:
    """Return the fabric that the configuration names, read anew only if that has changed.

    Called when filters and weighers are built, so that a scheduler whose topology is missing
    or wrong does not start.

    :raises exceptions.TopologyError: naming file, line or key, and what was expected
    """
    global _current
    conf.register_opts(CONF)
    path = CONF.hpc_sched.topology_file
    with _lock:
        seen = (CONF.hpc_sched.topology_driver, path, fingerprint(path))
        if _current is not None and _current[0] == seen:
            return _current[1]
        fabric = Fabric(_read(CONF.hpc_sched.topology_driver, path))
        _current = (seen, fabric)
    LOG.info(
        "Topology loaded: %d hosts, %d leaves, depth %d (%s)",
        len(fabric.topology.hosts),
        len(fabric.topology.leaves),
        fabric.topology.depth,
        path or CONF.hpc_sched.topology_driver,
    )
    return fabric


def start() -> None:
    """Make ready what filters and weighers need: a scheduler that lacks it does not start.

    :raises exceptions.TopologyError: where the topology is missing or wrong
    :raises ValueError: where an option of [hpc_sched] has a value that cannot be used
    """
    conf.register_opts(CONF)
    conf.check(CONF)
    load()


def current() -> Fabric:
    """Return the fabric as it was loaded last; loads it where nothing was."""
    return _current[1] if _current is not None else load()


def _read(driver: str, path: str | None) -> Topology:
    if driver == "yaml" and not path:
        raise exceptions.TopologyError(
            "[hpc_sched] topology_file is not set: expected the path of a topology file"
        )
    return topology_.load(driver, **({"path": path} if path else {}))
