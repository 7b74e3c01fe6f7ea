"""The difference between two descriptions of a fabric."""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields

import numpy as np

from hpc_sched.topology import hostlist, plurals
from hpc_sched.topology.model import Topology
from hpc_sched.topology.tree import Links

MAX_SUMMARY = 500
# Longer lists of names are truncated in a summary, with their number.
_MAX_NAMES = 100
_TOP = "the top"


@dataclass(frozen=True, slots=True)
class Change:
    """One change of some hosts or switches, sorted by name."""

    names: tuple[str, ...]
    old: str | None  # the switch above, or an attribute; None where they are new
    new: str | None  # None where they are gone

    @property
    def kind(self) -> str:
        """``gone``, ``new`` or ``moved``."""
        return "gone" if self.new is None else "new" if self.old is None else "moved"


@dataclass(frozen=True, slots=True)
class HopChange:
    """Number of pairs of hosts with one distance before and another now."""

    pairs: int
    old: float  # hops; infinite between islands
    new: float


@dataclass(frozen=True, slots=True)
class Difference:
    """How a fabric differs from an older one; false where it does not.

    The order of hosts and switches is no difference, nor are links that only one of the two
    descriptions states.
    """

    hosts: tuple[Change, ...] = ()  # from leaf to leaf
    switches: tuple[Change, ...] = ()  # from the switch above to the switch above
    renamed: tuple[tuple[str, str], ...] = ()  # switches: old name, new name
    levels: tuple[Change, ...] = ()  # none or one
    processors: tuple[Change, ...] = ()  # of hosts
    members: tuple[Change, ...] = ()  # of merged switches
    links: tuple[Change, ...] = ()
    hops: tuple[HopChange, ...] = ()

    def __bool__(self) -> bool:
        return any(getattr(self, part.name) for part in fields(self))

    def sentences(self) -> tuple[str, ...]:
        """Return a sentence for every change, all names folded."""
        return (
            *_moves("host", "hosts", self.hosts),
            *_moves("switch", "switches", self.switches),
            *(f"switch renamed: {old} is now {new}" for old, new in self.renamed),
            *(f"levels: {change.old} became {change.new}" for change in self.levels),
            *(
                f"{word} of {hostlist.fold(change.names)}: {change.old} became {change.new}"
                for word, changes in self._attributes().items()
                for change in changes
            ),
            *(
                f"hops: {_hops(change.old)} became {_hops(change.new)} for "
                f"{plurals.text(change.pairs, 'pair')} of hosts"
                for change in self.hops
            ),
        )

    def summary(self) -> str:
        """Return one line of at most ``MAX_SUMMARY`` characters for a log."""
        if not self:
            return "no difference"
        text = "; ".join(self._summaries())
        return text if len(text) <= MAX_SUMMARY else text[: MAX_SUMMARY - 4] + " ..."

    def _attributes(self) -> dict[str, tuple[Change, ...]]:
        return {"processor": self.processors, "members": self.members, "links": self.links}

    def _summaries(self) -> Iterator[str]:
        for word, changes in (("hosts", self.hosts), ("switches", self.switches)):
            for kind in ("gone", "new", "moved"):
                names = _names_in(change for change in changes if change.kind == kind)
                if names:
                    yield f"{word} {kind}: {_few(names)}"
        if self.renamed:
            yield f"switches renamed: {_few(new for _, new in self.renamed)}"
        for change in self.levels:
            yield f"levels: {change.new}"
        for word, changes in self._attributes().items():
            if changes:
                plural = "processors" if word == "processor" else word
                yield f"{plural} changed: {_few(_names_in(changes))}"
        if self.hops:
            pairs = sum(change.pairs for change in self.hops)
            yield f"hops changed: {plurals.text(pairs, 'pair')} of hosts"


def between(old: Topology, new: Topology) -> Difference:
    """Return the difference of a new fabric from an old one.

    A switch is identified by its name, or by its hosts where that is gone.
    O(hosts * depth**2 + switches), times the logarithm that sorting costs.
    """
    after = {switch.name: switch for switch in new.switches}
    renamed = _renamed(old, new)
    kept = [(switch, after.get(renamed.get(switch.name, switch.name))) for switch in old.switches]
    pairs = [(switch, now) for switch, now in kept if now is not None]
    common = [host for host in old.hosts if host in new]
    leaves = [(host, old.leaf_of(host)) for host in old.hosts]
    parents = _parents(old).items()
    return Difference(
        hosts=_placed(
            {host: renamed.get(leaf, leaf) for host, leaf in leaves},
            {host: new.leaf_of(host) for host in new.hosts},
        ),
        switches=_placed(
            {renamed.get(name, name): renamed.get(above, above) for name, above in parents},
            _parents(new),
        ),
        renamed=tuple(sorted(renamed.items())),
        levels=_grouped([("", ", ".join(old.levels), ", ".join(new.levels))]),
        processors=_grouped(
            (host, old.processor_of(host) or "unknown", new.processor_of(host) or "unknown")
            for host in common
        ),
        members=_grouped(
            (b.name, hostlist.fold(a.members), hostlist.fold(b.members))
            for a, b in pairs
            if a.members and b.members and a.members != b.members
        ),
        links=_grouped(
            (b.name, _carried(a.links), _carried(b.links)) for a, b in pairs if a.links and b.links
        ),
        hops=_hop_changes(old, new, common),
    )


