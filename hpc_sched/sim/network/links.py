"""The links of a fabric, and the paths between its hosts."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from hpc_sched.core.arrays import Array, Reals
from hpc_sched.topology.capacities import Capacities, LinkDefaults, link_rates, uplink_rates
from hpc_sched.topology.model import Topology

_MEGABITS = 8e-6  # in a byte


@dataclass(frozen=True, slots=True, eq=False)
class Network:
    """The links of a fabric; a full-duplex link counts as two, one per direction.

    Both arrays have the hosts' links up, then down, the switches' uplinks up, then down, and last
    an unbounded link that pads paths. All uplinks of a switch are one link with the sum of their
    rates, as if traffic were spread over them evenly. Shape (2 * hosts + 2 * switches + 1,)
    """

    topology: Topology
    capacity: Reals  # bytes/s
    latency: Reals  # s

    @property
    def padding(self) -> int:
        """Index of the unbounded link."""
        return len(self.capacity) - 1

    @property
    def longest(self) -> int:
        """Links of the longest path: of two hosts, and two for each level."""
        return 2 + 2 * self.topology.depth

    @property
    def uplinks(self) -> int:
        """Index of the first uplink; the hosts' links are below it."""
        return 2 * len(self.topology.hosts)

    @property
    def uplink_levels(self) -> Array:
        """Level of the switch of each uplink, up, then down: 0 for leaves. -1 for one of a root.

        Shape (2 * switches,)
        """
        topology = self.topology
        levels = topology.switch_levels - 1
        roots = [s for s, switch in enumerate(topology.switches) if switch.parent < 0]
        levels[roots] = -1
        return np.tile(levels, 2)

    def capacities(self) -> Capacities:
        """Return what uplinks and hosts' links carry, as the planner counts it."""
        hosts, switches = len(self.topology.hosts), len(self.topology.switches)
        rates = np.maximum(np.rint(self.capacity * _MEGABITS), 1)
        has_uplinks = self.uplink_levels[:switches] >= 0
        up = np.where(has_uplinks, rates[self.uplinks : self.uplinks + switches], 0)
        return Capacities(up.astype(np.int64), rates[:hosts].astype(np.int64))

    def path_latency(self, paths: Array) -> Reals:
        """Return the latency of each path, s. Shape (paths,)."""
        found: Reals = self.latency[paths].sum(axis=1)
        return found


def fat_tree(
    topology: Topology,
    *,
    host_rate: float,
    oversubscription: float | Sequence[float] = 1.0,
    host_latency: float = 0.0,
    uplink_latency: float = 0.0,
) -> Network:
    """Return the links of a fabric whose hosts have equal links. O(hosts + switches).

    A switch's uplink has the sum of the rates of the links below it, divided by the
    oversubscription of its level: with 4 at each level, a leaf has a quarter of its hosts' rates,
    and a pod a sixteenth.

    :param oversubscription: of all levels, or of each, bottom up; levels not stated have 1
    :param host_latency: of a host's link, s; likewise ``uplink_latency``
    :raises ValueError: for a rate or ratio that is not positive, or a latency below 0
    """
    ratios = np.ones(topology.depth)
    if isinstance(oversubscription, int | float):
        ratios[:] = oversubscription
    else:
        stated = np.asarray(oversubscription, dtype=np.float64)[: topology.depth]
        ratios[: len(stated)] = stated
    if not (host_rate > 0 and (ratios > 0).all()):
        raise ValueError("rates and oversubscription must be more than 0")
    if not min(host_latency, uplink_latency) >= 0:
        raise ValueError("latencies must be 0 or more")
    switches = len(topology.switches)
    counts = np.bincount(topology.leaf_index, minlength=switches)
    below: Reals = counts * np.float64(host_rate)
    up = uplink_rates(topology, below, ratios[topology.switch_levels - 1])
    hosts = np.ones(len(topology.hosts)) * host_rate
    return _network(topology, hosts, up, host_latency, uplink_latency)


def of_description(
    topology: Topology, defaults: LinkDefaults, *, usual_rate: float, host_latency: float = 0.0
) -> Network:
    """Return the links that a fabric states, scaled so that the median host has the usual rate.

    Uplinks have no latency. O(hosts + switches).

    :param defaults: what holds where the fabric states nothing
    :param usual_rate: bytes/s
    :param host_latency: of a host's link, s
    """
    up, hosts = link_rates(topology, defaults)
    scale = np.float64(usual_rate / np.median(hosts))
    own: Reals = hosts * scale
    above: Reals = up * scale
    return _network(topology, own, above, host_latency, 0.0)


def _network(
    topology: Topology, hosts: Reals, up: Reals, host_latency: float, uplink_latency: float
) -> Network:
    return Network(
        topology,
        capacity=np.concatenate([hosts, hosts, up, up, [np.inf]]),
        latency=np.concatenate(
            [
                np.ones(2 * len(hosts)) * host_latency,
                np.full(2 * len(up), uplink_latency),
                [0.0],
            ]
        ),
    )


def paths_between(network: Network, source: Array, target: Array) -> Array:
    """Return the links from hosts to hosts, padded with the unbounded link.

    A path goes up to the lowest common switch of its hosts; one within a host has no link. Islands
    are joined above their roots: a path between two has the uplinks of both roots.

    :param source: indices in ``topology.hosts``, like ``target``. Shape (paths,)
    :returns: shape (paths, 2 + 2 * depth)
    """
    topology = network.topology
    hosts, switches, none = len(topology.hosts), len(topology.switches), network.padding
    a, b = topology.groups[:, source], topology.groups[:, target]
    apart = source != target
    columns = [np.where(apart, end, none) for end in (source, hosts + target)]
    for level in range(topology.depth):
        parted = a[level] != b[level]
        if not parted.any():
            columns += [np.full(len(source), none)] * 2
            continue
        for row, first in ((a, 2 * hosts), (b, 2 * hosts + switches)):
            # A switch of a short branch is in several rows of groups; its last one counts.
            is_last = level + 1 == topology.depth or row[level] != row[level + 1]
            columns.append(np.where(parted & is_last, first + row[level], none))
    return np.stack(columns, axis=1)
