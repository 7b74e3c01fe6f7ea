"""Listing 1 of Dudina2013, as BunchWeigher has it."""

from dataclasses import replace

from hpc_sched.core.answers import Rejection
from hpc_sched.core.bunch import group_places
from hpc_sched.sim.policies.base import Places, Policy, Request, refused


def _place(request: Request) -> Places | Rejection:
    problem = replace(request.problem, packing=None, pack_hosts=True)
    places = group_places(problem)
    return tuple(places) if len(places) == problem.awaiting else refused(problem)


POLICY = Policy("dudina2013", "leaf switches by Listing 1 of Dudina2013 (BunchWeigher)", _place)