def _renamed(old: Topology, new: Topology) -> dict[str, str]:
    """Return the new names of renamed switches, by their old ones.

    They have the same hosts, of those in both fabrics; of several such switches the lowest is
    matched first.
    """
    came: dict[tuple[str, ...], list[str]] = {}
    for name, hosts in _unknown(new, old):
        came.setdefault(hosts, []).append(name)
    gone = _unknown(old, new)
    return {name: came[hosts].pop(0) for name, hosts in gone if hosts and came.get(hosts)}


def _unknown(topology: Topology, other: Topology) -> list[tuple[str, tuple[str, ...]]]:
    """Return the switches that the other fabric does not have, lowest first.

    Each comes with those of its hosts that both fabrics have, sorted.
    """
    names = {switch.name for switch in other.switches}
    below: dict[str, list[str]] = {
        switch.name: []
        for switch in sorted(topology.switches, key=lambda switch: switch.level)
        if switch.name not in names
    }
    for host in sorted(topology.hosts) if below else ():
        for switch in topology.ancestors(host) if host in other else ():
            if switch in below:
                below[switch].append(host)
    return [(switch, tuple(hosts)) for switch, hosts in below.items()]


def _parents(topology: Topology) -> dict[str, str]:
    """Return the switch above each switch."""
    return {
        switch.name: topology.switches[switch.parent].name if switch.parent >= 0 else _TOP
        for switch in topology.switches
    }


def _placed(old: Mapping[str, str], new: Mapping[str, str]) -> tuple[Change, ...]:
    """Return the names that were added, removed or moved."""
    return _grouped((name, old.get(name), new.get(name)) for name in {**old, **new})


def _grouped(all_: Iterable[tuple[str, str | None, str | None]]) -> tuple[Change, ...]:
    """Return the names with different values, grouped by old and new value, sorted by name."""
    groups: dict[tuple[str | None, str | None], list[str]] = {}
    for name, old, new in all_:
        if old != new:
            groups.setdefault((old, new), []).append(name)
    changes = [Change(tuple(sorted(names)), *key) for key, names in groups.items()]
    return tuple(sorted(changes, key=lambda change: change.names))


def _moves(word: str, many: str, changes: Iterable[Change]) -> Iterator[str]:
    """Yield a sentence per change of place."""
    for change in changes:
        noun = word if len(change.names) == 1 else many
        place = f"at {change.new}" if change.kind == "new" else f"from {change.old}"
        if change.kind == "moved":
            place += f" to {change.new}"
        yield f"{noun} {change.kind} {place}: {hostlist.fold(change.names)}"


def _hop_changes(old: Topology, new: Topology, hosts: Sequence[str]) -> tuple[HopChange, ...]:
    """Return the pairs of hosts of both fabrics with another distance, by old and new distance.

    Counts, for each two levels, the pairs that meet below both of them.
    """
    if len(hosts) < 2:
        return ()
    before = old.groups[:, [old.index_of(host) for host in hosts]]
    after = new.groups[:, [new.index_of(host) for host in hosts]]
    # On one more level all pairs meet, for those that are infinitely far apart.
    top = np.zeros((1, len(hosts)), dtype=np.int64)
    before, after = np.vstack([before, top]), np.vstack([after, top])
    shared = np.zeros((len(before) + 1, len(after) + 1), dtype=np.int64)
    for a, row in enumerate(before, start=1):
        for b, other in enumerate(after, start=1):
            sizes = np.unique(row * len(new.switches) + other, return_counts=True)[1]
            shared[a, b] = (sizes * (sizes - 1) // 2).sum()
    exact = np.diff(np.diff(shared, axis=0), axis=1)
    distances = [[*range(1, 2 * topology.depth, 2), math.inf] for topology in (old, new)]
    return tuple(
        HopChange(int(exact[a, b]), was, now)
        for a, was in enumerate(distances[0])
        for b, now in enumerate(distances[1])
        if exact[a, b] and was != now
    )


def _names_in(changes: Iterable[Change]) -> list[str]:
    return [name for change in changes for name in change.names]


def _few(names: Iterable[str]) -> str:
    """Return names folded, and long lists truncated with their number."""
    every = list(names)
    folded = hostlist.fold(every)
    return folded if len(folded) <= _MAX_NAMES else f"{folded[:_MAX_NAMES]}... ({len(every)})"


def _carried(links: Links) -> str:
    return f"{links.down:g} Gb/s down, {links.up:g} up"


def _hops(number: float) -> str:
    return "infinite" if math.isinf(number) else str(number)
