"""The topology of a fabric: an immutable tree with dense indices, shared by all requests."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from hpc_sched import exceptions
from hpc_sched.topology import plurals
from hpc_sched.topology.grouping import by_key
from hpc_sched.topology.tree import (
    Details,
    Grown,
    Switch,
    Tree,
    TreeReader,
    level_names,
    name_rank,
    with_leaves,
)

if TYPE_CHECKING:
    from hpc_sched.topology.links import Cables


def _check_ids(ids: Mapping[str, str], hosts: Mapping[str, int]) -> None:
    """Raise a TopologyError unless ids are of known hosts, and clearly theirs."""
    owner: dict[str, str] = {}
    for host, id_ in ids.items():
        if host not in hosts:
            raise exceptions.TopologyError(f"host {host!r} has an id, but no place in the tree")
        other = id_ if id_ in hosts else owner.setdefault(id_, host)
        if other != host:
            raise exceptions.TopologyError(f"hosts {other!r} and {host!r} are both called {id_!r}")


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Topology:
    """A forest of switches with hosts below its leaves.

    Indices are dense and in the order of the description: ``hosts[i]`` and ``switches[s]``.
    Two hosts share a switch on level l exactly where their entries of ``groups[l - 1]`` agree. A
    branch shorter than its siblings is thereby padded just below their parent, and hops is an
    ultrametric.

    Built with :meth:`from_tree` or by a driver; never changed afterwards. Methods raise
    :class:`exceptions.UnknownHostError` for a name that is no host or switch of the topology.
    """

    hosts: tuple[str, ...]
    switches: tuple[Switch, ...]
    levels: tuple[str, ...]  # names, bottom up. Shape (depth,)
    # The highest switch of level l or lower above host i: groups[l - 1, i]. Shape (depth, hosts)
    groups: NDArray[np.int64]
    name_rank: NDArray[np.int64]  # rank of each host by name, the last tie-break. Shape (hosts,)
    host_processors: Mapping[str, str]  # of hosts that state their own, see processor_of
    described: int  # number of hosts that the description names; including() adds those after them
    _host_index: dict[str, int]
    _switch_index: dict[str, int]
    remarks: tuple[str, ...] = ()  # sentences on what the reader corrected or doubts
    incomplete: tuple[str, ...] = ()  # sentences on what is missing in the description
    host_ids: Mapping[str, str] = field(default_factory=dict)  # host to its id, such as a UUID
    # By level: rate of the links below a switch over that of its uplinks, where it is stated.
    oversubscription: Mapping[str, float] = field(default_factory=dict)
    host_links: Mapping[str, Cables] = field(default_factory=dict)  # of hosts, where it is known
    # The root that including() has added next to several islands, -1 without one. It is on the
    # highest level, though its leaves are directly below it.
    unnamed_root: int = -1
    # Follow from the others. Leaves are in the order of ``switches``.
    leaf_switches: NDArray[np.int64] = field(init=False)  # index of each leaf. Shape (leaves,)
    leaf_path: NDArray[np.int64] = field(init=False)  # groups, by leaf. Shape (depth, leaves)
    # The switch just above each leaf, -1 for a root. Shape (leaves,)
    leaf_above: NDArray[np.int64] = field(init=False)
    switch_levels: NDArray[np.int64] = field(init=False)  # shape (switches,)

    def __post_init__(self) -> None:
        """Number the leaves. O(hosts)."""
        host = np.full(len(self.switches), -1)
        host[self.leaf_index] = np.arange(len(self.hosts))
        leaves = np.flatnonzero(host >= 0)
        object.__setattr__(self, "leaf_switches", leaves)
        object.__setattr__(self, "leaf_path", self.groups[:, host[leaves]])
        above = np.array([switch.parent for switch in self.switches], dtype=np.int64)
        object.__setattr__(self, "leaf_above", above[leaves])
        levels = np.array([switch.level for switch in self.switches], dtype=np.int64)
        object.__setattr__(self, "switch_levels", levels)

    @classmethod
    def from_tree(
        cls,
        tree: Tree,
        levels: Sequence[str] = (),
        processors: Mapping[str, str] | None = None,
        host_processors: Mapping[str, str] | None = None,
        details: Details | None = None,
        remarks: Sequence[str] = (),
        incomplete: Sequence[str] = (),
        host_ids: Mapping[str, str] | None = None,
        heights: Mapping[str, int] | None = None,
        oversubscription: Mapping[str, float] | None = None,
        host_links: Mapping[str, Cables] | None = None,
    ) -> Topology:
        """Return the topology of nested switches, ``{"core": {"leaf1": ["h1", "h2"]}}``.

        Several switches at the top are islands. Linear in hosts and switches.

        :param levels: names of the levels, bottom up: one per level, or none
        :param processors: switch name to the processor type of the hosts below it
        :param host_processors: host name to its own processor type, whatever its switches state
        :param details: all attributes of switches, in place of ``processors``
        :param incomplete: sentences on what shows that the description has been cut off
        :param host_ids: host name to another id by which Nova may know it
        :param host_links: host name to its own links
        :param heights: switch name to its level, if the tree is a part of a deeper fabric, of
            which all ``levels`` are given
        :raises exceptions.TopologyError: for an empty tree or switch, a switch or host given
            twice, a wrong number of level names, a processor type, links or id of a host that the
            tree does not have, or an id that is another host's name or id
        """
        reader = TreeReader(tree, heights, 0 if heights is None else len(levels))
        names = reader.levels(tuple(levels))
        own, links = dict(host_processors or {}), dict(host_links or {})
        index = {host: i for i, host in enumerate(reader.host_leaf)}
        for what, hosts in (("a processor type", own), ("links", links)):
            if unknown := hosts.keys() - index.keys():
                raise exceptions.TopologyError(
                    f"host {min(unknown)!r} has {what}, but no place in the tree"
                )
        ids = {host: id_ for host, id_ in (host_ids or {}).items() if id_ != host}
        _check_ids(ids, index)
        return cls(
            hosts=tuple(index),
            switches=reader.switches(details or Details(processors or {})),
            levels=names,
            groups=reader.groups(),
            name_rank=name_rank(tuple(index)),
            host_processors=own,
            described=len(index),
            _host_index=index,
            _switch_index={name: s for s, name in enumerate(reader.parents)},
            remarks=tuple(remarks),
            incomplete=tuple(incomplete),
            host_ids=ids,
            oversubscription=dict(oversubscription or {}),
            host_links=links,
        )

    def to_tree(self) -> dict[str, Any]:
        """Return new nested switches, as :meth:`from_tree` takes them."""
        tree: dict[str, Any] = {}
        # A leaf has hosts, another switch has none.
        below: list[Any] = [hosts or {} for hosts in self.leaf_hosts()]
        for switch, part in zip(self.switches, below, strict=True):
            (tree if switch.parent < 0 else below[switch.parent])[switch.name] = part
        return tree

    def details(self) -> Details:
        """Return the optional attributes of all switches."""
        return Details(
            processors={s.name: s.processor for s in self.switches if s.processor is not None},
            members={s.name: s.members for s in self.switches if s.members},
            links={s.name: s.links for s in self.switches if s.links is not None},
            ids={s.name: s.ids for s in self.switches if s.ids},
            order={s.name: s.order for s in self.switches if s.order},
        )

    def renamed(self, names: Mapping[str, str]) -> Topology:
        """Return the fabric with renamed hosts; TopologyError if two get one name. O(hosts)."""
        hosts = tuple(names.get(host, host) for host in self.hosts)
        if hosts == self.hosts:
            return self
        index: dict[str, int] = {}
        for i, host in enumerate(hosts):
            if index.setdefault(host, i) != i:
                raise exceptions.TopologyError(
                    f"hosts {self.hosts[index[host]]!r} and {self.hosts[i]!r} would both be called "
                    f"{host!r}"
                )
        own = {names.get(host, host): type_ for host, type_ in self.host_processors.items()}
        ids = {names.get(host, host): id_ for host, id_ in self.host_ids.items()}
        ids = {host: id_ for host, id_ in ids.items() if id_ != host}
        _check_ids(ids, index)
        return replace(
            self,
            hosts=hosts,
            name_rank=name_rank(hosts),
            host_processors=own,
            host_ids=ids,
            host_links={names.get(host, host): one for host, one in self.host_links.items()},
            _host_index=index,
        )

    def __repr__(self) -> str:
        return f"<Topology {self.summary()}>"

    def summary(self) -> str:
        """Return the size in words: ``60 hosts, 4 leaves, depth 3``."""
        leaves = plurals.text(len(self.leaves), "leaf")
        return f"{plurals.text(len(self.hosts), 'host')}, {leaves}, depth {self.depth}"

    @property
    def depth(self) -> int:
        """The level of the highest root: 1 for a single leaf switch."""
        return int(self.groups.shape[0])

    @property
    def request_levels(self) -> tuple[str, ...]:
        """The names of levels that a request may state, bottom up.

        A fabric of leaves alone gets one more level as soon as Nova has a host that it does not
        name, see :meth:`including`. Whether its name is valid must not depend on that.
        """
        return self.levels if self.depth > 1 else level_names(2, self.levels)

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
        """The index in ``switches`` of the leaf above each host. Shape (hosts,)."""
        # Not a cast: it makes its type anew at each call, and this is called once a host.
        row: NDArray[np.int64] = self.groups[0]
        return row

    def leaf_hosts(self) -> list[list[str]]:
        """Return the hosts of each leaf, by index in ``switches``; none above leaves."""
        # Not by_key: core needs it for each counterfactual, and it is six times faster.
        found: list[list[str]] = [[] for _ in self.switches]
        for host, leaf in zip(self.hosts, self.leaf_index.tolist(), strict=True):
            found[leaf].append(host)
        return found

    def children(self) -> list[list[int]]:
        """Return the switches just below each switch, all by index in ``switches``."""
        below = by_key((switch.parent, s) for s, switch in enumerate(self.switches))
        return [below.get(s, []) for s in range(len(self.switches))]

    def __contains__(self, host: object) -> bool:
        return host in self._host_index

    def index_of(self, host: str) -> int:
        """Return the index of a host in ``hosts``."""
        try:
            return self._host_index[host]
        except KeyError:
            raise exceptions.UnknownHostError(f"host {host!r} is not in the topology") from None

    def switch_index(self, name: str) -> int:
        """Return the index of a switch in ``switches``."""
        try:
            return self._switch_index[name]
        except KeyError:
            raise exceptions.UnknownHostError(f"switch {name!r} is not in the topology") from None

    def hops(self, a: str, b: str) -> float:
        """Return the switches on the path between two hosts, in O(depth).

        0 on one host, 1 under one leaf, 2 * l - 1 where the lowest common switch is on level
        l, infinity between islands.
        """
        left, right = self.index_of(a), self.index_of(b)
        if left == right:
            return 0
        for level in range(self.depth):
            if self.groups[level, left] == self.groups[level, right]:
                return 2 * level + 1
        return math.inf

    def leaf_of(self, host: str) -> str:
        """Return the name of the leaf switch above a host, in O(1)."""
        return self.switches[int(self.groups[0, self.index_of(host)])].name

    def ancestors(self, host: str) -> tuple[str, ...]:
        """Return the names of the switches above a host, leaf first."""
        above = self.upwards(self.groups.item(0, self.index_of(host)))
        return tuple(self.switches[s].name for s in above)

    def hosts_of(self, switch: str) -> tuple[str, ...]:
        """Return the hosts below a switch of any level, in the order of ``hosts``."""
        wanted = self.switch_index(switch)
        row = self.groups[self.switches[wanted].level - 1]
        return tuple(self.hosts[i] for i in np.flatnonzero(row == wanted))

    def children_of(self, switch: str) -> tuple[str, ...]:
        """Return the switches just below a switch; none below a leaf."""
        parent = self.switch_index(switch)
        return tuple(child.name for child in self.switches if child.parent == parent)

    def processor_of(self, host: str) -> str | None:
        """Return a host's own processor type, else what the nearest switch states. O(depth).

        None for a host that the description does not name, even if a root states a type.
        """
        if (own := self.host_processors.get(host)) is not None:
            return own
        index = self.index_of(host)
        if index >= self.described:
            return None
        stated = (self.switches[s].processor for s in self.upwards(self.groups.item(0, index)))
        return next((type_ for type_ in stated if type_ is not None), None)

    def upwards(self, switch: int) -> Iterator[int]:
        """Yield a switch and those above it, lowest first, by index in ``switches``."""
        while switch >= 0:
            yield switch
            switch = self.switches[switch].parent

    def including(self, names: Iterable[str]) -> Topology:
        """Return a topology with the named hosts too; the same object if it has them all.

        A host that the description does not name is directly below the root, as a leaf of its
        own named like the host. With several islands all such hosts are below one more root, of
        the highest level. O(hosts * depth).
        """
        added = sorted({name for name in names if name not in self._host_index})
        if not added:
            return self
        grown = with_leaves(
            Grown(self.switches, self.groups, self.levels, self.unnamed_root), added
        )
        hosts = (*self.hosts, *added)
        return replace(
            self,
            hosts=hosts,
            switches=grown.switches,
            levels=grown.levels,
            groups=grown.groups,
            unnamed_root=grown.unnamed_root,
            name_rank=name_rank(hosts),
            _host_index={host: i for i, host in enumerate(hosts)},
            _switch_index={switch.name: s for s, switch in enumerate(grown.switches)},
        )
