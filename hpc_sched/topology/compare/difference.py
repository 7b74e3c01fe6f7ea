"""The difference between two descriptions of a fabric.

between        the entry
  _renamed       switches with the same hosts and other names
  _placed        hosts and switches added, removed or moved
"""

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, fields

from hpc_sched.topology import hostlist, plurals
from hpc_sched.topology.compare import hop_changes
from hpc_sched.topology.compare.hop_changes import HopChange
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
                for word, changes in (
                    ("processor", self.processors),
                    ("members", self.members),
                    ("links", self.links),
                )
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
        for word, changes in (
            ("processors", self.processors),
            ("members", self.members),
            ("links", self.links),
        ):
            if changes:
                yield f"{word} changed: {_few(_names_in(changes))}"
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
    pairs = [
        (switch, after[name])
        for switch in old.switches
        if (name := renamed.get(switch.name, switch.name)) in after
    ]
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
        hops=hop_changes.between(old, new, common),
    )


def _renamed(old: Topology, new: Topology) -> dict[str, str]:
    """Return the new names of renamed switches, by their old ones.

    They have the same hosts, of those in both fabrics; of several such switches the lowest is
    matched first.
    """
    came: dict[tuple[str, ...], list[str]] = {}
    for name, hosts in _unknown(new, old):
        came.setdefault(hosts, []).append(name)
    found = {}
    for name, hosts in _unknown(old, new):
        if hosts and came.get(hosts):
            found[name] = came[hosts].pop(0)
    return found


def _unknown(topology: Topology, other: Topology) -> list[tuple[str, tuple[str, ...]]]:
    """Return the switches that the other fabric does not have, lowest first.

    Each comes with those of its hosts that both fabrics have, sorted.
    """
    names = {switch.name for switch in other.switches}
    below: dict[int, list[str]] = {
        i: [] for i, switch in enumerate(topology.switches) if switch.name not in names
    }
    if below:
        for host, leaf in zip(topology.hosts, topology.leaf_index.tolist(), strict=True):
            above = leaf if host in other else -1
            while above >= 0:
                if above in below:
                    below[above].append(host)
                above = topology.switches[above].parent
    order = sorted(below, key=lambda i: (topology.switches[i].level, i))
    return [(topology.switches[i].name, tuple(sorted(below[i]))) for i in order]


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
        names = hostlist.fold(change.names)
        place = {
            "gone": f"from {change.old}",
            "new": f"at {change.new}",
            "moved": f"from {change.old} to {change.new}",
        }[change.kind]
        yield f"{noun} {change.kind} {place}: {names}"


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
