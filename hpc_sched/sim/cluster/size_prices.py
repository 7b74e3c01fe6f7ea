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
        self._kept: dict[Size, FragmentationPrice | None] = {}  # if all hosts take equally many

    def of(self, size: Size, count: int, room: Array) -> FragmentationPrice | None:
        """Return the price for VMs of a size; None without one. O(hosts), if they differ.

        :param count: VMs of the job
        :param room: VMs of the size that each host takes now. Shape (hosts,)
        """
        if not self._rates:
            return None
        price = self._of_full_cloud(size, room)
        return None if price is None else price.of_group(count, int(room.sum()))

    def _of_full_cloud(self, size: Size, room: Array) -> FragmentationPrice | None:
        if size not in self._empty:
            if len(self._empty) >= _MOST:
                self._empty.clear()
                self._kept.clear()
            self._empty[size] = empty = capacities(self._cluster.total, size)
            if (empty == empty[0]).all():
                self._kept[size] = fragmentation_price(self._rates, self._cluster.topology, empty)
        if size in self._kept:
            return self._kept[size]
        topology, [candidates] = self._cluster.topology, np.nonzero(room)
        empty = empty_hosts(topology, candidates, self._empty[size][candidates])
        return fragmentation_price(self._rates, topology, empty)
