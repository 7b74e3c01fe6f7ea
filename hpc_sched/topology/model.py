"""The fabric as an immutable tree with dense indices, built once and shared by all requests."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from hpc_sched import exceptions
from hpc_sched.topology.tree import (
    Details,
    Switch,
    Tree,
    TreeReader,
    frozen,
    level_names,
    name_rank,
)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Topology:
    """A forest of switches with hosts below its leaves.

    Indices are dense and in the order of the description: ``hosts[i]`` and ``switches[s]``.
    ``groups`` has the shape (depth, hosts): ``groups[l - 1, i]`` is the index of the highest
    switch of level l or lower above host i, so two hosts share a switch on level l exactly
    where their entries agree; a branch shorter than its siblings is thereby padded just below
    their parent and hops is an ultrametric.

    ``host_processors`` holds the processor types that single hosts state for themselves; what a
    switch states for all below it is in ``switches``. Ask :meth:`processor_of` for either.

    ``remarks`` are what the description's reader put right or doubts, a sentence each.

    Built with :meth:`from_tree` or by a driver; never changed afterwards.
    """

    hosts: tuple[str, ...]
    switches: tuple[Switch, ...]
    levels: tuple[str, ...]  # names, bottom up; as many as the tree is deep
    groups: NDArray[np.int64]
    name_rank: NDArray[np.int64]  # place of each host in the order of names, the last tie-break
    host_processors: Mapping[str, str]
    _host_index: dict[str, int]
    _switch_index: dict[str, int]
    remarks: tuple[str, ...] = ()

    @classmethod
    def from_tree(
        cls,
        tree: Tree,
        levels: Sequence[str] = (),
        processors: Mapping[str, str] | None = None,
        host_processors: Mapping[str, str] | None = None,
        details: Details | None = None,
        remarks: Sequence[str] = (),
    ) -> "Topology":
        """Return the topology of nested switches, ``{"core": {"leaf1": ["h1", "h2"]}}``.

        Several switches at the top are islands. Linear in hosts and switches.

        :param levels: names of the levels, bottom up; as many as the tree is deep, or none
        :param processors: switch name to the processor type of the hosts below it
        :param host_processors: host name to its own processor type, whatever its switches say
        :param details: all that is known of switches, in place of ``processors``
        :param remarks: what the description's reader put right or doubts
        :raises exceptions.TopologyError: for an empty tree or switch, a switch or host that
            stands twice, a wrong number of level names, or a processor type of a host that
            the tree does not have
        """
        parts = TreeReader(details or Details(processors or {})).read(tree, tuple(levels))
        own = dict(host_processors or {})
        unknown = sorted(own.keys() - parts.host_index.keys())
        if unknown:
            raise exceptions.TopologyError(
                f"host {unknown[0]!r} has a processor type, but no place in the tree"
            )
        return cls(
            hosts=parts.hosts,
            switches=parts.switches,
            levels=parts.levels,
            groups=parts.groups,
            name_rank=name_rank(parts.hosts),
            host_processors=own,
            _host_index=parts.host_index,
            _switch_index=parts.switch_index,
            remarks=tuple(remarks),
        )

    def renamed(self, names: Mapping[str, str]) -> "Topology":
        """Return the same fabric with other names for some hosts. O(hosts).

        :param names: host to its new name; those that are no hosts here do not matter
        :raises exceptions.TopologyError: where two hosts would have one name
        """
        hosts = tuple(names.get(host, host) for host in self.hosts)
        if hosts == self.hosts:
            return self
        index: dict[str, int] = {}
        for i, host in enumerate(hosts):
            if index.setdefault(host, i) != i:
                first = self.hosts[index[host]]
                raise exceptions.TopologyError(
                    f"hosts {first!r} and {self.hosts[i]!r} would both be called {host!r}"
                )
        own = {names.get(host, host): type_ for host, type_ in self.host_processors.items()}
        return replace(
            self,
            hosts=hosts,
            name_rank=name_rank(hosts),
            host_processors=own,
            _host_index=index,
        )

    def __repr__(self) -> str:
        return f"<Topology {len(self.hosts)} hosts, {len(self.leaves)} leaves, depth {self.depth}>"

    @property
    def depth(self) -> int:
        """The level of the highest root: 1 for a single leaf switch."""
        return int(self.groups.shape[0])

    @property
    def leaves(self) -> tuple[str, ...]:
        """The names of the lowest-level switches, in the order of the description."""
        return tuple(switch.name for switch in self.switches if switch.level == 1)

    @property
    def roots(self) -> tuple[str, ...]:
        """The names of the switches without a parent: more than one where there are islands."""
        return tuple(switch.name for switch in self.switches if switch.parent < 0)

    @property
    def leaf_index(self) -> NDArray[np.int64]:
        """The index in ``switches`` of the leaf above each host, in the order of ``hosts``."""
        row: NDArray[np.int64] = self.groups[0]
        return row

    def __contains__(self, host: object) -> bool:
        return host in self._host_index

    def index_of(self, host: str) -> int:
        """Return the index of a host in ``hosts``.

        :raises exceptions.UnknownHostError: for a host that the topology does not name
        """
        try:
            return self._host_index[host]
        except KeyError:
            raise exceptions.UnknownHostError(f"host {host!r} is not in the topology") from None

    def switch_index(self, name: str) -> int:
        """Return the index of a switch in ``switches``.

        :raises exceptions.UnknownHostError: for a name that is no switch
        """
        try:
            return self._switch_index[name]
        except KeyError:
            raise exceptions.UnknownHostError(f"switch {name!r} is not in the topology") from None

    def hops(self, a: str, b: str) -> float:
        """Return the switches on the path between two hosts, in O(depth).

        0 on one host, 1 under one leaf, 2 * l - 1 where the lowest common switch is on level
        l, infinity between islands.

        :raises exceptions.UnknownHostError: for a host that the topology does not name
        """
        left, right = self.index_of(a), self.index_of(b)
        if left == right:
            return 0
        for level in range(self.depth):
            if self.groups[level, left] == self.groups[level, right]:
                return 2 * level + 1
        return math.inf

    def leaf_of(self, host: str) -> str:
        """Return the name of the leaf switch above a host, in O(1).

        :raises exceptions.UnknownHostError: for a host that the topology does not name
        """
        return self.switches[int(self.groups[0, self.index_of(host)])].name

    def ancestors(self, host: str) -> tuple[str, ...]:
        """Return the names of the switches above a host, leaf first.

        :raises exceptions.UnknownHostError: for a host that the topology does not name
        """
        above = []
        switch = int(self.groups[0, self.index_of(host)])
        while switch >= 0:
            above.append(self.switches[switch].name)
            switch = self.switches[switch].parent
        return tuple(above)

    def hosts_of(self, switch: str) -> tuple[str, ...]:
        """Return the hosts below a switch of any level, in the order of ``hosts``.

        :raises exceptions.UnknownHostError: for a name that is no switch
        """
        wanted = self.switch_index(switch)
        row = self.groups[self.switches[wanted].level - 1]
        return tuple(self.hosts[i] for i in np.flatnonzero(row == wanted))

    def children_of(self, switch: str) -> tuple[str, ...]:
        """Return the switches just below a switch; none below a leaf.

        :raises exceptions.UnknownHostError: for a name that is no switch
        """
        parent = self.switch_index(switch)
        return tuple(child.name for child in self.switches if child.parent == parent)

    def processor_of(self, host: str) -> str | None:
        """Return a host's own processor type, else what the nearest switch states, or None.

        O(depth), and O(1) for a host with a type of its own.

        :raises exceptions.UnknownHostError: for a host that the topology does not name
        """
        own = self.host_processors.get(host)
        if own is not None:
            return own
        above = self.groups.item(0, self.index_of(host))
        while above >= 0:
            switch = self.switches[above]
            if switch.processor is not None:
                return switch.processor
            above = switch.parent
        return None

    def including(self, names: Iterable[str]) -> "Topology":
        """Return a topology that knows the named hosts too.

        A host that the description does not name hangs directly below the root, as a leaf of
        its own named like the host; with several islands it is an island of its own. The same
        object comes back where nothing is missing. O(hosts * depth).
        """
        missing = sorted({name for name in names if name not in self._host_index})
        if not missing:
            return self
        switches = list(self.switches)
        groups = self.groups
        levels = self.levels
        roots = [i for i, switch in enumerate(switches) if switch.parent < 0]
        parent = roots[0] if len(roots) == 1 else -1
        if parent >= 0 and switches[parent].level == 1:
            # One leaf is the whole fabric: the newcomers need a switch to meet it at.
            switches[parent] = replace(switches[parent], parent=len(switches))
            parent = len(switches)
            switches.append(Switch(_free_name("root", self._switch_index), 2, -1))
            groups = np.vstack([groups, np.full((1, groups.shape[1]), parent)])
            levels = level_names(2, levels)
        taken = {switch.name: i for i, switch in enumerate(switches)}
        first = len(switches)
        for name in missing:
            leaf = _free_name(name, taken)
            taken[leaf] = len(switches)
            switches.append(Switch(leaf, 1, parent))
        columns = np.tile(np.arange(first, len(switches)), (groups.shape[0], 1))
        if parent >= 0:
            columns[switches[parent].level - 1 :] = parent
        index = dict(self._host_index)
        index.update({name: len(self.hosts) + i for i, name in enumerate(missing)})
        return Topology(
            hosts=self.hosts + tuple(missing),
            switches=tuple(switches),
            levels=levels,
            groups=frozen(np.hstack([groups, columns])),
            name_rank=name_rank(self.hosts + tuple(missing)),
            host_processors=self.host_processors,
            _host_index=index,
            _switch_index=taken,
            remarks=self.remarks,
        )

    def check(self) -> None:
        """Assert every invariant of the structure; for tests."""
        assert self.groups.shape == (len(self.levels), len(self.hosts))
        assert self.depth == max(switch.level for switch in self.switches)
        for s, switch in enumerate(self.switches):
            assert self._switch_index[switch.name] == s
            assert switch.parent < 0 or self.switches[switch.parent].level > switch.level
            if switch.level > 1:
                below = [c.level for c in self.switches if c.parent == s]
                assert switch.level == 1 + max(below)
        assert self.host_processors.keys() <= self._host_index.keys()
        for i, host in enumerate(self.hosts):
            assert self._host_index[host] == i
            above = [self.switch_index(name) for name in self.ancestors(host)]
            for level in range(1, self.depth + 1):
                highest = [s for s in above if self.switches[s].level <= level][-1]
                assert self.groups[level - 1, i] == highest


def _free_name(wanted: str, taken: Mapping[str, int]) -> str:
    """Return the wanted switch name, marked where another switch has it already."""
    while wanted in taken:
        wanted += "'"
    return wanted
