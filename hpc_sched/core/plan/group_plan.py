"""The plan of a group with wishes, of which some of the VMs have not been requested yet."""

from collections.abc import Sequence

from hpc_sched.core.constraints import level_of
from hpc_sched.core.plan.planner import solve
from hpc_sched.core.plan.problem import Problem
from hpc_sched.core.plan.rejection import largest_gang
from hpc_sched.core.plan.result import Plan, Rejection


def decide(problem: Problem, sizes: Sequence[int], preferred: int = 0) -> Plan | Rejection:
    """Return the plan that meets the group's wishes, for as many VMs as can be had.

    What a request prefers comes before how many of the group's other VMs are planned along.
    The last size is what must fit, and it is the Rejection of that one that comes back where
    nothing does.

    :param sizes: numbers of VMs to plan for, the most wanted first
    :param preferred: the fewest of them for which the preference means something: a single
        VM of many is always under one switch
    :raises ValueError: for a wish that names a level which the topology does not have
    """
    constraints = problem.constraints
    answer: Plan | Rejection | None = None
    required = level_of(problem.topology, constraints.require)
    # To prefer the required level, or a wider one, says nothing more.
    if constraints.prefer is not None and level_of(problem.topology, constraints.prefer) < required:
        for size in [size for size in sizes if size >= preferred]:
            answer = solve(
                problem, size, require=constraints.prefer, max_leaves=constraints.max_leaves
            )
            if isinstance(answer, Plan):
                return answer
    for size in sizes:
        answer = solve(
            problem, size, require=constraints.require, max_leaves=constraints.max_leaves
        )
        if isinstance(answer, Plan):
            return answer
    if answer is None:
        raise ValueError("sizes: expected at least one number of VMs")
    return answer


def as_many_as_fit(problem: Problem, count: int) -> Plan | Rejection:
    """Return a plan of as many of ``count`` VMs as fit on one island, wishes left aside.

    For those who prefer and cannot refuse.
    """
    gang = largest_gang(problem, level_of(problem.topology, None), with_members=True)
    return solve(problem, min(count, gang.vms if gang is not None else 0))
