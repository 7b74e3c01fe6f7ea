"""The plan of a group through one request."""

from __future__ import annotations

import time
from dataclasses import dataclass

import numpy as np

from hpc_sched.core.group_request import GroupRequest
from hpc_sched.core.plan.problem import Problem
from hpc_sched.core.plan.ranking import planned_counts
from hpc_sched.core.plan.result import Plan, Rejection


@dataclass(frozen=True, slots=True, eq=False)
class _Answered:
    """The last answer, and to what it was one."""

    answer: Plan | Rejection
    problem: Problem
    sizes: tuple[int, ...]


class Planning:
    """Plans a group, anew whenever a VM went elsewhere than planned or a host lost its room.

    While every VM takes a planned place the rest of the plan is the best plan for the rest of
    the VMs, so that all but the first VM of a request cost next to nothing.
    """

    def __init__(self) -> None:
        self._last: _Answered | None = None
        self.revised = False  # whether the plan was made anew once VMs were placed
        self.seconds = 0.0  # spent on the request

    def plan(self, request: GroupRequest, *, placed: int = 0) -> Plan | Rejection:
        """Return the plan of a request, or why there is none.

        :param placed: VMs that the request has placed
        """
        began = time.perf_counter()
        problem, sizes = request.problem(), request.sizes
        answer = self._rest_of_last(problem, sizes)
        if answer is None:
            answer = request.decide()
            self.revised |= placed > 0
        self._last = _Answered(answer, problem, sizes)
        self.seconds += time.perf_counter() - began
        return answer

    @property
    def answer(self) -> Plan | Rejection | None:
        """The last answer, None before the first one."""
        return None if self._last is None else self._last.answer

    def _rest_of_last(self, problem: Problem, sizes: tuple[int, ...]) -> Plan | Rejection | None:
        """Return what is left of the last answer, None if it does not hold any more."""
        last = self._last
        if last is None:
            return None
        added = problem.members - last.problem.members
        same = sizes == last.sizes and not added.any()
        if same and np.array_equal(problem.capacity, last.problem.capacity):
            return last.answer
        if isinstance(last.answer, Rejection) or (added < 0).any():
            return None
        topology = problem.topology
        taken = {topology.hosts[i]: int(added[i]) for i in np.flatnonzero(added)}
        rest = last.answer.after(taken, topology.leaf_of)
        if rest is None or rest.count not in sizes:
            return None
        return rest if (planned_counts(problem, rest) <= problem.capacity).all() else None
