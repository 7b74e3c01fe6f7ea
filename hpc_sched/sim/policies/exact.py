"""The exact plan: the places of least Hop-Byte, as HopByteWeigher and HPCGroupFilter have it."""

from dataclasses import replace

from hpc_sched.core.plan.group_plan import decide
from hpc_sched.core.plan.problem import Problem
from hpc_sched.core.plan.result import Plan, Rejection
from hpc_sched.sim.policies.base import Places, Policy, Request
from hpc_sched.sim.policies.processor_type import on_one_type


def places_of(problem: Problem) -> Places | Rejection:
    """Return the planned places of a group, its wishes kept."""
    answer = decide(problem, (problem.awaiting,))
    if not isinstance(answer, Plan):
        return answer
    return tuple(problem.topology.index_of(host) for host in answer.places)


def place(request: Request) -> Places | Rejection:
    """Return the planned places of a group whose hosts are filled, fewest first."""
    return places_of(replace(request.problem, packing=None, pack_hosts=True))


POLICY = Policy(
    "exact-plan", "the plan of least Hop-Byte (HopByteWeigher, HPCGroupFilter)", on_one_type(place)
)
