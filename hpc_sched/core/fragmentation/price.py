"""The fragmentation price of one group: what it costs to break up whole leaves and pods.

Of all pods the least Hop-Byte prefers the emptiest, because its leaves are whole. The next group
then finds no whole one. So a plan pays for the room that it leaves on switches that it uses.
"""

from dataclasses import dataclass
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
# Where a host takes several VMs the rate of leaves is this many times as high in a full cloud, and
# lower by a power of what is in use: such plans break up hosts to fill leaves, which pays as whole
# leaves become few. What they save in pods they lose in hosts: pods are free.
OF_SEVERAL = 6
_POWER = 4


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


def fragmentation_price(
    rates: FragmentationRates,
    topology: Topology,
    empty: Array,
    room: Array,
    size: int,
    most_per_host: int = UNBOUNDED,
) -> FragmentationPrice | None:
    """Return the price for VMs of one flavor; None if no switch is charged. O(hosts).

    :param empty: VMs that each host takes while it has none. Shape (hosts,)
    :param room: VMs that each host, or hypervisor, takes now
    :param size: VMs of the group, members included
    :param most_per_host: that the server group's policy allows
    """
    empty = np.minimum(empty, most_per_host)
    if empty.max(initial=0) > 1:
        rates = _of_several(rates, empty, int(np.minimum(room, most_per_host).sum()), size)
    if not rates or topology.depth == LEAF:
        return None
    slots = [
        max(int(np.bincount(row, empty).max(initial=0)), 1)
        for row in topology.groups[[LEAF - 1, min(POD, topology.depth) - 1]]
    ]
    return FragmentationPrice(rates, *slots)


def _of_several(
    rates: FragmentationRates, empty: Array, free: int, size: int
) -> FragmentationRates:
    """Return the rates where a host takes several VMs, to a millionth: records have them so.

    :param free: VMs that all hosts take now
    """
    slots, is_charged = int(empty.sum()), size > int(empty.max())
    used = Fraction(max(slots - free, 0) * is_charged, slots)
    leaf = min(OF_SEVERAL * rates.leaf, Fraction(MOST)) * used**_POWER
    return FragmentationRates(Fraction(round(leaf * 10**6), 10**6), Fraction(0))


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
