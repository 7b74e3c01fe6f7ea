"""Findings in a fabric that are legal, and yet often a mistake.

of              the entry
  _islands        parts without a link between them
  _skipped        switches directly below one more than a level higher
  _single         leaves with one host, among larger ones
  _odd_sizes      leaves with more or fewer hosts than most
  _unequal_links  switches with another oversubscription than most of their level
"""

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from hpc_sched.topology import hostlist, plurals
from hpc_sched.topology.model import Topology
from hpc_sched.topology.tree import Switch

ISLANDS, LEVELS, SINGLE, SIZE, LINKS = "islands", "levels", "single", "size", "links"
KINDS = (ISLANDS, LEVELS, SINGLE, SIZE, LINKS)

# Share of the switches that must agree on a value before others count as odd.
_USUAL = 0.5
# Smaller differences of ratios are not those of cabling.
_RATIO_DIGITS = 2


@dataclass(frozen=True, slots=True)
class LintFinding:
    """One doubtful property of a fabric."""

    kind: str
    sentence: str


def of(topology: Topology) -> tuple[LintFinding, ...]:
    """Return all findings, in the order of ``KINDS``. Linear in hosts and switches."""
    sizes = _sizes(topology)
    return (
        *_islands(topology),
        *_skipped(topology),
        *_single(sizes),
        *_odd_sizes(sizes),
        *_unequal_links(topology),
    )


def oversubscription(topology: Topology) -> dict[str, float]:
    """Return the most frequent oversubscription of each level whose links are known, bottom up.

    The greatest one, if several are equally frequent.
    """
    return {
        topology.levels[level - 1]: _usual(ratios)
        for level, ratios in sorted(_ratios(topology).items())
    }


def ratio_of(switch: Switch) -> float | None:
    """Return the oversubscription of a switch, rounded; None where its links are not known."""
    ratio = switch.links.oversubscription if switch.links else None
    return None if ratio is None else round(ratio, _RATIO_DIGITS)


def ratio_text(ratio: float) -> str:
    """Return an oversubscription in words, such as ``2:1``."""
    return f"{ratio:g}:1"


def _islands(topology: Topology) -> Iterator[LintFinding]:
    hosts = Counter(topology.groups[-1].tolist())  # by root
    if len(hosts) == 1:
        return
    names = {root: topology.switches[root].name for root in hosts}
    largest = sorted(hosts, key=lambda root: (-hosts[root], names[root]))
    shown = ", ".join(f"{names[root]} ({hosts[root]})" for root in largest[:5])
    more = f" and {len(largest) - 5} more" if len(largest) > 5 else ""
    yield LintFinding(
        ISLANDS, f"{len(hosts)} islands, with no link between them (hosts): {shown}{more}"
    )


def _skipped(topology: Topology) -> Iterator[LintFinding]:
    found: dict[int, list[str]] = {}
    for switch in topology.switches:
        if switch.parent >= 0 and topology.switches[switch.parent].level > switch.level + 1:
            found.setdefault(switch.parent, []).append(switch.name)
    for parent, names in found.items():
        above = topology.switches[parent]
        yield LintFinding(
            LEVELS,
            f"directly below {topology.levels[above.level - 1]} {above.name}, with no "
            f"{topology.levels[above.level - 2]} between: {hostlist.fold(names)}",
        )


def _single(sizes: Mapping[str, int]) -> Iterator[LintFinding]:
    names = [name for name, size in sizes.items() if size == 1]
    if names and len(names) < len(sizes):
        verb = "has" if len(names) == 1 else "have"
        yield LintFinding(
            SINGLE,
            f"{plurals.text(len(names), 'leaf')} {verb} a single host: {hostlist.fold(names)}",
        )


def _odd_sizes(sizes: Mapping[str, int]) -> Iterator[LintFinding]:
    larger = {name: size for name, size in sizes.items() if size > 1}
    if len(set(larger.values())) < 2:
        return
    usual, odd = _usual(larger), _odd(larger)
    alike = len(larger) - sum(map(len, odd.values()))
    if alike < _USUAL * len(larger):
        yield LintFinding(
            SIZE,
            f"leaves have from {min(larger.values())} to {max(larger.values())} hosts, "
            "no number is that of most",
        )
        return
    for size, names in odd.items():
        yield LintFinding(
            SIZE,
            f"{plurals.text(len(names), 'leaf')} with {size} hosts, where {alike} of "
            f"{len(sizes)} have {usual:g}: {hostlist.fold(names)}",
        )


def _unequal_links(topology: Topology) -> Iterator[LintFinding]:
    for level, ratios in sorted(_ratios(topology).items()):
        usual, odd = _usual(ratios), _odd(ratios)
        alike = len(ratios) - sum(map(len, odd.values()))
        if alike < _USUAL * len(ratios):
            lowest, highest = min(ratios.values()), max(ratios.values())
            yield LintFinding(
                LINKS,
                f"{topology.levels[level - 1]} oversubscribed from {ratio_text(lowest)} to "
                f"{ratio_text(highest)}, no ratio is that of most",
            )
            continue
        for ratio, names in odd.items():
            yield LintFinding(
                LINKS,
                f"{topology.levels[level - 1]} oversubscribed {ratio_text(ratio)}, where "
                f"{alike} of {len(ratios)} are {ratio_text(usual)}: {hostlist.fold(names)}",
            )


def _ratios(topology: Topology) -> dict[int, dict[str, float]]:
    """Return the known oversubscriptions by level and switch."""
    found: dict[int, dict[str, float]] = {}
    for switch in topology.switches:
        ratio = ratio_of(switch)
        if ratio is not None:
            found.setdefault(switch.level, {})[switch.name] = ratio
    return found


def _sizes(topology: Topology) -> dict[str, int]:
    """Return the number of hosts of each leaf."""
    pairs = zip(topology.switches, topology.leaf_hosts(), strict=True)
    return {switch.name: len(hosts) for switch, hosts in pairs if switch.level == 1}


def _usual(values: Mapping[str, float]) -> float:
    """Return the most frequent value; of equally frequent ones the greatest."""
    count = Counter(values.values())
    return max(count, key=lambda value: (count[value], value))


def _odd(values: Mapping[str, float]) -> dict[float, list[str]]:
    """Return the names with another value than the usual one, by value in ascending order."""
    usual = _usual(values)
    found: dict[float, list[str]] = {}
    for name, value in sorted(values.items(), key=lambda item: item[1]):
        if value != usual:
            found.setdefault(value, []).append(name)
    return found
