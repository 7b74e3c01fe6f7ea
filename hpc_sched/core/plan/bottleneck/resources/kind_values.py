"""What new VMs save, and use of a resource, below each kind of switch by itself."""

from dataclasses import dataclass

import numpy as np

from hpc_sched.core.arrays import Array, Mask
from hpc_sched.core.plan.bottleneck.least_hops.bounded_tree import Savings
from hpc_sched.core.plan.bottleneck.resources.kind_tables import NEVER
from hpc_sched.core.plan.bottleneck.resources.resource import Resource


@dataclass(frozen=True, slots=True, eq=False)
class KindValues:
    """Saved hops of 0, 1, 2 .. VMs in switches of each kind, of leaves with their hosts, and use.

    Both are 0 for no VM.
    """

    permitted: list[Mask]  # by the bottleneck. Shape (VMs + 1,) each
    saved: list[Array]
    used: list[Array]

    @classmethod
    def of(cls, savings: Savings, resource: Resource) -> "KindValues":
        """Return the values of all kinds."""
        counts = savings.counts
        kinds = range(len(counts.fabric.kinds))
        return cls(
            permitted=[counts.permitted(kind) for kind in kinds],
            saved=[savings.of_kind(kind) for kind in kinds],
            used=resource.used(counts),
        )

    def priced(self, of_saved: int, of_used: int) -> list[Array]:
        """Return what VMs are worth: the hops that they save less what they use, at two prices.

        NEVER for numbers that are not permitted.
        """
        return [
            np.where(permitted, of_saved * saved - of_used * used, NEVER)
            for permitted, saved, used in zip(self.permitted, self.saved, self.used, strict=True)
        ]
