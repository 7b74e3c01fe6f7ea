"""The fragmentation price for VMs of each size, kept where it does not depend on what runs."""

import numpy as np

from hpc_sched.core.arrays import Array
from hpc_sched.core.capacity import capacities
from hpc_sched.core.fragmentation.price import (
    FragmentationPrice,
    empty_hosts,
    fragmentation_price,
)
from hpc_sched.core.fragmentation.rates import FragmentationRates
from hpc_sched.sim.cluster.cluster import Cluster
from hpc_sched.sim.cluster.kept_rooms import Size

_MOST = 128  # sizes that are kept


class SizePrices:
    """The price for VMs by size, as nova-scheduler has it: by the hosts that take one more VM."""

    def __init__(self, cluster: Cluster, rates: FragmentationRates) -> None:
        """Start without a size."""
        self._cluster, self._rates = cluster, rates
        self._empty: dict[Size, Array] = {}  # VMs that each host takes while it has none
        self._kept: dict[Size, FragmentationPrice | None] = {}  # if all hosts take one

    def of(self, size: Size, count: int, room: Array) -> FragmentationPrice | None:
        """Return the price for a job of VMs of a size; None without one. O(hosts), if not kept.

        :param count: VMs of the job
        :param room: VMs of the size that each host takes now. Shape (hosts,)
        """
        if not self._rates:
            return None
        if size not in self._empty:
            if len(self._empty) >= _MOST:
                self._empty.clear()
                self._kept.clear()
            self._empty[size] = capacities(self._cluster.total, size)
            if (self._empty[size] == 1).all():
                self._kept[size] = self._price(self._empty[size], count, room)
        if size in self._kept:
            return self._kept[size]
        [candidates] = np.nonzero(room)
        of_candidates = self._empty[size][candidates]
        empty = empty_hosts(self._cluster.topology, candidates, of_candidates)
        return self._price(empty, count, room)

    def _price(self, empty: Array, count: int, room: Array) -> FragmentationPrice | None:
        return fragmentation_price(self._rates, self._cluster.topology, empty, room, count)
