"""The fragmentation price as whole numbers: a charge on each switch that takes VMs.

A leaf or pod that takes VMs is charged for the room that it keeps. So the price is a sum over
switches of functions of their VMs, as the hops that they save are, and the planner's knapsack
stays exact. Charges are never negative: a bound on saved hops bounds what is left of them too.
"""

from dataclasses import dataclass

import numpy as np

from hpc_sched.core.arrays import Array
from hpc_sched.core.fragmentation.price import LEAF, POD, USED_LEAF, FragmentationPrice
from hpc_sched.topology.model import Topology

# Among plans of equal cost the excess capacity of a leaf counts as much as that of its pod by this.
LEAVES_OF_POD = 8
# Bits of a hop for one VM, and at least for any number: sums of squares fit into 62 bits.
_MOST_BITS, _LEAST_BITS = 26, 6


@dataclass(frozen=True, slots=True, eq=False)
class Charges:
    """What switches with VMs cost for the room that they keep, in parts of a hop."""

    scale: int  # parts of one hop
    rates: Array  # of one slot that is kept free; 0: no charge. Shape (switches,)
    fixed: Array  # whatever is kept free. Shape (switches,)
    room: Array  # capacity below each switch before the plan. Shape (switches,)

    @classmethod
    def of(
        cls, price: FragmentationPrice, topology: Topology, room: Array, count: int
    ) -> "Charges":
        """Return the charges of plans of some VMs.

        :param room: capacity below each switch. Shape (switches,)
        """
        scale = 1 << max(_MOST_BITS - 2 * count.bit_length(), _LEAST_BITS)
        rates, fixed = np.zeros((2, len(room)), dtype=np.int64)
        levels, all_pairs = topology.switch_levels, scale * count * count
        leaf, pod = price.rates.leaf, price.rates.pod
        rates[levels == LEAF] = round(all_pairs * leaf / price.leaf_slots)
        fixed[levels == LEAF] = round(all_pairs * leaf * USED_LEAF)
        rates[levels == POD] = round(all_pairs * pod / price.pod_slots)
        # No plan leaves out a root.
        roots = topology.leaf_path[-1]
        rates[roots] = fixed[roots] = 0
        return cls(scale, rates, fixed, room)

    def worth(self, switch: int, saved: Array) -> Array:
        """Return what is left of the hops that 0, 1, 2 .. VMs below a switch save, in parts."""
        if not self.rates[switch] and not self.fixed[switch]:
            return self.scale * saved
        charges = self.at(switch, np.arange(len(saved)))
        charges[0] = 0
        return self.scale * saved - charges

    def at(self, switches: Array | int, vms: Array | int) -> Array:
        """Return the charge of each of some switches, all of which have VMs."""
        kept = self.room[switches] - vms
        charges: Array = self.rates[switches] * kept + self.fixed[switches]
        return charges

    def from_top(self, topology: Topology, top: int, vms: int) -> int:
        """Return what a switch and those above it are charged if all VMs are below the switch."""
        above = np.fromiter(topology.upwards(top), dtype=np.int64)
        return int(self.at(above, vms).sum())
