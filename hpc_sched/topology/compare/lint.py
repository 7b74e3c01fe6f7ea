"""What is legal in a fabric's description, and yet often a mistake.

of              the entry
  _islands        parts without a link between them
  _skipped        switches that hang more than one level below the one above
  _single         leaves with one host beside larger ones
  _odd_sizes      leaves that have more or fewer hosts than most
  _unequal_links  switches with another oversubscription than most of their level
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from hpc_sched.topology import hostlist, plurals
from hpc_sched.topology.model import Topology
from hpc_sched.topology.tree import Switch

ISLANDS, LEVELS, SINGLE, SIZE, LINKS = "islands", "levels", "single", "size", "links"
KINDS = (ISLANDS, LEVELS, SINGLE, SIZE, LINKS)

# Of so many switches one is usual: where fewer are alike, no size is an odd one.
_USUAL = 0.5
# Ratios that differ by less are those of the same cabling.
_RATIO_DIGITS = 2


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing to look at."""

    kind: str
    sentence: str


def of(topology: Topology) -> tuple[Finding, ...]:
    """Return what should be looked at, in the order of ``KINDS``. Linear in hosts and switches."""
    sizes = _sizes(topology)
    return (
        *_islands(topology, sizes),
        *_skipped(topology),
        *_single(sizes),
        *_odd_sizes(sizes),
        *_unequal_links(topology),
    )


def oversubscription(topology: Topology) -> dict[str, float]:
    """Return the most frequent oversubscription of each level whose links are known, bottom up.

    Of equally frequent ones the greater.
    """
    return {
        topology.levels[level - 1]: _most_frequent(ratios)
        for level, ratios in sorted(_ratios(topology).items())
    }


def ratio_of(switch: Switch) -> float | None:
    """Return the oversubscription of a switch, rounded; None where its links are not known."""
    ratio = switch.links.oversubscription if switch.links else None
    return None if ratio is None else round(ratio, _RATIO_DIGITS)


def ratio_text(ratio: float) -> str:
    """Return an oversubscription as it is spoken of, such as ``2:1``."""
    return f"{ratio:g}:1"


def _islands(topology: Topology, sizes: Mapping[str, int]) -> Iterator[Finding]:
    roots = [i for i, switch in enumerate(topology.switches) if switch.parent < 0]
    if len(roots) == 1:
        return
    hosts = dict.fromkeys(roots, 0)
    for i, switch in enumerate(topology.switches):
        if switch.level == 1:
            hosts[_root_of(topology, i)] += sizes[switch.name]
    largest = sorted(roots, key=lambda root: (-hosts[root], topology.switches[root].name))
    shown = ", ".join(f"{topology.switches[root].name} ({hosts[root]})" for root in largest[:5])
    more = f" and {len(largest) - 5} more" if len(largest) > 5 else ""
    yield Finding(
        ISLANDS, f"{len(roots)} islands, with no link between them (hosts): {shown}{more}"
    )


def _root_of(topology: Topology, index: int) -> int:
    while topology.switches[index].parent >= 0:
        index = topology.switches[index].parent
    return index


def _skipped(topology: Topology) -> Iterator[Finding]:
    found: dict[int, list[str]] = {}
    for switch in topology.switches:
        if switch.parent >= 0 and topology.switches[switch.parent].level > switch.level + 1:
            found.setdefault(switch.parent, []).append(switch.name)
    for parent, names in found.items():
        above = topology.switches[parent]
        yield Finding(
            LEVELS,
            f"directly below {topology.levels[above.level - 1]} {above.name}, with no "
            f"{topology.levels[above.level - 2]} between: {hostlist.fold(names)}",
        )


def _single(sizes: Mapping[str, int]) -> Iterator[Finding]:
    names = [name for name, size in sizes.items() if size == 1]
    if names and len(names) < len(sizes):
        verb = "has" if len(names) == 1 else "have"
        yield Finding(
            SINGLE,
            f"{plurals.text(len(names), 'leaf')} {verb} a single host: {hostlist.fold(names)}",
        )


def _odd_sizes(sizes: Mapping[str, int]) -> Iterator[Finding]:
    larger = {name: size for name, size in sizes.items() if size > 1}
    if len(set(larger.values())) < 2:
        return
    usual = _most_frequent(list(larger.values()))
    alike = sum(size == usual for size in larger.values())
    if alike < _USUAL * len(larger):
        yield Finding(
            SIZE,
            f"leaves have from {min(larger.values())} to {max(larger.values())} hosts, "
            "no number is that of most",
        )
        return
    odd: dict[int, list[str]] = {}
    for name, size in larger.items():
        if size != usual:
            odd.setdefault(size, []).append(name)
    for size in sorted(odd):
        yield Finding(
            SIZE,
            f"{plurals.text(len(odd[size]), 'leaf')} with {size} hosts, where {alike} of "
            f"{len(sizes)} have {usual:g}: {hostlist.fold(odd[size])}",
        )


def _unequal_links(topology: Topology) -> Iterator[Finding]:
    for level, ratios in sorted(_ratios(topology).items()):
        usual = _most_frequent(ratios)
        odd: dict[float, list[str]] = {}
        for switch in topology.switches:
            ratio = ratio_of(switch) if switch.level == level else None
            if ratio is not None and ratio != usual:
                odd.setdefault(ratio, []).append(switch.name)
        alike = ratios.count(usual)
        if alike < _USUAL * len(ratios):
            yield Finding(
                LINKS,
                f"{topology.levels[level - 1]} oversubscribed from {ratio_text(min(ratios))} to "
                f"{ratio_text(max(ratios))}, no ratio is that of most",
            )
            continue
        for ratio in sorted(odd):
            yield Finding(
                LINKS,
                f"{topology.levels[level - 1]} oversubscribed {ratio_text(ratio)}, where "
                f"{alike} of {len(ratios)} are {ratio_text(usual)}: {hostlist.fold(odd[ratio])}",
            )


def _ratios(topology: Topology) -> dict[int, list[float]]:
    found: dict[int, list[float]] = {}
    for switch in topology.switches:
        ratio = ratio_of(switch)
        if ratio is not None:
            found.setdefault(switch.level, []).append(ratio)
    return found


def _sizes(topology: Topology) -> dict[str, int]:
    found = Counter(topology.leaf_index.tolist())
    return {
        switch.name: found[i] for i, switch in enumerate(topology.switches) if switch.level == 1
    }


def _most_frequent(numbers: Sequence[float]) -> float:
    found = Counter(numbers)
    return max(found, key=lambda number: (found[number], number))
