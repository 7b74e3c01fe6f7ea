"""The decisions on one group, for the scheduler, ``hpc-sched fits`` and the simulator alike."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Self

import numpy as np

from hpc_sched.core import leaf_slots
from hpc_sched.core.arrays import Array, Mask
from hpc_sched.core.by_service.plan_by_service import (
    plan_by_service,
    plan_on_one_service,
    rejected_on_one_service,
)
from hpc_sched.core.constraints import NO_CONSTRAINTS, server_group_policy
from hpc_sched.core.constraints.group_size import GroupSize
from hpc_sched.core.constraints.min_size import MinSize
from hpc_sched.core.placement_input import PlacementInput
from hpc_sched.core.plan.objective import Isolation
from hpc_sched.core.plan.planner import solve_most, solve_sizes
from hpc_sched.core.plan.problem import Problem, host_counts
from hpc_sched.core.plan.ranking import (
    hosts_of_one,
    leaves_of_group,
    permitted_hosts,
    plan_order,
    planned_counts,
    spare_order,
)
from hpc_sched.core.plan.rejection import broken_by, conflict_of
from hpc_sched.core.plan.result import Plan, Refusal, Rejection
from hpc_sched.core.plan.time_limit import NO_LIMIT, TimeLimit
from hpc_sched.core.room.hypervisor_rooms import scarcest

# Plans that are verified for one decision. Each lowers the room of a hypervisor at least, and
# mostly those of all alike.
MAX_CHECKS = 32


@dataclass(frozen=True, slots=True, eq=False)
class GroupRequest(PlacementInput):
    """A group to place; each method is one decision about it.

    decide              the plan of the group, or a Rejection
    host_order          the hosts in the order in which one VM tries them
    refusal             the reason of a Rejection, for operator and tenant
    """

    def decide(self, limit: TimeLimit = NO_LIMIT) -> Plan | Rejection:
        """Return the plan of least Hop-Byte within the constraints, or a Rejection.

        Where :attr:`room` is a bound, the hypervisors of the plan are verified, and the group is
        planned again with the lower rooms until the plan holds.

        Shunned hosts are used only if there is no plan without them, and other processors than
        the preferred ones only if these cannot hold the group. With soft-anti-affinity, hosts
        take the fewest VMs of the group with which it fits, see :meth:`spread`.

        With followers the VMs go to where the whole group has room, next to where those on hosts
        that are down are, if it has any there; or else to where the most of them can follow.

        Where :attr:`gathering` is set, a group that is apart is placed as :meth:`Gathering.starts`
        says, as far as it has a plan there.

        A plan made after the limit may not be the best (``is_proven``); a Rejection does not
        depend on it. Under anti-affinity on services of many nodes neither does, see
        :func:`plan_by_service`.

        :param limit: of all plans that are made for this decision
        :raises exceptions.RequestError: for a level that the topology does not have
        """
        near = self._near()
        if near is not None and isinstance(answer := near.decide(limit), Plan):
            return answer
        request, answer = self, self._decide(limit)
        if self.check is None:
            return answer
        for _ in range(MAX_CHECKS):
            if not isinstance(answer, Plan):
                return request._with_caps(answer, limit)
            # Of several hypervisors of one host of the topology any may take its VMs.
            on_hosts = host_counts(self.topology, answer.hosts)
            planned = np.minimum(on_hosts[self.hosts_of_rows], request.room)
            rooms = self.check.verified(planned, self.left)
            if (planned <= rooms).all():
                return answer
            request = replace(request, room=np.minimum(request.room, rooms))
            answer = request._decide(limit)
        return replace(answer, is_proven=False) if isinstance(answer, Plan) else answer

    def _with_caps(self, answer: Rejection, limit: TimeLimit) -> Rejection:
        """Return a Rejection whose numbers are what the caps of all hypervisors leave."""
        if self.check is None or self.check.caps is None or answer.conflict:
            return answer
        is_whole = answer.count <= self.left
        room = np.minimum(self.room, self.check.ask_caps(answer.count, is_whole=is_whole))
        if (room == self.room).all():
            return answer
        lower = replace(self, room=room)._decide(limit)
        return lower if isinstance(lower, Rejection) else answer

    def _decide(self, limit: TimeLimit) -> Plan | Rejection:
        """Return the answer of :meth:`decide` as if all rooms were exact."""
        for request in self.candidate_sets():
            for group in (*request.starts(), request):
                answer = group._plan(limit)
                if isinstance(answer, Plan):
                    return leaf_slots.new_leaves_first(self, answer)
        return answer

    def starts(self) -> Iterator[Self]:
        """Yield the request below the switches where a group comes together that is apart."""
        if self.gathering is not None:
            for hosts in self.gathering.starts(self.problem(), self.active, self.left):
                yield self.among(hosts[self.hosts_of_rows])

    def _plan(self, limit: TimeLimit) -> Plan | Rejection:
        """Return the answer of :meth:`_decide` on all candidates, shunned or not."""
        if self.constraints.bounds.parts is not None:
            from hpc_sched.core.constraints.excluded import with_possible_parts

            possible = with_possible_parts(self)
            if possible is not self:
                return possible if isinstance(possible, Rejection) else possible._plan(limit)
        problem, policy = self.spread().problem(), self.hard_policy
        sizes = self._sizes_with_followers(problem)
        if policy is not None and policy.counts_nodes:
            if self.objective is None:
                return plan_by_service(self, policy, sizes)
            from hpc_sched.core.by_service import objective_plan

            return objective_plan.plan(self, policy, sizes)
        answer = solve_sizes(problem, sizes, self.active, limit)
        if policy is None:
            return answer
        if isinstance(answer, Rejection):
            if policy.has_single_nodes:
                return answer
            return rejected_on_one_service(self, policy, answer.count)
        planned = self.per_hypervisor(answer, self.capacity)
        if server_group_policy.keeps(policy, planned):
            return answer
        return plan_on_one_service(self, policy, sizes, planned, limit)

    def _near(self) -> Self | None:
        """Return the request of the whole group next to followers on hosts that are down, or None.

        With such a plan the group is never apart, also if these hosts come back. None with a bound
        at least: leaves that the dead hosts use keep it no more.
        """
        bounds = self.constraints.bounds
        is_apart = bounds.least_leaves > 1
        if self.leaving is None or is_apart or (self.is_move and not self.constraints.bind_place):
            return None
        constraints = self.constraints
        if bounds.level is None and bounds.preferred is not None:
            constraints = constraints.changed(require=bounds.preferred)
        return replace(
            self,
            leaving=None,
            followers=self.whole - self.awaiting if self.is_move else 0,
            members=self.members + self.leaving,
            left=self.awaiting,
            constraints=constraints,
        )

    def _sizes_with_followers(self, problem: Problem) -> Sequence[int]:
        """Return :attr:`sizes`, and between them the most VMs that fit.

        With followers, and for a group that states its least size.
        """
        sizes = self.sizes
        if not self.followers and (self.least_size is None or len(sizes) < 2):
            return sizes
        # Most groups have neither.
        from hpc_sched.core.constraints.final_size import sizes_that_fit

        return sizes_that_fit(self, problem, self._most_on_one_service)

    def unconstrained(self, count: int, limit: TimeLimit = NO_LIMIT) -> Plan | Rejection:
        """Return the plan of least Hop-Byte of ``count`` VMs without constraints, on any host."""
        bare = replace(
            self,
            constraints=NO_CONSTRAINTS,
            left=count,
            awaiting=count,
            orphans=0,
            followers=0,
            leaving=None,
            missing=0,
            shunned=None,
            preferred=None,
            gathering=None,
            objective=None,
            price=None,
        )
        return bare.decide(limit)

    def spread(self) -> Self:
        """Return the request with soft-anti-affinity as a bound on the group's VMs per host.

        The smallest bound with which the group fits under its constraints, orphans left
        out. The request itself for other policies, and if the group does not fit.
        """
        if self.server_group_policy != "soft-anti-affinity":
            return self
        problem = self.problem()
        sizes = [size for size in self._sizes_with_followers(problem) if size <= self.active]
        bound = server_group_policy.fewest_per_host(problem, sizes)
        return replace(self, most_per_host=bound)

    def as_planned(self, plan: Plan) -> Self:
        """Return the request without what the plan avoids, for a VM that needs another host.

        Without shunned hosts and other processors than the preferred ones if the plan has none,
        and with soft-anti-affinity as the plan's own bound on the group's VMs per host.
        """
        request = self
        for avoided in (self.shunned, self.other_processors):
            if avoided is not None and not self.uses(plan, avoided):
                request = request.among(~avoided)
        if self.server_group_policy == "soft-anti-affinity":
            planned = planned_counts(self.problem(), plan)
            most = (self.members + planned).max(initial=1, where=planned > 0)
            request = replace(request, most_per_host=int(most))
        return request

    def host_order(self, answer: Plan | Rejection, slot: int, limit: TimeLimit = NO_LIMIT) -> Array:
        """Return all hosts of the topology in the order in which one VM tries them, best first.

        A weigher cannot refuse: without a plan, the order is that of a plan of the largest
        number of VMs that fits without constraints. Shape (hosts,).

        :param answer: of :meth:`decide`
        :param slot: which of the plan's places belongs to the VM, from 0
        :param limit: of the plan of the largest number
        """
        if isinstance(answer, Plan):
            if self.left:
                slot, *_ = leaf_slots.own_slots(self, answer, slot, range(self.left))
            return plan_order(self.as_planned(answer).problem(), answer, slot=slot)
        problem = replace(self, objective=None).problem()
        answer = solve_most(problem, self.awaiting, limit)
        if not isinstance(answer, Plan):
            # Members are on several islands: order hosts by their distance to all members.
            return spare_order(problem, None)
        return plan_order(problem, answer, slot=slot)

    def contradiction(self, empty: Array) -> str | None:
        """Return why the final size can never fit in the most leaf switches, or None.

        :param empty: VMs that each host takes while it has none, shape (hosts,)
        """
        if not self.constraints.bound_final_size:
            return None
        # For few groups.
        from hpc_sched.core.constraints.final_size import of_final_size

        return of_final_size(self, empty)

    @property
    def policy_fault(self) -> str | None:
        """How the server group's policy, or an objective, contradicts the constraints, or None.

        Whatever room there is.
        """
        bounds = self.constraints.bounds
        if bounds.least_leaves < 2 and bounds.parts is None:
            return None
        from hpc_sched.core.constraints.excluded import of_policy

        return of_policy(self)

    def open_hosts(self) -> Mask:
        """Return which hosts may take one more VM of the group. Shape (hosts,).

        Every node with room counts if the policy allows its service one more VM.
        """
        return self.per_host(server_group_policy.open_room(self.hard_policy, self.room)) > 0

    def refusal(self, answer: Rejection) -> Refusal:
        """Return the reason of a Rejection, for operator and tenant."""
        if self.server_group_policy == "affinity" and not answer.conflict:
            most = self._most_on_one_service()
            if most < answer.count:
                where, there = (
                    ("the members' host", "there")
                    if self.members.any()
                    else ("one host", "on one host")
                )
                where = " and ".join([where, *answer.bounds.needs_at_least])
                why = f"{answer.count} VMs of a group with policy affinity need {where}"
                fits = f": largest gang that fits {there}: {most}"
                operator, tenant = why + fits, why + fits if most < self.left else why
                if self.hard_policy is not None and self.hard_policy.has_single_nodes:
                    operator, tenant = self._with_scarcest(answer, operator, tenant, on_one=True)
                return Refusal(operator, tenant)
        size, key = self.constraints.group_size, GroupSize.spec.name
        if self.least_size == answer.count:
            size, key = self.constraints.min_size, MinSize.spec.name
        why = f" ({key}={size})" if size is not None and answer.count > self.left else ""
        operator, tenant = self._with_scarcest(
            answer, answer.operator + why, answer.for_tenant(self.left) + why
        )
        if self.full_hosts:
            whys = ", ".join(f"{count} by {why}" for why, count in sorted(self.full_hosts.items()))
            operator += f"; hosts left out for the VMs that they have: {whys}"
            # Members that break a constraint do so whatever room hosts have.
            if not answer.conflict:
                tenant += "; hosts are left out for the VMs that they have"
        return Refusal(operator, tenant)

    def permitted(self, plan: Plan) -> Mask:
        """Return the hypervisors on which VMs keep the constraints, each on the island of others.

        Any combination of them does, but for bounds at least, see :meth:`permitted_next`. A single
        VM, and one that moves, may be wherever it keeps them and as many can follow as by the plan:
        then the switch of the plan is no constraint. Nor is the island for one that moves without
        constraints, which is never refused. An isolated group stays below the leaves of its plan
        and members: elsewhere it may use other uplinks. One in parts stays below the switches of
        its plan: one VM may be anywhere there, and the others as the rest of the plan says. Shape
        (hypervisors,).
        """
        has_islands = len(self.topology.roots) > 1 and not self.is_move
        is_isolated = isinstance(self.objective, Isolation)
        if not (self.constraints.bind_place or is_isolated or has_islands):
            return np.ones(len(self.room), dtype=np.bool_)
        problem = self.as_planned(plan).problem()
        is_alone = self.is_move or plan.count == 1
        permitted = (
            hosts_of_one(problem, plan.count) if is_alone else permitted_hosts(problem, plan)
        )
        if is_isolated:
            permitted &= leaves_of_group(problem, plan)
        if (parts := self.constraints.bounds.guaranteed_parts) is not None:
            from hpc_sched.core.plan.segmented.part_hosts import hosts_below_parts

            permitted &= hosts_below_parts(problem, plan, parts)
        return permitted[self.hosts_of_rows] & self.permitted_next()

    def permitted_next(self) -> Mask:
        """Return the hypervisors where one VM leaves the others room to keep bounds at least.

        Where each VM that is left must use a leaf of its own, without those that the group uses.
        Shape (hypervisors,).
        """
        bounds = self.constraints.bounds
        if not self.left or not bounds.least_leaves:
            return np.ones(len(self.room), dtype=np.bool_)
        used = leaf_slots.used_leaves(self)
        if bounds.missing_leaves(len(used), self.left) < self.left:
            return np.ones(len(self.room), dtype=np.bool_)
        return ~np.isin(self.topology.leaf_index[self.hosts_of_rows], used)

    @property
    def conflict(self) -> str | None:
        """How the members themselves break a constraint, or None."""
        return conflict_of(self.problem(), self.constraints.bounds)

    def broken_by(self, planned: Array) -> str | None:
        """Return how planned VMs, with the members, break a constraint or the policy, or None.

        None too where the members break it already. ``planned``: shape (hypervisors,).
        """
        if self.conflict is None:
            # VMs without a request are those that complete what these begin.
            bounds, problem = self.constraints.bounds, replace(self.problem(), awaiting=self.whole)
            if (broken := broken_by(problem, self.per_host(planned), bounds)) is not None:
                return broken
        if self.hard_policy is not None and not server_group_policy.keeps(
            self.hard_policy, planned
        ):
            return f"policy {self.hard_policy.policy} of the server group"
        return None

    def is_refused(self, answer: Rejection, *, is_move: bool = False) -> bool:
        """True if a request without a plan is refused, False if it is placed without one.

        Without a guarantee, a VM that moves is placed, and so is a group whose members already
        break a constraint or are on several islands.
        """
        is_guaranteed = (
            self.constraints.bind_place
            or isinstance(self.objective, Isolation)
            or (self.homogeneous == "true" and self.processors is not None)
        )
        return is_guaranteed or not (is_move or answer.conflict)

    def _with_scarcest(
        self, answer: Rejection, operator: str, tenant: str, *, on_one: bool = False
    ) -> tuple[str, str]:
        """Return the texts with what keeps the group from fitting, where one resource or cap does.

        :param on_one: whether one hypervisor must take all VMs; only a cap is named then
        """
        check = self.check
        if check is None or answer.conflict or not answer.count:
            return operator, tenant
        among = self.room > 0
        if on_one:
            among = server_group_policy.open_room(self.hard_policy, self.room) > 0
        elif answer.bounds.level is not None and answer.best is not None:
            switch = self.topology.switch_index(answer.best.switch)
            among &= self.switches(self.topology.switches[switch].level) == switch
        scarce = scarcest(check.by_resource(), among, answer.count, on_one=on_one)
        is_cap = check.caps is not None and scarce in check.caps.names
        if scarce is None or (on_one and not is_cap):
            return operator, tenant
        # A tenant does not read how the cloud is configured.
        shown = "the number of VMs that a host takes at a time" if is_cap else scarce
        return f"{operator}; {scarce} runs out first", f"{tenant}; {shown} runs out first"

    def _most_on_one_service(self) -> int:
        """Return the most VMs that one service takes; only the members' service if it has any."""
        if self.hard_policy is None:
            return 0
        left = self.room if self.check is None else np.minimum(self.room, self.check.left)
        room = server_group_policy.open_room(self.hard_policy, left)
        rooms, used = self.hard_policy.per_service(room), leaf_slots.used_leaves(self)
        missing = self.constraints.bounds.missing_leaves(len(used), int(rooms.max(initial=0)))
        if missing:
            leaf = self.topology.leaf_index[self.hosts_of_rows]
            is_new = (room > 0) & ~np.isin(leaf, used)
            pairs = np.unique(np.stack((self.hard_policy.service, leaf))[:, is_new], axis=1)
            new = np.bincount(pairs[0], minlength=len(rooms))
            rooms = np.where(new < missing, np.minimum(rooms, new), rooms)
        return int(rooms.max(initial=0))
