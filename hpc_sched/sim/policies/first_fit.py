"""First fit: the first hosts by name that have room."""

import numpy as np

from hpc_sched.core.plan.result import Rejection
from hpc_sched.sim.policies.base import Places, Policy, Request, filled


def _place(request: Request) -> Places | Rejection:
    return filled(request.problem, np.argsort(request.problem.topology.name_rank))


POLICY = Policy("first-fit", "the first hosts by name, each filled before the next", _place)
