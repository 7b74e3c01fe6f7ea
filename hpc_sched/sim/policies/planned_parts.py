"""The VMs that a plan has below each switch of parts, for policies that read no constraints."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from hpc_sched.core.arrays import Mask
from hpc_sched.core.constraints.parts.group_parts import Parts
from hpc_sched.core.group_request import GroupRequest
from hpc_sched.core.plan.result import Plan
from hpc_sched.core.plan.segmented.rooms_of_tops import level_of_parts


@dataclass(frozen=True, slots=True, eq=False)
class PlannedParts:
    """As HPCGroupFilter keeps them, whatever the order of the VMs is."""

    level: int
    vms: Mapping[int, int]  # by switch

    @classmethod
    def of(cls, group: GroupRequest, plan: Plan, parts: Parts) -> "PlannedParts":
        """Return those of a plan."""
        level = level_of_parts(group.topology, parts)
        switches = group.topology.groups[level - 1]
        hosts = map(group.topology.index_of, plan.places)
        return cls(level, Counter(switches.item(host) for host in hosts))

    def permitted(self, group: GroupRequest, placed: Sequence[int]) -> Mask:
        """Return the hypervisors for the next VM, once some are placed. Shape (hypervisors,)."""
        switches = group.switches(self.level)
        used = Counter(switches[list(placed)].tolist())
        mask: Mask = np.isin(switches, [one for one, vms in self.vms.items() if used[one] < vms])
        return mask
