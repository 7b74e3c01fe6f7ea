"""The hosts for VMs without a plan: MDOBP chooses for one VM after the other (Gupta2013)."""

from dataclasses import dataclass

import numpy as np

from hpc_sched.core.arrays import Array
from hpc_sched.core.sharing import mdobp
from hpc_sched.core.sharing.mdobp import MDOBPInput


@dataclass(frozen=True, slots=True, eq=False)
class UnplannedVMs:
    """A single VM, or VMs of class ``none``, before the first is placed. Arrays are read-only.

    There is no topology, no constraint and no processor type. Rows are hypervisors.
    """

    packing: MDOBPInput
    members: Array  # shape (hypervisors,): VMs of the server group there, for a soft policy
    name_rank: Array  # shape (hypervisors,)
    room: Array  # shape (hypervisors,): VMs of the request that each takes

    def keys(self, placed: Array, lost: Array) -> Array:
        """Return the sort key of each hypervisor for the next VM, smallest first.

        Its place in MDOBP's order; those that are full come after all others, those that lost a
        claim of the request after these. Shape (hypervisors,). O(hypervisors log hypervisors).

        :param placed: VMs of the request on each, shape (hypervisors,)
        :param lost: rows of those that lost a claim, shape (lost,)
        """
        order = mdobp.order(self.packing.after(placed), self.members + placed, self.name_rank)
        keys = np.empty(len(order), dtype=np.int64)
        keys[order] = np.arange(len(order))
        keys[placed >= self.room] += len(order)
        keys[lost] += 2 * len(order)
        return keys
