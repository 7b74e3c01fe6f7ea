"""The decisions on a group, the last one kept while the VMs of its request are placed."""

from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
from oslo_log import log as logging

from hpc_sched import clock
from hpc_sched.core.arrays import Array
from hpc_sched.core.group_request import GroupRequest
from hpc_sched.core.logged.decision_summary import PLANNING
from hpc_sched.core.plan.problem import Problem
from hpc_sched.core.plan.ranking import planned_counts
from hpc_sched.core.plan.result import Plan, Rejection
from hpc_sched.core.plan.time_limit import NO_LIMIT, TimeLimit
from hpc_sched.nova_glue.io import request_deadline

LOG = logging.getLogger(__name__)


class Decisions:
    """Decides again only if a VM was placed elsewhere or a planned host has no room.

    While every VM takes a planned place, the rest of the plan is the best plan for the other
    VMs. So only the first VM of a request takes time.
    """

    def __init__(self, timeout: float = 0.0, instance: str = "") -> None:
        """Allow the plans of the request this time together, in seconds; 0: no limit.

        :param instance: uuid of the request's first VM, for the log
        """
        self.answer: Plan | Rejection | None = None  # the last one
        # Hosts in the order of RackCapacityWeigher; indices in topology.hosts, shape (hosts,).
        self.rack_order: Array | None = None
        self.revised = False  # whether the group was planned again after a VM was placed
        self._timeout = timeout
        self._instance = instance
        self._seconds = 0.0  # spent on plans
        self._has_timed_out = self._is_unproven = False  # the latter: whether it was reported
        self._problem: Problem | None = None  # that the answer is for
        self._sizes: tuple[int, ...] = ()

    def current(self, request: GroupRequest, *, placed: int = 0) -> Plan | Rejection:
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
        is_reported = self._is_unproven or not self._has_timed_out
        if not is_reported and isinstance(answer, Plan) and not answer.is_proven:
            self._warn_of_unproven(request)
        return answer

    def keep(self, request: GroupRequest, answer: Plan) -> None:
        """Keep a plan as the decision on a request, which would be the same."""
        self.answer, self._problem, self._sizes = answer, request.problem(), request.sizes

    def forget(self) -> None:
        """Decide anew at the next call: hosts have more room than the last answer knew."""
        self.answer = None

    def host_order(self, request: GroupRequest, answer: Plan | Rejection, slot: int) -> Array:
        """Return the hosts, best one for the next VM first; see :meth:`GroupRequest.host_order`."""
        if isinstance(answer, Plan):
            return request.host_order(answer, slot)
        with self.planning() as limit:
            return request.host_order(answer, slot, limit)

    @contextmanager
    def planning(self) -> Iterator[TimeLimit]:
        """Charge the time spent in this block to the time for the request's plans."""
        began = clock.current.monotonic()
        left = max(self._timeout - self._seconds, 0.0)
        limit = TimeLimit.after(left) if self._timeout else NO_LIMIT
        try:
            with request_deadline.current().clock.part(PLANNING):
                yield limit
        finally:
            self._has_timed_out |= limit.has_passed()
            self._seconds += clock.current.monotonic() - began

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

    def _warn_of_unproven(self, request: GroupRequest) -> None:
        """Report that the time for planning was over."""
        self._is_unproven = True
        constraints = [f"{one.name}={value}" for one, value in request.constraints.items()]
        LOG.warning(
            "The plan for instance %s is not proven best: planning took %.1f s, planning_timeout "
            "is %g s; up to %d VMs beside %d members on %d hosts with room, %s",
            self._instance,
            self._seconds,
            self._timeout,
            request.sizes[0],
            int(request.members.sum()),
            int((request.room > 0).sum()),
            ", ".join(constraints) or "no constraints",
        )
