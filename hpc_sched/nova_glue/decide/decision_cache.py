"""The decision on a group, kept while the VMs of its request are placed."""

from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np

from hpc_sched import clock
from hpc_sched.core.decision_entry import PLANNING
from hpc_sched.core.group_request import GroupRequest
from hpc_sched.core.plan.problem import Problem
from hpc_sched.core.plan.ranking import planned_counts
from hpc_sched.core.plan.result import Plan, Rejection
from hpc_sched.core.plan.time_limit import NO_LIMIT, TimeLimit
from hpc_sched.nova_glue.io import request_deadline


class DecisionCache:
    """Decides again only if a VM was placed elsewhere or a planned host has no room.

    While every VM takes a planned place, the rest of the plan is the best plan for the other
    VMs. So only the first VM of a request takes time.
    """

    def __init__(self, timeout: float = 0.0) -> None:
        """Allow the plans of the request this time together, in seconds; 0: no limit."""
        self.timeout = timeout
        self.planning_seconds = 0.0  # spent on plans
        self.has_timed_out = False
        self.answer: Plan | Rejection | None = None  # the last one
        self._problem: Problem | None = None  # that it answers
        self._sizes: tuple[int, ...] = ()
        self.revised = False  # whether the group was planned again after a VM was placed

    def decide(self, request: GroupRequest, *, placed: int = 0) -> Plan | Rejection:
        """Return the plan of a request, or a Rejection.

        :param placed: number of VMs that the request has placed
        """
        problem, sizes = request.problem(), request.sizes
        answer = self._rest_of_last(problem, sizes)
        if answer is None:
            with self.planning() as limit:
                answer = request.decide(limit)
            self.revised |= placed > 0
        self.answer, self._problem, self._sizes = answer, problem, sizes
        return answer

    def keep(self, request: GroupRequest, answer: Plan) -> None:
        """Keep a plan as the decision on a request, which would be the same."""
        self.answer, self._problem, self._sizes = answer, request.problem(), request.sizes

    def forget(self) -> None:
        """Decide anew at the next call: hosts have more room than the last answer knew."""
        self.answer = None

    @contextmanager
    def planning(self) -> Iterator[TimeLimit]:
        """Charge the time spent in this block to the time for the request's plans."""
        began = clock.current.monotonic()
        left = max(self.timeout - self.planning_seconds, 0.0)
        limit = TimeLimit.after(left) if self.timeout else NO_LIMIT
        try:
            with request_deadline.current().clock.part(PLANNING):
                yield limit
        finally:
            self.has_timed_out |= limit.has_passed()
            self.planning_seconds += clock.current.monotonic() - began

    def _rest_of_last(self, problem: Problem, sizes: tuple[int, ...]) -> Plan | Rejection | None:
        if self.answer is None or self._problem is None:
            return None
        if problem.topology.hosts != self._problem.topology.hosts:
            # A member on a host that the fabric does not name was found since.
            return None
        added = problem.members - self._problem.members
        same = sizes == self._sizes and not added.any()
        if same and np.array_equal(problem.capacity, self._problem.capacity):
            return self.answer
        if isinstance(self.answer, Rejection) or (added < 0).any():
            return None
        topology = problem.topology
        taken = {topology.hosts[i]: int(added[i]) for i in np.flatnonzero(added)}
        rest = self.answer.after(taken, topology.leaf_of)
        if rest is None or rest.count not in sizes:
            return None
        return rest if (planned_counts(problem, rest) <= problem.capacity).all() else None
