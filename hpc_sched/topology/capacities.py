"""Capacities: what the uplinks of each switch and the links of each host carry in one direction.

The one answer for all that counts traffic. In this order a switch has

* its stated uplinks, if the rates of all are known
* the rate of the links below it, divided by the oversubscription of its level: that of the
  description, else that of the options
* the rate of the links below it
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from hpc_sched.topology.links import Cables
from hpc_sched.topology.model import Topology

HOST_LINK_RATE = 100.0  # Gb/s
_MEGABITS = 1000  # in a gigabit


@dataclass(frozen=True, slots=True)
class LinkDefaults:
    """What holds where a description states nothing."""

    oversubscription: Mapping[str, float] = field(default_factory=dict)  # by level
    host_rate: float = HOST_LINK_RATE  # of all links of a host, Gb/s


@dataclass(frozen=True, slots=True, eq=False)
class Capacities:
    """Capacities in Mb/s, in one direction."""

    switches: NDArray[np.int64]  # of the uplinks; at least 1, 0 at roots. Shape (switches,)
    hosts: NDArray[np.int64]  # of each host's own links; at least 1. Shape (hosts,)

    def reduced(self) -> "Capacities":
        """Return the same in the largest unit in which all are whole numbers."""
        unit = int(np.gcd.reduce([*np.unique(self.switches), *np.unique(self.hosts)])) or 1
        return Capacities(self.switches // unit, self.hosts // unit)


def capacities(topology: Topology, defaults: LinkDefaults) -> Capacities:
    """Return the capacities of a fabric; those of equal switches are equal. O(hosts + switches).

    A host that the description does not name is a leaf with the capacity of the host's own link.
    """
    up, hosts = link_rates(topology, defaults)
    has_uplinks = np.array([switch.parent for switch in topology.switches]) >= 0
    return Capacities(np.where(has_uplinks, up, 0), hosts)


def link_rates(
    topology: Topology, defaults: LinkDefaults
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the capacities of switches and hosts; roots have uplinks by their ratio too, Mb/s.

    That is for networks in which a last switch connects islands.
    """
    hosts = _host_rates(topology, defaults.host_rate)
    ratios = {**defaults.oversubscription, **topology.oversubscription}
    by_level = np.array([ratios.get(level, 1.0) for level in topology.levels])
    ratio = by_level[topology.switch_levels - 1]
    ratio[topology.leaf_index[topology.described :]] = 1.0
    below = np.bincount(topology.leaf_index, hosts, len(ratio)).astype(np.float64)
    up = uplink_rates(topology, below, ratio, stated=_stated_rates(topology), whole=True)
    return up.astype(np.int64), hosts


def states_links(topology: Topology) -> bool:
    """True if a description states links of a host, or uplinks of known rate."""
    return bool(topology.host_links) or not np.isnan(_stated_rates(topology)).all()


def states_uplinks(topology: Topology, ratios: Collection[str] = ()) -> bool:
    """True if uplinks of known rate are stated, or the oversubscription of a level that has any.

    :param ratios: levels whose oversubscription an option states
    """
    has_uplinks = np.array([switch.parent for switch in topology.switches]) >= 0
    levels = {topology.levels[at - 1] for at in topology.switch_levels[has_uplinks].tolist()}
    if not levels.isdisjoint({*topology.oversubscription, *ratios}):
        return True
    return not np.isnan(_stated_rates(topology)[has_uplinks]).all()


def with_ratios(topology: Topology, ratios: Mapping[str, float]) -> Topology:
    """Return a fabric that has some ratios in place of what it states of these levels.

    :param ratios: oversubscription by level
    """
    if not ratios:
        return topology
    levels = {topology.levels.index(level) + 1 for level in ratios}
    return replace(
        topology,
        switches=tuple(
            replace(switch, links=None) if switch.level in levels else switch
            for switch in topology.switches
        ),
        oversubscription={**topology.oversubscription, **ratios},
    )


def uplink_rates(
    topology: Topology,
    below: NDArray[np.float64],
    ratio: NDArray[np.float64],
    *,
    stated: NDArray[np.float64] | None = None,
    whole: bool = False,
) -> NDArray[np.float64]:
    """Return the rate of the uplinks of each switch, roots included, in the unit of ``below``.

    :param below: of the hosts' links directly below each switch. Shape (switches,)
    :param ratio: oversubscription of each switch. Shape (switches,)
    :param stated: rates that hold in place of the ratios; nan for none. Shape (switches,)
    :param whole: whether rates are rounded, to 1 at least: sums are exact then
    """
    below, up = below.copy(), np.zeros(len(below))
    parents = np.array([switch.parent for switch in topology.switches])
    for level in range(1, topology.depth + 1):
        at = np.flatnonzero(topology.switch_levels == level)
        rate = below[at] / ratio[at]
        if whole:
            rate = np.maximum(np.rint(rate), 1.0)
        up[at] = rate if stated is None else np.where(np.isnan(stated[at]), rate, stated[at])
        lower = at[parents[at] >= 0]
        # One after the other, in the order of the switches.
        np.add.at(below, parents[lower], up[lower])
    return up


def _host_rates(topology: Topology, default: float) -> NDArray[np.int64]:
    """Return the rate of each host's links, Mb/s. Shape (hosts,)."""
    rates = _Rates()
    given = topology.host_links
    if not given:
        return np.full(len(topology.hosts), _whole(default))
    usual = _whole(default)
    stated = map(given.get, topology.hosts)
    found = (rates.of(cables) or usual if cables is not None else usual for cables in stated)
    return np.fromiter(found, np.int64, len(topology.hosts))


def _stated_rates(topology: Topology) -> NDArray[np.float64]:
    """Return the rate of each switch's stated uplinks, Mb/s; nan for none. Shape (switches,)."""
    rates = _Rates()
    stated = (switch.links.uplinks if switch.links else None for switch in topology.switches)
    found = (rates.of(cables) or np.nan if cables is not None else np.nan for cables in stated)
    return np.fromiter(found, np.float64, len(topology.switches))


class _Rates:
    """Rates of cables in whole Mb/s, each computed once: thousands of hosts have the same."""

    def __init__(self) -> None:
        # By what makes cables equal: the hash of a tuple costs a fifth of that of a dataclass.
        self._known: dict[tuple[tuple[float | None, int], ...], int] = {}

    def of(self, cables: Cables) -> int:
        """Return the rate of cables; 0 for none, and where the rate of one is unknown."""
        rate = self._known.get(cables.counts)
        if rate is None:
            total = cables.rate
            rate = self._known[cables.counts] = _whole(total) if total else 0
        return rate


def _whole(rate: float) -> int:
    return max(round(rate * _MEGABITS), 1)
