"""The decision on a group, kept while the VMs of its request are placed."""

import time
from dataclasses import dataclass

import numpy as np

from hpc_sched.core.group_request import GroupRequest, ProcessorChoice
from hpc_sched.core.plan.problem import Problem
from hpc_sched.core.plan.ranking import planned_counts
from hpc_sched.core.plan.result import Plan, Refusal, Rejection


@dataclass(frozen=True, slots=True, eq=False)
class _Decided:
    answer: Plan | Rejection
    problem: Problem
    sizes: tuple[int, ...]


class DecisionCache:
    """Decides again only if a VM was placed elsewhere or a planned host has no room.

    While every VM takes a planned place, the rest of the plan is the best plan for the other
    VMs. So only the first VM of a request takes time.
    """

    def __init__(self) -> None:
        self._last: _Decided | None = None
        self.revised = False  # whether the group was planned again after a VM was placed
        self.seconds = 0.0  # spent on the request

    def decide(self, request: GroupRequest, *, placed: int = 0) -> Plan | Rejection:
        """Return the plan of a request, or a Rejection.

        :param placed: number of VMs that the request has placed
        """
        began = time.perf_counter()
        problem, sizes = request.problem(), request.sizes
        answer = self._rest_of_last(problem, sizes)
        if answer is None:
            answer = request.decide()
            self.revised |= placed > 0
        self._last = _Decided(answer, problem, sizes)
        self.seconds += time.perf_counter() - began
        return answer

    def choose_processor(self, request: GroupRequest) -> ProcessorChoice[Plan] | Refusal | None:
        """Return the processor type of a group, as its request does, and keep the plan on it."""
        began = time.perf_counter()
        choice = request.choose_processor(GroupRequest.decide, lambda plan: plan.count)
        if isinstance(choice, ProcessorChoice):
            problem = request.among(choice.hypervisors).problem()
            self._last = _Decided(choice.answer, problem, request.sizes)
        self.seconds += time.perf_counter() - began
        return choice

    @property
    def answer(self) -> Plan | Rejection | None:
        """The last answer, None before the first one."""
        return None if self._last is None else self._last.answer

    def _rest_of_last(self, problem: Problem, sizes: tuple[int, ...]) -> Plan | Rejection | None:
        """Return the rest of the last answer, or None if it does not hold any more."""
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
