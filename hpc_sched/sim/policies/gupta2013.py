"""Gupta2013: application classes, MDOBP and cache interference, as our filters and weighers do."""

from dataclasses import replace

import numpy as np

from hpc_sched.core.plan.result import Rejection
from hpc_sched.core.sharing import mdobp as mdobp_order
from hpc_sched.sim.policies import constrained, exact, nova_default
from hpc_sched.sim.policies.base import Places, Policy, Request, refused
from hpc_sched.sim.policies.processor_type import on_one_type


def mdobp(request: Request) -> Places | Rejection:
    """Return the places of VMs that MDOBP puts on hosts one after the other, fabric left aside."""
    problem = request.problem
    hosts = np.flatnonzero(problem.capacity)
    if problem.packing is None or int(problem.capacity.sum()) < problem.awaiting:
        return refused(problem)
    return tuple(
        mdobp_order.places(
            problem.packing,
            problem.members,
            problem.topology.name_rank,
            problem.capacity,
            hosts,
            problem.awaiting,
        )
    )


def _sync(request: Request) -> Places | Rejection:
    """Return places whose leaves are planned, and whose hosts inside a leaf MDOBP chooses."""
    return exact.places_of(replace(request.problem, pack_hosts=False))


def _async(request: Request) -> Places | Rejection:
    """Return the places of :func:`mdobp`; the fabric matters to a group that asks for it."""
    problem = replace(request.problem, pack_hosts=False)
    said = problem.constraints
    if said.require is None and said.max_leaves is None:
        return mdobp(request)
    bound = constrained.within(problem)
    if isinstance(bound, Rejection):
        return bound
    return mdobp(replace(request, problem=bound))


_BY_CLASS = {
    "extreme": on_one_type(exact.place),
    "sync": on_one_type(_sync),
    "async": on_one_type(_async),
    "none": nova_default.DEFAULT.place,
}


def _place(request: Request) -> Places | Rejection:
    return _BY_CLASS[request.application.app_class](request)


MDOBP = Policy("mdobp", "the host whose free resources are shaped like the VM (Gupta2013)", mdobp)
CLASSES = Policy(
    "gupta2013",
    "by application class: dedicated, planned or packed hosts, cache scores kept in limits "
    "(Gupta2013; all our filters, HopByteWeigher and MDOBPWeigher)",
    _place,
    minds_neighbours=True,
)
