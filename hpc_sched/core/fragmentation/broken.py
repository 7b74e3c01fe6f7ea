"""The free slots that a plan leaves on the leaves and pods that it uses."""

from dataclasses import dataclass

import numpy as np

from hpc_sched.core.fragmentation.price import LEAF, POD
from hpc_sched.core.plan.problem import Problem, host_counts
from hpc_sched.core.plan.result import Plan


@dataclass(frozen=True, slots=True)
class BrokenSlots:
    """Free slots on switches that a plan breaks up, or leaves broken."""

    leaves: int
    pods: int


def broken_slots(problem: Problem, plan: Plan) -> BrokenSlots:
    """Return the slots that stay free on the leaves and pods where a plan has VMs. O(hosts).

    :param problem: that the plan is of
    """
    topology, planned = problem.topology, host_counts(problem.topology, plan.hosts)
    free = problem.capacity - planned
    found = []
    for level in (LEAF, POD):
        switches = topology.groups[min(level, topology.depth) - 1]
        is_used = np.zeros(len(topology.switches), dtype=np.bool_)
        is_used[switches[planned > 0]] = True
        is_used &= topology.switch_levels == level
        # No plan leaves out a root.
        is_used[topology.groups[-1]] = False
        found.append(int(free[is_used[switches]].sum()))
    return BrokenSlots(*found)
