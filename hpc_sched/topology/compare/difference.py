"""The difference between two descriptions of a fabric."""

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields

import numpy as np

from hpc_sched.topology import hostlist, plurals
from hpc_sched.topology.compare import link_texts
from hpc_sched.topology.grouping import by_key
from hpc_sched.topology.model import Topology
from hpc_sched.topology.tree import Switch

MAX_SUMMARY = 500
# Longer lists of names are truncated in a summary, with their number.
_MAX_NAMES = 100
_TOP = "the top"


@dataclass(frozen=True, slots=True)
class Change:
    """One change of some hosts or switches, sorted by name."""

    names: tuple[str, ...]
    old: str | None  # the switch above, or an attribute; None where they are new or it is unknown
    new: str | None  # None where they are gone or it is unknown

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

    The order of hosts and switches is no difference. Nor are links and oversubscription that only
    one of the two descriptions states, unless :func:`between` counts them.
    """

    hosts: tuple[Change, ...] = ()  # from leaf to leaf
    switches: tuple[Change, ...] = ()  # from the switch above to the switch above
    renamed: tuple[Change, ...] = ()  # switches by their new names
    levels: tuple[Change, ...] = ()  # none or one
    processors: tuple[Change, ...] = ()  # of hosts
    ids: tuple[Change, ...] = ()  # of hosts
    members: tuple[Change, ...] = ()  # of merged switches
    links: tuple[Change, ...] = ()  # of switches
    host_links: tuple[Change, ...] = ()  # of hosts
    oversubscription: tuple[Change, ...] = ()  # of levels
    hops: tuple[HopChange, ...] = ()

    def __bool__(self) -> bool:
        return any(getattr(self, part.name) for part in fields(self))

    def sentences(self) -> tuple[str, ...]:
        """Return a sentence for every change, all names folded."""
        return (
            *_moves("host", "hosts", self.hosts),
            *_moves("switch", "switches", self.switches),
            *(f"switch renamed: {change.old} is now {change.new}" for change in self.renamed),
            *(f"levels: {change.old} became {change.new}" for change in self.levels),
            *(
                f"{word} of {hostlist.fold_cut(change.names)}: {_value(change.old)} became "
                f"{_value(change.new)}"
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
        names = {
            f"{word} {kind}": _names_in(change for change in changes if change.kind == kind)
            for word, changes in (("hosts", self.hosts), ("switches", self.switches))
            for kind in ("gone", "new", "moved")
        }
        names["switches renamed"] = _names_in(self.renamed)
        attributes = {
            f"{word}{'' if word.endswith(('s', 'n')) else 's'} changed": _names_in(changes)
            for word, changes in self._attributes().items()
        }
        pairs = plurals.text(sum(change.pairs for change in self.hops), "pair")
        parts = [
            *_listed(names),
            *(f"levels: {change.new}" for change in self.levels),
            *_listed(attributes),
            *([f"hops changed: {pairs} of hosts"] if self.hops else ()),
        ]
        text = "; ".join(parts) or "no difference"
        return text if len(text) <= MAX_SUMMARY else text[: MAX_SUMMARY - 4] + " ..."

    def _attributes(self) -> dict[str, tuple[Change, ...]]:
        return {
            "processor": self.processors,
            "id": self.ids,
            "members": self.members,
            "links": self.links,
            "host links": self.host_links,
            "oversubscription": self.oversubscription,
        }


def between(old: Topology, new: Topology, *, one_sided: bool = False) -> Difference:
    """Return the difference of a new fabric from an old one.

    A switch is identified by its name, or by its hosts where that is gone.
    O(hosts * depth**2 + switches), times the logarithm that sorting costs.

    :param one_sided: whether links and oversubscription count that only one of the two states: for
        two readings of one source, not for two sources of which one knows more
    """
    renamed = _renamed(old, new)
    now = {switch.name: switch for switch in new.switches}
    kept = {renamed.get(switch.name, switch.name): switch for switch in old.switches}
    pairs = [(kept[name], now[name]) for name in kept if name in now]
    common = [host for host in old.hosts if host in new]
    (leaf_before, parent_before), (leaf_now, parent_now) = _above(old, renamed), _above(new, {})
    switch_links = {after.name: (before.links, after.links) for before, after in pairs}
    host_links = {host: (old.host_links.get(host), new.host_links.get(host)) for host in common}
    return Difference(
        hosts=_changes(leaf_before, leaf_now),
        switches=_changes(parent_before, parent_now),
        renamed=tuple(Change((new,), old, new) for old, new in sorted(renamed.items())),
        levels=_changes({"": ", ".join(old.levels)}, {"": ", ".join(new.levels)}),
        processors=_changes(
            *({host: one.processor_of(host) for host in common} for one in (old, new))
        ),
        ids=_changes(*({host: one.host_ids.get(host) for host in common} for one in (old, new))),
        members=_changes_of_pairs(pairs, lambda switch: hostlist.fold(switch.members) or None),
        links=_changes(*link_texts.of_switches(switch_links, one_sided)),
        host_links=_changes(*link_texts.of_hosts(host_links, one_sided)),
        oversubscription=_changes(
            *link_texts.of_levels(old.oversubscription, new.oversubscription, one_sided)
        ),
        hops=_hop_changes(old, new, common),
    )


def _renamed(old: Topology, new: Topology) -> dict[str, str]:
    came = by_key((hosts, name) for name, hosts in _unknown(new, old))
    gone = _unknown(old, new)
    return {name: came[hosts].pop(0) for name, hosts in gone if hosts and came.get(hosts)}


def _unknown(topology: Topology, other: Topology) -> list[tuple[str, tuple[str, ...]]]:
    """Return the switches missing in the other fabric, lowest first, with their hosts in both."""
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


def _above(topology: Topology, renamed: Mapping[str, str]) -> tuple[dict[str, str], dict[str, str]]:
    """Return the switch above each host, and above each switch, by their new names."""
    names = [renamed.get(switch.name, switch.name) for switch in topology.switches]
    hosts = zip(topology.hosts, (names[leaf] for leaf in topology.leaf_index.tolist()), strict=True)
    above = (names[s.parent] if s.parent >= 0 else _TOP for s in topology.switches)
    return dict(hosts), dict(zip(names, above, strict=True))


def _changes(old: Mapping[str, str | None], new: Mapping[str, str | None]) -> tuple[Change, ...]:
    """Return the names with different values, grouped by old and new value, sorted by name."""
    groups = by_key(
        ((old.get(name), new.get(name)), name)
        for name in {**old, **new}
        if old.get(name) != new.get(name)
    )
    changes = [Change(tuple(sorted(names)), *values) for values, names in groups.items()]
    return tuple(sorted(changes, key=lambda change: change.names))


def _changes_of_pairs(
    pairs: Iterable[tuple[Switch, Switch]], value_of: Callable[[Switch], str | None]
) -> tuple[Change, ...]:
    """Return the changes of an attribute of old and new switches that both have it."""
    both = [(new.name, value_of(old), value_of(new)) for old, new in pairs]
    both = [one for one in both if all(one)]
    return _changes({name: old for name, old, _ in both}, {name: new for name, _, new in both})


def _moves(word: str, many: str, changes: Iterable[Change]) -> Iterator[str]:
    for change in changes:
        noun = word if len(change.names) == 1 else many
        places = {
            "gone": f"from {change.old}",
            "new": f"at {change.new}",
            "moved": f"from {change.old} to {change.new}",
        }
        yield f"{noun} {change.kind} {places[change.kind]}: {hostlist.fold_cut(change.names)}"


def _hop_changes(old: Topology, new: Topology, hosts: Sequence[str]) -> tuple[HopChange, ...]:
    if len(hosts) < 2:
        return ()
    before = old.groups[:, [old.index_of(host) for host in hosts]]
    after = new.groups[:, [new.index_of(host) for host in hosts]]
    # On one more level all pairs meet, for those that are infinitely far apart.
    top = np.zeros((1, len(hosts)), dtype=np.int64)
    before, after = np.vstack([before, top]), np.vstack([after, top])
    # Pairs that meet below both of two levels.
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


def _listed(names: Mapping[str, Sequence[str]]) -> list[str]:
    return [f"{what}: {hostlist.fold_cut(f, _MAX_NAMES)}" for what, f in names.items() if f]


def _names_in(changes: Iterable[Change]) -> list[str]:
    return [name for change in changes for name in change.names]


def _value(text: str | None) -> str:
    """Return an attribute for a line: members may be hundreds."""
    return "unknown" if text is None else hostlist.truncated(text)


def _hops(number: float) -> str:
    return "infinite" if math.isinf(number) else str(number)
