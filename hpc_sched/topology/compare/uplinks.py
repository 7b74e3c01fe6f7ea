"""Uplinks and oversubscription of switches, as far as a description states them."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from hpc_sched.topology import hostlist
from hpc_sched.topology.grouping import by_key
from hpc_sched.topology.links import Cables
from hpc_sched.topology.model import Topology


def of(topology: Topology) -> list[Cables | None]:
    """Return the uplinks of each switch, by its index; None at roots and where none are stated."""
    return [
        switch.links.uplinks
        if switch.links and switch.links.uplinks.number and switch.parent >= 0
        else None
        for switch in topology.switches
    ]


def ratios(topology: Topology) -> list[float | None]:
    """Return the oversubscription of each switch, rounded, by its index; None where unknown.

    That is the rate of the links below over that of the uplinks; without uplinks of known rate it
    is what the description states for the level. O(hosts + switches).
    """
    stated = topology.oversubscription
    known = zip(topology.switches, of(topology), _rates_down(topology), strict=True)
    found: list[float | None] = []
    for switch, up, down in known:
        rate = up.rate if up is not None else None
        if rate:
            ratio = None if down is None else down / rate
        else:
            level = topology.levels[switch.level - 1]
            ratio = stated.get(level) if switch.parent >= 0 else None
        # Smaller differences of ratios are not those of cabling.
        found.append(None if ratio is None else round(ratio, 2))
    return found


def usual(values: Iterable[float | None]) -> float | None:
    """Return the most frequent known value, of several the greatest; None if none is known."""
    counts = Counter(value for value in values if value is not None)
    return max(counts, key=lambda value: (counts[value], value), default=None)


def by_level(topology: Topology) -> dict[str, list[int]]:
    """Return the indices of the switches of each level, bottom up, that are below another one."""
    ordered = sorted(enumerate(topology.switches), key=lambda one: one[1].level)
    return by_key((topology.levels[one.level - 1], s) for s, one in ordered if one.parent >= 0)


def halved(topology: Topology) -> dict[int, str]:
    """Return a sentence for each switch with at most half of the uplinks of its level.

    Compared are rates with the median, or numbers of cables where no rate is known. A switch whose
    oversubscription is not above the median has fewer because it has less below it. Switches of
    one level with the same uplinks have one sentence, which names them all.
    """
    cables, known = of(topology), ratios(topology)
    found: dict[int, str] = {}
    for level, switches in by_level(topology).items():
        sizes = _sizes({s: one for s in switches if (one := cables[s]) is not None})
        if not sizes:
            continue
        middle = sorted(sizes, key=lambda s: (sizes[s], s))[len(sizes) // 2]
        level_ratios = sorted(ratio for s in switches if (ratio := known[s]) is not None)
        low = {
            s
            for s, size in sizes.items()
            if 2 * size <= sizes[middle] and _is_above_median(known[s], level_ratios)
        }
        for text, names in sorted(by_key((_text(cables[s]), s) for s in sorted(low)).items()):
            shown = hostlist.fold_cut([topology.switches[s].name for s in names])
            sentence = (
                f"{level} with uplinks of {text}, at most half of the median, "
                f"{_text(cables[middle])}: {shown}"
            )
            found |= dict.fromkeys(names, sentence)
    return found


def _sizes(cables: Mapping[int, Cables]) -> dict[int, float]:
    """Return the rates of uplinks, of those that are known, or else their numbers."""
    rates = {s: rate for s, one in cables.items() if (rate := one.rate) is not None}
    return rates or {s: float(one.number) for s, one in cables.items()}


def _is_above_median(ratio: float | None, ordered: Sequence[float]) -> bool:
    return ratio is None or ratio > ordered[(len(ordered) - 1) // 2]


def _text(cables: Cables | None) -> str:
    return cables.text if cables is not None else ""


def _rates_down(topology: Topology) -> list[float | None]:
    """Return the rate of the links below each switch in Gb/s; None where it is unknown.

    Without a statement it is the sum of the links of hosts and switches below, if all are known.
    """
    below: list[list[float | None]] = [[] for _ in topology.switches]
    for host, leaf in zip(topology.hosts, topology.leaf_index.tolist(), strict=True):
        own = topology.host_links.get(host)
        below[leaf].append(own.rate if own is not None else None)
    for switch, up in zip(topology.switches, of(topology), strict=True):
        if switch.parent >= 0:
            below[switch.parent].append(up.rate if up is not None else None)
    return [
        switch.links.down if switch.links and switch.links.down is not None else _sum(rates)
        for switch, rates in zip(topology.switches, below, strict=True)
    ]


def _sum(rates: Sequence[float | None]) -> float | None:
    known = [rate for rate in rates if rate is not None]
    return sum(known) if rates and len(known) == len(rates) else None
