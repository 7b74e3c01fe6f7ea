"""The best placement of a job: its hosts on the cluster without other jobs."""

from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, replace

from hpc_sched.core.constraints import Constraints
from hpc_sched.core.plan.result import Plan, Rejection
from hpc_sched.sim.cluster.cluster_state import Array
from hpc_sched.sim.jobs.job import Job
from hpc_sched.sim.policies.base import PlacementRequest, Policy

# Number of different jobs to remember.
KEPT = 4096


@dataclass(frozen=True, slots=True)
class IdealPlacement:
    """The least values that a job can have, and whether the policy ever places it."""

    refusal: Rejection | None  # why the policy never places it, or None
    hop_bytes: float | None  # the least, or None without a plan
    leaves: int | None  # the fewest of a plan of least Hop-Byte


class IdealPlacements:
    """Ideal placements of jobs; computed once for equal jobs.

    Jobs are equal if they have equally many VMs and every host takes equally many of them, so a
    trace of a hundred thousand jobs has a few hundred different ones.
    """

    def __init__(self, policy: Policy) -> None:
        self._policy = policy
        self._known: OrderedDict[tuple[object, ...], IdealPlacement] = OrderedDict()

    def of(
        self,
        job: Job,
        constraints: Constraints,
        room: Array,
        capacity: Array,
        request: Callable[[Array], PlacementRequest],
    ) -> IdealPlacement:
        """Return the ideal placement of a job. Two placements for a new kind of job.

        :param room: VMs of the job that fit on each host without other VMs. The least values are
            computed from it, so they do not depend on the policy. Shape (hosts,)
        :param capacity: VMs of the job that the policy puts there; often the same array
        :param request: makes the request on that cluster from one of the two arrays
        """
        bounded = b"" if capacity is room else capacity.clip(max=job.count).tobytes()
        fits = room.clip(max=job.count).tobytes()
        key = (job.count, fits, bounded, job.application.app_class, constraints)
        found = self._known.get(key)
        if found is None:
            answer = self._policy.places(request(capacity))
            group = replace(request(room).group, packing=None, pack_hosts=True)
            plan = group.unconstrained(job.count)
            found = self._known[key] = IdealPlacement(
                refusal=answer if isinstance(answer, Rejection) else None,
                hop_bytes=plan.hop_bytes if isinstance(plan, Plan) else None,
                leaves=len(plan.leaves) if isinstance(plan, Plan) else None,
            )
            if len(self._known) > KEPT:
                self._known.popitem(last=False)
        self._known.move_to_end(key)
        return found
