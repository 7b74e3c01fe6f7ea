"""Findings in a fabric that are legal, and yet often a mistake."""

from collections import Counter
from collections.abc import Iterator, Mapping

from hpc_sched.topology import hostlist, plurals
from hpc_sched.topology.compare import uplinks
from hpc_sched.topology.grouping import by_key
from hpc_sched.topology.links import Cables, ratio_text
from hpc_sched.topology.model import Topology

ISLANDS, LEVELS, SINGLE, SIZE = "islands", "levels", "single", "size"
UPLINKS, LINKS = "uplinks", "links"
KINDS = (ISLANDS, LEVELS, SINGLE, SIZE, UPLINKS, LINKS)

# Share of the switches that must agree on a value before others count as odd.
_USUAL = 0.5


def of(topology: Topology) -> list[tuple[str, str]]:
    """Return kind and sentence of all findings, by ``KINDS``. Linear in hosts and switches."""
    checks = (_islands, _skipped, _single, _odd_sizes, few_uplinks, _unequal_links)
    found = zip(KINDS, checks, strict=True)
    return [(kind, sentence) for kind, check in found for sentence in check(topology)]


def oversubscription(topology: Topology) -> dict[str, float]:
    """Return the usual oversubscription, of several the greatest, of levels where it is known."""
    known = uplinks.ratios(topology)
    found = {
        level: uplinks.usual(known[s] for s in switches)
        for level, switches in uplinks.by_level(topology).items()
    }
    return {level: ratio for level, ratio in found.items() if ratio is not None}


def usual_uplinks(topology: Topology) -> dict[str, Cables]:
    """Return the usual uplinks, of several the fastest, of levels where uplinks are known."""
    known = uplinks.of(topology)
    found = {}
    for level, switches in uplinks.by_level(topology).items():
        counts = Counter(one for s in switches if (one := known[s]) is not None)
        if counts:
            found[level] = max(counts, key=lambda one: (counts[one], one.rate or 0.0, one.number))
    return found


def of_load(topology: Topology, oversubscription: Mapping[str, float]) -> list[str]:
    """Return sentences on links for the log of a program that loads a topology.

    :param oversubscription: of the options, by level
    """
    return [*few_uplinks(topology), *unknown_levels(topology, oversubscription)]


def unknown_levels(topology: Topology, oversubscription: Mapping[str, float]) -> list[str]:
    """Return a sentence for each level that uplink_oversubscription names and a topology lacks."""
    known = ", ".join(topology.request_levels)
    return [
        f"uplink_oversubscription names level {level!r}, expected one of {known}"
        for level in sorted(oversubscription.keys() - set(topology.request_levels))
    ]


def few_uplinks(topology: Topology) -> list[str]:
    """Return a sentence for all switches of a level with as few uplinks, at most half of most.

    Cables that are down are the typical cause.
    """
    return list(dict.fromkeys(uplinks.halved(topology).values()))


def _islands(topology: Topology) -> Iterator[str]:
    hosts = Counter(topology.switches[root].name for root in topology.groups[-1].tolist())
    if len(hosts) > 1:
        largest = sorted(hosts, key=lambda root: (-hosts[root], root))
        shown = ", ".join(f"{root} ({hosts[root]})" for root in largest[:5])
        more = f" and {len(largest) - 5} more" if len(largest) > 5 else ""
        yield f"{len(hosts)} islands, with no link between them (hosts): {shown}{more}"


def _skipped(topology: Topology) -> Iterator[str]:
    found = by_key(
        (switch.parent, switch.name)
        for switch in topology.switches
        if switch.parent >= 0 and topology.switches[switch.parent].level > switch.level + 1
    )
    for parent, names in found.items():
        above = topology.switches[parent]
        missing, level = topology.levels[above.level - 2 : above.level]
        yield (
            f"directly below {level} {above.name}, with no {missing} between: "
            f"{hostlist.fold_cut(names)}"
        )


def _single(topology: Topology) -> Iterator[str]:
    sizes = _sizes(topology)
    names = [name for name, size in sizes.items() if size == 1]
    if names and len(names) < len(sizes):
        verb = "has" if len(names) == 1 else "have"
        leaves = plurals.text(len(names), "leaf")
        yield f"{leaves} {verb} a single host: {hostlist.fold_cut(names)}"


def _odd_sizes(topology: Topology) -> Iterator[str]:
    sizes = _sizes(topology)
    larger = {name: size for name, size in sizes.items() if size > 1}
    if not larger:
        return
    usual, alike = _usual(larger)
    if alike < _USUAL * len(larger):
        least, most = min(larger.values()), max(larger.values())
        yield f"leaves have from {least} to {most} hosts, no number is that of most"
        return
    for size, names in _odd(larger, usual):
        leaves, others = plurals.text(len(names), "leaf"), f"{alike} of {len(sizes)}"
        yield (
            f"{leaves} with {size} hosts, where {others} have {usual:g}: {hostlist.fold_cut(names)}"
        )


def _unequal_links(topology: Topology) -> Iterator[str]:
    for level, ratios in _ratios(topology).items():
        usual, alike = _usual(ratios)
        if alike < _USUAL * len(ratios):
            lowest, highest = (ratio_text(end(ratios.values())) for end in (min, max))
            yield f"{level} oversubscribed from {lowest} to {highest}, no ratio is that of most"
            continue
        for ratio, names in _odd(ratios, usual):
            yield (
                f"{level} oversubscribed {ratio_text(ratio)}, where "
                f"{alike} of {len(ratios)} are {ratio_text(usual)}: {hostlist.fold_cut(names)}"
            )


def _ratios(topology: Topology) -> dict[str, dict[str, float]]:
    """Return the known oversubscriptions by level, bottom up, and switch.

    Without those of switches with few uplinks, which have their own sentence.
    """
    known, few = uplinks.ratios(topology), uplinks.halved(topology)
    found = {
        level: {
            topology.switches[s].name: ratio
            for s in switches
            if s not in few and (ratio := known[s]) is not None
        }
        for level, switches in uplinks.by_level(topology).items()
    }
    return {level: ratios for level, ratios in found.items() if ratios}


def _sizes(topology: Topology) -> dict[str, int]:
    return Counter(topology.switches[leaf].name for leaf in topology.leaf_index.tolist())


def _usual(values: Mapping[str, float]) -> tuple[float, int]:
    """Return the most frequent value, of several the greatest, and how often it occurs."""
    return max(Counter(values.values()).items(), key=lambda item: item[::-1])


def _odd(values: Mapping[str, float], usual: float) -> list[tuple[float, list[str]]]:
    others = ((value, name) for name, value in values.items() if value != usual)
    return sorted(by_key(others).items())
