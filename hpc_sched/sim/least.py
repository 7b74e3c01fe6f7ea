"""What a job could have at best: its places on the cluster without other jobs."""

from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, replace

from hpc_sched.core.answers import Plan, Rejection
from hpc_sched.core.planner import solve
from hpc_sched.core.problem import Problem
from hpc_sched.core.wishes import NO_WISHES, Wishes
from hpc_sched.sim.job import Job
from hpc_sched.sim.occupancy import Array
from hpc_sched.sim.policies.base import Policy, Request

# Different jobs that are remembered.
KEPT = 4096


@dataclass(frozen=True, slots=True)
class Best:
    """What the empty cluster has for a job."""

    refusal: Rejection | None  # why the policy never places it; None where it does
    hop_bytes: float | None  # the least; None where no plan holds it
    leaves: int | None  # the fewest that a plan of least Hop-Byte uses


class EmptyCluster:
    """Answers for jobs on the cluster without other jobs, each kind asked once.

    Jobs are of one kind where they have equally many VMs and every host takes equally many of
    them, so a trace of a hundred thousand jobs asks a few hundred times.
    """

    def __init__(self, policy: Policy) -> None:
        self._policy = policy
        self._known: OrderedDict[tuple[object, ...], Best] = OrderedDict()

    def best(
        self, capacity: Array, job: Job, wishes: Wishes, request: Callable[[], Request]
    ) -> Best:
        """Return what a job can have at best. Two placements for a new kind of job.

        :param capacity: how many of its VMs each host takes while it has no others
        :param request: makes the request on that cluster
        """
        capped = capacity.clip(max=job.count).tobytes()
        key = (job.count, capped, job.application.app_class, wishes)
        found = self._known.get(key)
        if found is None:
            found = self._known[key] = self._ask(request())
            if len(self._known) > KEPT:
                self._known.popitem(last=False)
        self._known.move_to_end(key)
        return found

    def _ask(self, request: Request) -> Best:
        answer = self._policy.place(request)
        refusal = answer if isinstance(answer, Rejection) else None
        plan = least_plan(request.problem)
        if plan is None:
            return Best(refusal, None, None)
        return Best(refusal, plan.hop_bytes, len(plan.leaves))


def least_plan(problem: Problem) -> Plan | None:
    """Return the plan of least Hop-Byte, wishes left aside; None where there is none."""
    bare = replace(problem, wishes=NO_WISHES, packing=None, pack_hosts=True)
    answer = solve(bare, problem.awaiting)
    return answer if isinstance(answer, Plan) else None
