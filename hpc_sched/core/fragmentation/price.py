"""The fragmentation price of one group: what it costs to break up whole leaves and pods.

Of all pods the least Hop-Byte prefers the emptiest, because its leaves are whole. The next group
then finds no whole one. So a plan pays for the room that it leaves on switches that it uses.
"""

from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np

from hpc_sched.core.arrays import Array
from hpc_sched.core.capacity import UNBOUNDED
from hpc_sched.core.fragmentation.rates import MOST, FragmentationRates
from hpc_sched.topology.model import Topology

LEAF, POD = 1, 2  # the levels that are charged
# What a leaf with VMs keeps free counts as more by this part of an empty leaf. Without it, plans
# use more leaves to leave no slot free on any.
USED_LEAF = Fraction(1, 20)
# The rate of the level that a group requires is this many times as high: of the switches that hold
# the group it takes one of the fullest, since the next one is refused if none has room for it.
REQUIRED = 500
# Where a host takes several VMs the rate of leaves is this many times as high in a full cloud, and
# lower by a power of what is in use: such plans break up hosts to fill leaves, which pays as whole
# leaves become few. What they save in pods they lose in hosts: pods are free.
OF_SEVERAL = 6
_POWER = 4
# Parts of an effective rate: it is written to records as it is.
_PARTS = 10**6


@dataclass(frozen=True, slots=True)
class FragmentationPrice:
    """What it costs to leave free slots on leaves and pods that take VMs, on top of the Hop-Byte.

    Of n VMs ``n^2 * rate * (room - new) / slots`` hops for each leaf that takes VMs, and for each
    switch of the level above: ``room`` is what it takes before the plan, ``new`` the VMs of the
    plan. For a leaf ``n^2 * rate / 20`` besides. Roots are free, and so are levels above pods.
    Where a host takes several VMs of the group pods are free too, and the rate of leaves is six
    times that of the option times the fourth power of the share of all slots that are in use. A
    group that one empty host holds is not charged at all.
    """

    rates: FragmentationRates
    leaf_slots: int  # VMs of the flavor that the largest leaf takes when empty; at least 1
    pod_slots: int  # likewise
    # VMs that all hosts take when empty, if the rate of leaves is that of a full cloud; else 0
    slots: int = 0
    host_slots: int = 1  # VMs that the largest host takes when empty

    def of_group(self, size: int, room: int) -> "FragmentationPrice | None":
        """Return the price for a group while hosts take some VMs; None if nothing is charged.

        :param size: VMs of the group, members included
        :param room: VMs that all hosts take now
        """
        if not self.slots:
            return self
        if size <= self.host_slots:
            return None
        used = Fraction(max(self.slots - room, 0), self.slots)
        leaf = Fraction(round(self.rates.leaf * used**_POWER * _PARTS), _PARTS)
        if not leaf:
            return None
        return replace(self, rates=replace(self.rates, leaf=leaf), slots=0, host_slots=1)

    def where_required(self, level: int) -> "FragmentationPrice":
        """Return the price for a group of which one switch of a level must hold all VMs.

        :param level: with that of leaves, or of pods, a higher rate than that of the option
        """
        leaf, pod = self.rates.leaf, self.rates.pod
        if level == LEAF:
            return replace(self, rates=replace(self.rates, leaf=_raised(leaf)))
        if level == POD:
            return replace(self, rates=replace(self.rates, pod=_raised(pod)))
        return self


def _raised(rate: Fraction) -> Fraction:
    return min(rate * REQUIRED, Fraction(MOST))


def fragmentation_price(
    rates: FragmentationRates, topology: Topology, empty: Array, most_per_host: int = UNBOUNDED
) -> FragmentationPrice | None:
    """Return the price for VMs of one flavor; None if no switch is charged. O(hosts).

    Where a host takes several VMs of the group it is that of a full cloud.

    :param empty: VMs that each host takes while it has none. Shape (hosts,)
    :param most_per_host: that the server group's policy allows
    """
    empty = np.minimum(empty, most_per_host)
    are_several = empty.max(initial=0) > 1
    if are_several:
        rates = FragmentationRates(min(OF_SEVERAL * rates.leaf, Fraction(MOST)), Fraction(0))
    if not rates or topology.depth == LEAF:
        return None
    leaf_slots, pod_slots = (
        max(int(np.bincount(row, empty).max(initial=0)), 1)
        for row in topology.groups[[LEAF - 1, min(POD, topology.depth) - 1]]
    )
    if not are_several:
        return FragmentationPrice(rates, leaf_slots, pod_slots)
    return FragmentationPrice(rates, leaf_slots, pod_slots, int(empty.sum()), int(empty.max()))


def empty_hosts(topology: Topology, hosts: Array, empty: Array) -> Array:
    """Return the VMs that each host takes while it has none, by those of the candidates.

    The largest switch counts whatever runs there. So a host that is no candidate, because it is
    full for instance, counts as the largest candidate. Shape (hosts,). O(hosts).

    :param hosts: index in ``topology.hosts`` of each candidate hypervisor
    :param empty: VMs that it takes while it has none; same shape
    """
    number = len(topology.hosts)
    sizes = np.bincount(hosts, empty, number).astype(np.int64)
    return np.where(np.bincount(hosts, minlength=number) > 0, sizes, empty.max(initial=0))
