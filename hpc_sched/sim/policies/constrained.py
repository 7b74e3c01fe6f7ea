"""The hosts where a group keeps its wishes, as HPCGroupFilter leaves them to any weigher."""

from dataclasses import replace

import numpy as np

from hpc_sched.core.plan.group_plan import decide
from hpc_sched.core.plan.problem import Problem
from hpc_sched.core.plan.pruning import permitted
from hpc_sched.core.plan.result import Plan, Rejection
from hpc_sched.sim.policies.base import Place, Places, Request


def within(problem: Problem) -> Problem | Rejection:
    """Return the problem on the hosts that ``require`` and ``max_leaves`` leave of one island.

    The filter asks the planner where that is, and refuses a group that has no plan.
    """
    constraints = problem.constraints
    is_bound = constraints.require is not None or constraints.max_leaves is not None
    if not is_bound and len(problem.topology.roots) == 1:
        return problem
    plan = decide(problem, (problem.awaiting,))
    if not isinstance(plan, Plan):
        return plan
    return replace(problem, capacity=np.where(permitted(problem, plan), problem.capacity, 0))


def kept(place: Place) -> Place:
    """Return a rule that places by another one where a group keeps its wishes, or nowhere."""

    def placed(request: Request) -> Places | Rejection:
        problem = within(replace(request.problem, packing=None, pack_hosts=True))
        if isinstance(problem, Rejection):
            return problem
        return place(replace(request, problem=problem))

    return placed
