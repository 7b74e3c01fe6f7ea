"""Listing 1 of Dudina2013, as BunchWeigher has it.

Behind HPCHomogeneityFilter and HPCGroupFilter. HPCRackCapacityFilter is left out: it keeps the
leaves of the exact plan and spares, and what it removes Listing 1 may have wanted.
"""

from hpc_sched.core.classic.listing_1 import group_places
from hpc_sched.core.plan.result import Rejection
from hpc_sched.sim.policies import constrained
from hpc_sched.sim.policies.base import Places, Policy, Request, refused
from hpc_sched.sim.policies.processor_type import on_one_type


def _place(request: Request) -> Places | Rejection:
    places = group_places(request.problem)
    if len(places) < request.problem.awaiting:
        return refused(request.problem)
    return tuple(places)


POLICY = Policy(
    "dudina2013",
    "leaf switches by Listing 1 of Dudina2013 (BunchWeigher)",
    on_one_type(constrained.kept(_place)),
)
