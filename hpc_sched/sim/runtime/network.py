"""The links of a fabric, and max-min fair rates of flows on them."""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from hpc_sched.core.arrays import Array, Reals
from hpc_sched.topology.model import Topology

# A transfer with less than this fraction of its bytes left has ended: flows that end together do
# so up to rounding only.
DONE = 1e-12


@dataclass(frozen=True, slots=True, eq=False)
class Network:
    """The links of a fabric; a full-duplex link counts as two, one per direction.

    ``capacity`` has the hosts' links up, then down, the switches' uplinks up, then down, and last
    an unbounded link that pads paths. All uplinks of a switch are one link with the sum of their
    rates, as if traffic were spread over them evenly.
    """

    topology: Topology
    capacity: Reals  # bytes/s; shape (2 * hosts + 2 * switches + 1,)


@dataclass(frozen=True, slots=True, eq=False)
class Flows:
    """Transfers between hosts, by index in ``topology.hosts``; all shapes (flows,)."""

    source: Array
    target: Array
    size: Reals  # bytes; infinite for a transfer that never ends


def together(parts: Iterable[Flows]) -> Flows:
    """Return the flows of all parts, in their order."""
    none = Flows(np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0))
    every = [(part.source, part.target, part.size) for part in (none, *parts)]
    return Flows(*map(np.concatenate, zip(*every, strict=True)))


def fat_tree(topology: Topology, *, host_rate: float, oversubscription: float = 1.0) -> Network:
    """Return the links of a fabric whose hosts have equal links. O(hosts + switches).

    A switch's uplink has the sum of the rates below it / ``oversubscription``. In three full
    levels a leaf has its hosts' rates / ratio, and a pod those / ratio ** 2.

    :raises ValueError: for a rate or ratio that is not positive
    """
    if min(host_rate, oversubscription) <= 0:
        raise ValueError("rates and oversubscription must be more than 0")
    switches = topology.switches
    down = np.bincount(topology.leaf_index, minlength=len(switches)) * float(host_rate)
    up = np.zeros(len(switches))
    for s in sorted(range(len(switches)), key=lambda s: switches[s].level):
        up[s] = down[s] / oversubscription
        if switches[s].parent >= 0:
            down[switches[s].parent] += up[s]
    hosts = np.full(2 * len(topology.hosts), float(host_rate))
    return Network(topology, np.concatenate([hosts, up, up, [np.inf]]))


def paths(network: Network, flows: Flows) -> Array:
    """Return the links of each flow, padded with the unbounded link. Shape (flows, 2 * depth).

    A flow goes up to the lowest common switch of its hosts; one within a host takes no link.

    :raises ValueError: for a flow between islands
    """
    topology = network.topology
    hosts, switches = len(topology.hosts), len(topology.switches)
    none = len(network.capacity) - 1
    a, b = topology.groups[:, flows.source], topology.groups[:, flows.target]
    cut = np.flatnonzero(a[-1] != b[-1])
    if len(cut):
        source, target = (topology.hosts[end[cut[0]]] for end in (flows.source, flows.target))
        raise ValueError(
            f"no link joins {source!r} and {target!r}: they stand on different islands"
        )
    apart = flows.source != flows.target
    columns = [np.where(apart, end, none) for end in (flows.source, hosts + flows.target)]
    for level in range(topology.depth - 1):
        parted = a[level] != b[level]
        # A switch of a short branch is in several rows of groups; its last one counts.
        for row, first in ((a, 2 * hosts), (b, 2 * hosts + switches)):
            climbs = parted & (row[level] != row[level + 1])
            columns.append(np.where(climbs, first + row[level], none))
    return np.stack(columns, axis=1)


def finish_times(network: Network, flows: Flows) -> Reals:
    """Return when each flow ends, s, if all start at 0; infinity for one that never ends.

    Rates are computed again whenever a flow ends, at most O(flows) times.

    :raises ValueError: for a flow between islands, or a size that is negative or NaN
    """
    if not (flows.size >= 0).all():
        raise ValueError("a flow's size must be 0 or more")
    links = paths(network, flows)
    ends = np.where(np.isfinite(flows.size), 0.0, np.inf)
    running = np.flatnonzero((flows.size > 0) & (flows.source != flows.target))
    left = flows.size.copy()
    now = 0.0
    while np.isfinite(left[running]).any():
        rate = rates(network, links[running])
        need = left[running] / rate
        step = need.min()
        now += step
        left[running] -= step * rate
        over = (need <= step) | (left[running] <= DONE * flows.size[running])
        over &= np.isfinite(left[running])
        ends[running[over]] = now
        running = running[~over]
    return ends


def makespan(network: Network, flows: Flows) -> float:
    """Return when the last finite flow ends, s; 0 without one.

    :raises ValueError: as :func:`finish_times` does
    """
    return float(finish_times(network, flows)[np.isfinite(flows.size)].max(initial=0.0))


def rates(network: Network, links: Array) -> Reals:
    """Return the max-min fair rates of flows on their paths, by progressive filling, bytes/s.

    No flow can get more without taking from one that has no more (Bertsekas, Gallager: Data
    Networks, 6.5.2). A flow without links has an infinite rate. A round fixes the rates at all
    links that are full before any other link of their flows. Rates fixed elsewhere in that round
    can only raise the shares of the others, so there are few rounds. Shape (flows,).

    :param links: see :func:`paths`
    """
    size = len(network.capacity)
    none = size - 1
    rate = np.full(len(links), np.inf)
    open_ = np.flatnonzero((links != none).any(axis=1))
    spare = network.capacity.copy()
    while len(open_):
        rows = links[open_]
        users = np.bincount(rows.ravel(), minlength=size)
        share = np.divide(spare, users, out=np.full(size, np.inf), where=users > 0)
        share[none] = np.inf
        # The smallest share on each flow's path, and the smallest of these per link. If that is
        # the link's own share, the link is the bottleneck of all its flows.
        meets = share[rows].min(axis=1)
        least = np.full(size, np.inf)
        np.minimum.at(least, rows, meets[:, None])
        fixed = (share == least)[rows].any(axis=1)
        rate[open_[fixed]] = meets[fixed]
        taken = np.repeat(meets[fixed], rows.shape[1])
        spare -= np.bincount(rows[fixed].ravel(), weights=taken, minlength=size)
        np.maximum(spare, 0.0, out=spare)
        open_ = open_[~fixed]
    return rate
