"""Least free processors first: the default that Gupta2013 compares its own rules with."""

import numpy as np

from hpc_sched.core.plan.result import Rejection
from hpc_sched.sim.policies.base import Places, Policy, Request, filled


def _place(request: Request) -> Places | Rejection:
    """Return for each VM the host with the fewest free processors that still takes it.

    A host that has just taken a VM has fewer free ones than before, so it stays the first until
    it is full: one order serves the whole group. Equal hosts by name. O(hosts log hosts).
    """
    problem = request.problem
    assert problem.packing is not None
    processors = problem.packing.free[:, 0]
    return filled(problem, np.lexsort((problem.topology.name_rank, processors)))


POLICY = Policy(
    "least-free-pe",
    "each VM on the host with the fewest free processors that still takes it (Gupta2013's default)",
    _place,
)
