"""The hosts on which VMs of a planned group in parts may be."""

import numpy as np

from hpc_sched.core.arrays import Mask
from hpc_sched.core.constraints.parts.group_parts import Parts
from hpc_sched.core.plan.problem import Problem
from hpc_sched.core.plan.ranking import planned_counts
from hpc_sched.core.plan.result import Plan
from hpc_sched.core.plan.segmented.rooms_of_tops import level_of_parts


def hosts_below_parts(problem: Problem, plan: Plan, parts: Parts) -> Mask:
    """Return the hosts below the switches of parts where a plan has VMs. Shape (hosts,)."""
    switches = problem.topology.groups[level_of_parts(problem.topology, parts) - 1]
    return np.isin(switches, switches[planned_counts(problem, plan) > 0])
