"""The order in which a group takes processor types (Gupta2012, section 3.2)."""

from collections.abc import Mapping, Sequence


def best_first(
    cores: Mapping[str, int],
    order: Sequence[str] = (),
    prefer: Mapping[str, int] | None = None,
    features: Mapping[str, frozenset[str]] | None = None,
) -> list[str]:
    """Return the types in the order in which a group takes them.

    Types of members come first, most members first; then the types in ``order``, named with or
    without their features; then the others by cores of a host, most first; then by name.

    :param cores: type to the cores of its largest host
    :param order: the operator's order, best first
    :param prefer: type to the members that run on it
    :param features: type to all features of its processors. A name has only the features that
        distinguish types, so it changes with the hosts at hand: an entry of ``order`` that is no
        type's name holds for the types of its label with all its features.
    """
    place = {name: i for i, name in reversed(list(enumerate(order)))}
    entries = [(*_label_and_features(name), i) for name, i in place.items() if name not in cores]
    members = prefer or {}

    def key(name: str) -> tuple[int, int, int, str]:
        label, shown = _label_and_features(name)
        all_of_it = shown | (features or {}).get(name, frozenset())
        # The entry with the most features comes before the bare label.
        named = [
            (-len(wanted), i) for of, wanted, i in entries if of == label and wanted <= all_of_it
        ]
        named.append((0, place.get(label, len(place))))
        return -members.get(name, 0), place.get(name, min(named)[1]), -cores[name], name

    return sorted(cores, key=key)


def _label_and_features(name: str) -> tuple[str, frozenset[str]]:
    label, *features = name.split(" +")
    return label, frozenset(features)
