"""What a job could have at best: its places on the cluster without other jobs."""

from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, replace

from hpc_sched.core.answers import Plan, Rejection
from hpc_sched.core.planner import solve
from hpc_sched.core.problem import Problem
from hpc_sched.core.wishes import NO_WISHES
from hpc_sched.sim.policies.base import Places, Policy, Request

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

    def best(self, request: Request) -> Best:
        """Return what a group can have at best. One plan for a new kind of group."""
        problem = request.problem
        capped = problem.capacity.clip(max=problem.awaiting)
        application = request.application
        key = (problem.awaiting, capped.tobytes(), application.app_class, problem.wishes)
        found = self._known.get(key)
        if found is None:
            found = self._known[key] = _best(request, self._policy.place)
            if len(self._known) > KEPT:
                self._known.popitem(last=False)
        self._known.move_to_end(key)
        return found


def _best(request: Request, place: Callable[[Request], Places | Rejection]) -> Best:
    answer = place(request)
    plan = least_plan(request.problem)
    if plan is None:
        return Best(answer if isinstance(answer, Rejection) else None, None, None)
    return Best(answer if isinstance(answer, Rejection) else None, plan.hop_bytes, len(plan.leaves))


def least_plan(problem: Problem) -> Plan | None:
    """Return the plan of least Hop-Byte, wishes left aside; None where there is none."""
    bare = replace(problem, wishes=NO_WISHES, packing=None, pack_hosts=True)
    answer = solve(bare, problem.awaiting)
    return answer if isinstance(answer, Plan) else None
