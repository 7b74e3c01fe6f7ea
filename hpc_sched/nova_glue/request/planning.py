"""The plan of a group through one request."""

from __future__ import annotations

import time
import weakref
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from hpc_sched import exceptions
from hpc_sched.core.constraints import Constraints, level_of
from hpc_sched.core.extra_specs import GROUP_SIZE, MAX_LEAVES
from hpc_sched.core.plan.group_plan import as_many_as_fit, decide
from hpc_sched.core.plan.problem import Problem
from hpc_sched.core.plan.ranking import plan_order, planned_counts, spare_order
from hpc_sched.core.plan.rejection import largest_gang, rejected
from hpc_sched.core.plan.result import Plan, Rejection
from hpc_sched.nova_glue.room import host_state_room
from hpc_sched.topology import plurals

if TYPE_CHECKING:
    from hpc_sched.nova_glue.request.group_state import GroupState

Array = NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class _Answered:
    """The last answer, and to what it was one."""

    answer: Plan | Rejection
    problem: Problem
    sizes: tuple[int, ...]


class Planning:
    """Plans a group, anew whenever something has gone another way than planned.

    While every VM takes a planned place the rest of the plan is the best plan for the rest of
    the VMs, so that all but the first VM of a request cost next to nothing.
    """

    def __init__(self, state: GroupState) -> None:
        # The state owns its planning; a reference back would keep both, and the HostStates of
        # the whole cloud, through one more garbage collection.
        self._state: GroupState = weakref.proxy(state)
        self._last: _Answered | None = None
        # Whether a VM of the request went elsewhere than planned, or a host lost its room.
        self.revised = False

    def plan(self, among: Array) -> Plan | Rejection:
        """Return the plan on some of the candidates, or why there is none.

        :param among: positions of their HostStates
        """
        began = time.perf_counter()
        problem = self._state.problem(among)
        sizes = self._state.sizes
        answer = self._still_good(problem, sizes)
        if answer is None:
            answer = self._decide(problem, sizes, among)
            self.revised |= self._state.placed > 0
        self._last = _Answered(answer, problem, sizes)
        self._state.record.seconds += time.perf_counter() - began
        return answer

    def order(self, among: Array) -> Array:
        """Return all hosts of the topology, the best for the next VM first.

        Where the whole group does not fit, and no filter has refused it, as many VMs as possible
        are planned, wishes left aside.

        :param among: positions of the HostStates that are candidates
        """
        problem = self._state.problem(among)
        answer = self.plan(among)
        if not isinstance(answer, Plan):
            answer = as_many_as_fit(problem, self._state.awaiting)
        if not isinstance(answer, Plan):
            # Members on several islands: near any of them is as good as it gets.
            return spare_order(problem, None)
        return plan_order(problem, answer, slot=self._state.slot)

    def _decide(self, problem: Problem, sizes: tuple[int, ...], among: Array) -> Plan | Rejection:
        """Return a plan that keeps the group's policy also where services own many nodes."""
        state = self._state
        answer = decide(problem, sizes, state.active)
        if isinstance(answer, Rejection) or state.keeps_policy(answer.hosts):
            return answer
        for bounded in state.problems_by_policy(among):
            answer = decide(bounded, sizes, state.active)
            if isinstance(answer, Plan):
                return answer
        if isinstance(answer, Plan):
            # No service takes them all: what fits is for the caller to say.
            return rejected(problem, sizes[-1], require=None, max_leaves=None)
        return answer

    @property
    def answer(self) -> Plan | Rejection | None:
        """The last answer, None where nobody has asked."""
        return None if self._last is None else self._last.answer

    def _still_good(self, problem: Problem, sizes: tuple[int, ...]) -> Plan | Rejection | None:
        """Return what is left of the last answer, or None where it does not hold any more."""
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

    def check_wishes(self) -> None:
        """Check that the wishes can be met by an empty cloud.

        Reads the sizes of all hosts before a request is refused, nothing else.

        :raises exceptions.RefusedError: where they contradict each other
        """
        said = self._state.request.hpc_specs.constraints
        if said.max_leaves is None or said.group_size is None or self._state.group.is_move:
            return
        most = _most(self._state.empty_problem(), said)
        if said.group_size <= most:
            return
        # Before it says never: hosts that are full now may be larger than all candidates.
        sizes = host_state_room.empty_capacities(self._state.request.demand)
        if sizes is None:
            return
        most = _most(self._state.empty_problem(sizes), said)
        if said.group_size > most:
            raise exceptions.RefusedError(
                f"{MAX_LEAVES}={said.max_leaves} and {GROUP_SIZE}="
                f"{said.group_size} contradict each other: at most {most} VMs of this flavor "
                f"fit in {plurals.text(said.max_leaves, 'leaf switch')}"
            )


def _most(problem: Problem, said: Constraints) -> int:
    """Return the most VMs that a cloud holds as the wishes have it."""
    level = level_of(problem.topology, said.require)
    most = largest_gang(problem, level, max_leaves=said.max_leaves)
    return 0 if most is None else most.vms
