"""Max-min fair rates of flows, by progressive filling.

No flow can get more without taking from one that has no more (Bertsekas, Gallager: Data Networks,
6.5.2): every flow crosses a full link on which no flow has more, or has reached its own bound.
"""

import numpy as np

from hpc_sched.core.arrays import Array, Mask, Reals
from hpc_sched.sim.network.flows import Flows


class FairRates:
    """Flows on the links that they share; rates of those that are active, again and again."""

    def __init__(self, capacity: Reals, flows: Flows) -> None:
        """Sort the flows by links. O(entries * log(entries)).

        :param capacity: bytes/s by link; the last one is unbounded, and pads paths
        """
        # A link that one row alone uses is a bound on its rate, which costs next to nothing. Most
        # links of hosts are such links.
        links, none = flows.links, len(capacity) - 1
        is_shared = np.bincount(links.ravel(), minlength=none + 1) > 1
        is_shared[none] = False
        kept = is_shared[links]
        own = np.where(kept, np.inf, capacity[links]).min(axis=1, initial=np.inf)
        self._weight: Reals = flows.weight
        self._bound: Reals = np.minimum(flows.bound, own / flows.weight)
        entries = np.flatnonzero(kept)
        entries = entries[np.argsort(links.ravel()[entries], kind="stable")]
        used, self._starts = np.unique(links.ravel()[entries], return_index=True)
        self._flow: Array = entries // max(links.shape[1], 1)
        self._capacity: Reals = capacity[used]
        # Links as indices in ``used``, padded with a last one. A row for each place in a path is
        # faster to reduce than a row for each path. Shape (places with a shared link, flows)
        index = np.full(none + 1, len(used))
        index[used] = np.arange(len(used))
        self._path: Array = np.ascontiguousarray(index[links[:, kept.any(axis=0)].T])

    def of(self, active: Mask) -> Reals:
        """Return the rates of active flows, bytes/s; 0 of others. Shape (flows,).

        A flow without links or bound has an infinite rate. A round fixes the rates of flows whose
        bound is reached, and at all links that are full before any other link of their flows.
        Rates fixed elsewhere in that round can only raise the shares of the others, so there are
        few rounds.
        """
        rate = np.zeros(len(active))
        if not len(self._starts):
            rate[active] = self._bound[active]
            return rate
        still = active.copy()
        spare = self._capacity.copy()
        share = np.full(len(spare) + 1, np.inf)
        full = np.zeros(len(spare) + 1, dtype=np.bool_)
        while still.any():
            users = self._sums(np.where(still, self._weight, 0.0))
            share[:-1] = np.inf
            np.divide(spare, users, out=share[:-1], where=users > 0)
            # The least share on each flow's path, and the least of these at each link. If that is
            # the link's own share, the link is the bottleneck of all its flows.
            meets = np.minimum(share[self._path].min(axis=0), self._bound)
            meets[~still] = np.inf
            least = np.minimum.reduceat(meets[self._flow], self._starts)
            full[:-1] = (users > 0) & (share[:-1] <= least)
            fixed = still & (full[self._path].any(axis=0) | (meets >= self._bound))
            rate[fixed] = meets[fixed]
            spare -= self._sums(np.where(fixed, meets * self._weight, 0.0))
            np.maximum(spare, 0.0, out=spare)
            still &= ~fixed
        return rate

    def _sums(self, of_flows: Reals) -> Reals:
        """Return the sum over the flows of each link. Shape (links,)."""
        found: Reals = np.add.reduceat(of_flows[self._flow], self._starts)
        return found


def fair_rates(capacity: Reals, flows: Flows) -> Reals:
    """Return the max-min fair rate of each flow, bytes/s; infinite without links or bound.

    Shape (flows,).

    :param capacity: bytes/s by link; the last one is unbounded, and pads paths
    """
    return FairRates(capacity, flows).of(np.ones(len(flows.links), dtype=np.bool_))
