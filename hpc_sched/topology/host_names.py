"""Topology hosts of Nova's hypervisors."""

from collections import Counter
from collections.abc import Sequence

from hpc_sched.topology.grouping import by_key
from hpc_sched.topology.model import Topology


def short_name(name: str) -> str | None:
    """Return a host name up to its first dot, or None if that is empty or a number (addresses)."""
    short = name.partition(".")[0]
    return short if short and not short.isdigit() else None


class HostNames:
    """Finds hypervisors in one topology; immutable, built once per topology.

    A nodename is looked up first, then a service host, each by name or id; then the short names
    of both, unless several hosts of the topology share it.
    """

    __slots__ = ("_by_id", "_by_short", "_topology")

    def __init__(self, topology: Topology) -> None:
        shorts = [(short_name(host), host) for host in topology.hosts]
        count = Counter(short for short, _ in shorts)
        self._topology = topology
        self._by_id = {id_: host for host, id_ in topology.host_ids.items()}
        self._by_short = {short: host for short, host in shorts if short and count[short] == 1}

    def find_all(self, places: Sequence[tuple[str, str]]) -> tuple[list[str], list[str]]:
        """Return the name of each hypervisor, and the names that the topology does not have.

        A hypervisor, given as service host and nodename, outside the topology keeps its own name.
        So do several that would share a short name.
        """
        found = [self.find(*place) for place in places]
        named = [(name, place[1]) for name, place in zip(found, places, strict=True)]
        shared = {name for name, nodes in by_key(named).items() if len({*nodes}) > 1}
        names, unknown = [], []
        for name, place in zip(found, places, strict=True):
            if name is None or (name in shared and not self._is_exact(name, place)):
                name = place[1] or place[0]
                unknown.append(name)
            names.append(name)
        return names, unknown

    def _is_exact(self, name: str, place: tuple[str, str]) -> bool:
        return name in place or self._topology.host_ids.get(name) in place

    def find(self, host: str, nodename: str | None = None) -> str | None:
        """Return the topology's name of a hypervisor, or None. O(1)."""
        for name in (nodename, host):
            if name and name in self._topology:
                return name
            if name and name in self._by_id:
                return self._by_id[name]
        for name in (nodename, host):
            short = short_name(name) if name else None
            if short and short in self._by_short:
                return self._by_short[short]
        return None
