"""The order in which a group takes processor types (Gupta2012, section 3.2)."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class ProcessorRanking:
    """The operator's statements on processor types.

    An entry is the name of a type, or holds for several: see :func:`entries_of`.
    """

    order: Sequence[str] = ()  # best first
    speeds: Mapping[str, float] = field(default_factory=dict)  # in any unit; greater is faster


UNRANKED = ProcessorRanking()


def best_first(
    cores: Mapping[str, int],
    ranking: ProcessorRanking = UNRANKED,
    prefer: Mapping[str, int] | None = None,
    features: Mapping[str, frozenset[str]] | None = None,
) -> list[str]:
    """Return the types in the order in which a group takes them.

    Types of members come first, most members first; then the types in the operator's order; then
    those with a speed, fastest first; then the others by cores of a host, most first; then by name.
    What does not decide between two types is decided by what comes next: two types that one entry
    of the order holds for, by their speeds; two of one speed, by their cores.

    :param cores: type to the cores of its largest host
    :param prefer: type to the members that run on it
    :param features: type to all features of its processors
    """
    place = {name: i for i, name in reversed(list(enumerate(ranking.order)))}
    held = entries_of(cores, ranking.order, features)
    speeds = speeds_of(cores, ranking.speeds, features)
    members = prefer or {}

    def key(name: str) -> tuple[int, int, float, int, str]:
        stands = place[held[name][0]] if held[name] else len(place)
        return -members.get(name, 0), stands, -speeds.get(name, 0.0), -cores[name], name

    return sorted(cores, key=key)


def speeds_of(
    types: Collection[str],
    speeds: Mapping[str, float],
    features: Mapping[str, frozenset[str]] | None = None,
) -> dict[str, float]:
    """Return the speed of each type that an entry of ``speeds`` holds for.

    Of two entries with as many features the faster one counts.
    """
    fastest_first = sorted(speeds, key=lambda name: (-speeds[name], name))
    return {
        name: speeds[entries[0]]
        for name, entries in entries_of(types, fastest_first, features).items()
        if entries
    }


def entries_of(
    types: Collection[str],
    entries: Iterable[str],
    features: Mapping[str, frozenset[str]] | None = None,
) -> dict[str, list[str]]:
    """Return the entries that hold for each type, the one that counts first.

    A name without features holds for all types of its label. One with features that is no type's
    name holds for the types of its label with all these features: a type's name has only the
    features that distinguish types, so it changes with the hosts at hand. A type's own name, if it
    has features, comes first, then the name with most features, the first of equals.
    O(types * entries).

    :param features: type to all features of its processors
    """
    split = [(entry, *_label_and_features(entry)) for entry in dict.fromkeys(entries)]
    found = {}
    for name in types:
        label, shown = _label_and_features(name)
        all_of_it = shown | (features or {}).get(name, frozenset())
        holding = [
            # A name without features may be that of a type whose features all hosts at hand have.
            (entry != name or not wanted, -len(wanted), i, entry)
            for i, (entry, of, wanted) in enumerate(split)
            if of == label
            and wanted <= all_of_it
            and (entry == name or not wanted or entry not in types)
        ]
        found[name] = [entry for *_, entry in sorted(holding)]
    return found


def _label_and_features(name: str) -> tuple[str, frozenset[str]]:
    label, *features = name.split(" +")
    return label, frozenset(features)
