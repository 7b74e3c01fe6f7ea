"""What a job could have at best: its places on the cluster without other jobs."""

from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, replace

from hpc_sched.core.constraints import NO_CONSTRAINTS, Constraints
from hpc_sched.core.plan.planner import solve
from hpc_sched.core.plan.problem import Problem
from hpc_sched.core.plan.result import Plan, Rejection
from hpc_sched.sim.cluster.cluster_state import Array
from hpc_sched.sim.jobs.job import Job
from hpc_sched.sim.policies.base import PlacementRequest, Policy

# Different jobs that are remembered.
KEPT = 4096


@dataclass(frozen=True, slots=True)
class IdealPlacement:
    """What the empty cluster has for a job."""

    refusal: Rejection | None  # why the policy never places it; None where it does
    hop_bytes: float | None  # the least; None where no plan holds it
    leaves: int | None  # the fewest that a plan of least Hop-Byte uses


class IdealPlacements:
    """Answers for jobs on the cluster without other jobs, each kind asked once.

    Jobs are of one kind where they have equally many VMs and every host takes equally many of
    them, so a trace of a hundred thousand jobs asks a few hundred times.
    """

    def __init__(self, policy: Policy) -> None:
        self._policy = policy
        self._known: OrderedDict[tuple[object, ...], IdealPlacement] = OrderedDict()

    def best(
        self,
        job: Job,
        constraints: Constraints,
        room: Array,
        capacity: Array,
        request: Callable[[Array], PlacementRequest],
    ) -> IdealPlacement:
        """Return what a job can have at best. Two placements for a new kind of job.

        :param room: how many of its VMs fit on each host while it has no others; what is least
            goes by that, so that it is the same whatever the policy
        :param capacity: how many of them the policy puts there; often the very same array
        :param request: makes the request on that cluster of one of the two
        """
        bounded = b"" if capacity is room else capacity.clip(max=job.count).tobytes()
        fits = room.clip(max=job.count).tobytes()
        key = (job.count, fits, bounded, job.application.app_class, constraints)
        found = self._known.get(key)
        if found is None:
            answer = self._policy.places(request(capacity))
            plan = least_plan(request(room).problem)
            found = self._known[key] = IdealPlacement(
                refusal=answer if isinstance(answer, Rejection) else None,
                hop_bytes=None if plan is None else plan.hop_bytes,
                leaves=None if plan is None else len(plan.leaves),
            )
            if len(self._known) > KEPT:
                self._known.popitem(last=False)
        self._known.move_to_end(key)
        return found


def least_plan(problem: Problem) -> Plan | None:
    """Return the plan of least Hop-Byte, wishes left aside; None where there is none."""
    bare = replace(problem, constraints=NO_CONSTRAINTS, packing=None, pack_hosts=True)
    answer = solve(bare, problem.awaiting)
    return answer if isinstance(answer, Plan) else None
