"""All VMs of a group on one processor type, as HPCHomogeneityFilter has it (Gupta2012)."""

from dataclasses import replace

import numpy as np

from hpc_sched.core.plan.result import Rejection
from hpc_sched.sim.policies.base import Place, Places, Request, refused


def on_one_type(place: Place) -> Place:
    """Return a rule that places by another one on the best processor type that holds a group.

    Where no single type does, on all hosts, or nowhere if the request wants one type.
    """

    def placed(request: Request) -> Places | Rejection:
        problem = request.problem
        for hosts in request.types:
            room = np.where(hosts, problem.capacity, 0)
            if int(room.sum()) < problem.awaiting:
                continue
            answer = place(replace(request, problem=replace(problem, capacity=room)))
            if not isinstance(answer, Rejection):
                return answer
        if request.types and request.one_type:
            return refused(problem)
        return place(request)

    return placed
