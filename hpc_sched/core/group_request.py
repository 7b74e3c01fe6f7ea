"""The decisions on one group, for the scheduler, ``hpc-sched fits`` and the simulator alike."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Generic, TypeVar

import numpy as np

from hpc_sched.core import server_group_policy
from hpc_sched.core.arrays import Array, Mask
from hpc_sched.core.constraints import NO_CONSTRAINTS, level_of
from hpc_sched.core.extra_specs import GROUP_SIZE, MAX_LEAVES
from hpc_sched.core.placement_input import PlacementInput
from hpc_sched.core.plan.planner import solve_most, solve_sizes
from hpc_sched.core.plan.pruning import permitted_hosts
from hpc_sched.core.plan.ranking import plan_order, spare_order
from hpc_sched.core.plan.rejection import largest_gang, rejected
from hpc_sched.core.plan.result import Plan, Refusal, Rejection
from hpc_sched.core.plan.time_limit import NO_LIMIT, TimeLimit
from hpc_sched.topology import plurals

Answer = TypeVar("Answer")


@dataclass(frozen=True, slots=True)
class ProcessorChoice(Generic[Answer]):
    """The processor type that a group is placed on."""

    name: str
    hypervisors: Mask  # shape (hypervisors,)
    answer: Answer  # the plan or the places on these hypervisors


@dataclass(frozen=True, slots=True, eq=False)
class GroupRequest(PlacementInput):
    """A group to place; each method is one decision about it.

    decide              the plan of the group, or a Rejection
    choose_processor    the same on one processor type (Gupta2012, homogeneity)
    host_order          the hosts in the order in which one VM tries them
    refusal             the reason of a Rejection, for operator and tenant
    """

    def decide(self, limit: TimeLimit = NO_LIMIT) -> Plan | Rejection:
        """Return the plan of least Hop-Byte within the constraints, or a Rejection.

        A plan made after the limit may not be the best (``is_proven``). A Rejection is always
        proven: if the plans made after the limit break the policy, all are made again without it.

        :param limit: of all plans that are made for this decision
        :raises exceptions.RequestError: for a level that the topology does not have
        """
        answer = solve_sizes(self.problem(), self.sizes, self.active, limit)
        if isinstance(answer, Rejection) or self._keeps_policy(answer):
            return answer
        is_proven = answer.is_proven
        # A service of many nodes: capacities are exact for each leaf, not for several together.
        switches = [self.switches(level) for level in range(2, self.topology.depth + 1)]
        plans: list[Plan] = []
        for room in server_group_policy.by_service(
            self.hard_policy, self.room, self.sizes, self.per_hypervisor(answer), switches
        ):
            found = solve_sizes(self.problem_of(room), self.sizes, self.active, limit)
            if isinstance(found, Rejection):
                answer = found
                continue
            is_proven &= found.is_proven
            if self._keeps_policy(found):
                plans.append(found)
        if plans:
            best = min(plans, key=lambda plan: (-plan.count, plan.hop_bytes))
            return replace(best, is_proven=is_proven)
        if not is_proven and self.server_group_policy == "anti-affinity":
            # The best plan may keep the policy where another one does not.
            return self.decide()
        if isinstance(answer, Plan):
            # No service takes all VMs; the Rejection lists what fits.
            return rejected(self.problem(), self.sizes[-1], require=None, max_leaves=None)
        return answer

    def unconstrained(self, count: int, limit: TimeLimit = NO_LIMIT) -> Plan | Rejection:
        """Return the plan of least Hop-Byte of ``count`` VMs without constraints."""
        bare = replace(
            self, constraints=NO_CONSTRAINTS, left=count, awaiting=count, orphans=0, missing=0
        )
        return bare.decide(limit)

    def host_order(self, answer: Plan | Rejection, slot: int, limit: TimeLimit = NO_LIMIT) -> Array:
        """Return all hosts of the topology in the order in which one VM tries them, best first.

        A weigher cannot refuse: without a plan, the order is that of a plan of the largest
        number of VMs that fits without constraints. Shape (hosts,).

        :param answer: of :meth:`decide`
        :param slot: which of the plan's places belongs to the VM, from 0
        :param limit: of the plan of the largest number
        """
        problem = self.problem()
        if not isinstance(answer, Plan):
            answer = solve_most(problem, self.awaiting, limit)
        if not isinstance(answer, Plan):
            # Members are on several islands: order hosts by their distance to all members.
            return spare_order(problem, None)
        return plan_order(problem, answer, slot=slot)

    def by_processor(self) -> Iterator[tuple[str, "GroupRequest"]]:
        """Yield each processor type, or the members', and the request on it; the best first."""
        if self.processors is not None:
            for name in self.processors.best_first():
                yield name, self.among(self.processors.hypervisors[name])

    def choose_processor(
        self,
        decide: Callable[["GroupRequest"], Answer | Rejection],
        planned: Callable[[Answer], int],
    ) -> "ProcessorChoice[Answer] | Refusal | None":
        """Return the processor type of the group, as HPCHomogeneityFilter chooses it (Gupta2012).

        The best type, or a later one that holds a larger of :attr:`sizes`. If no type holds the
        group: the Refusal if one type is required, else None.

        :param decide: returns the plan, or the places, on the hypervisors of one type
        :param planned: returns the number of VMs in an answer of ``decide``
        """
        processors = self.processors
        if processors is None or self.homogeneous == "false":
            return None
        is_required = self.homogeneous == "true"
        if is_required and (fault := processors.fault_of_members()):
            return fault
        best: ProcessorChoice[Answer] | None = None
        most = 0  # the largest gang that fits on one type
        for name, request in self.by_processor():
            answer = decide(request)
            if isinstance(answer, Rejection):
                most = max(most, answer.best.vms if answer.best is not None else 0)
            elif best is None or planned(answer) > planned(best.answer):
                best = ProcessorChoice(name, processors.hypervisors[name], answer)
                if planned(answer) == self.sizes[0]:
                    break
        if best is not None or not is_required:
            return best
        anywhere = decide(self)
        if isinstance(anywhere, Rejection):
            # Processors are not the reason.
            return self.refusal(anywhere)
        return processors.refusal(self.sizes[-1], most)

    def contradiction(self, empty: Array) -> str | None:
        """Return why the final size can never fit in ``max_leaves`` leaf switches, or None.

        :param empty: VMs that each host takes while it has none, shape (hosts,)
        """
        most_leaves, size = self.constraints.max_leaves, self.constraints.group_size
        if most_leaves is None or size is None:
            return None
        if self.server_group_policy == "anti-affinity" and self.hard_policy is not None:
            empty = np.minimum(empty, self.hard_policy.max_per_service)
        without_vms = replace(
            self.problem_of(self.room), capacity=empty, members=np.zeros_like(empty)
        )
        level = level_of(self.topology, self.constraints.require)
        gang = largest_gang(without_vms, level, max_leaves=most_leaves)
        most = 0 if gang is None else gang.vms
        if size <= most:
            return None
        return (
            f"{MAX_LEAVES}={most_leaves} and {GROUP_SIZE}={size} contradict each other: at most "
            f"{most} VMs of this flavor fit in {plurals.text(most_leaves, 'leaf switch')}"
        )

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
                what = (
                    "the members' host: largest gang that fits there"
                    if self.members.any()
                    else "one host: largest gang that fits on one host"
                )
                return Refusal.alike(
                    f"{answer.count} VMs of a group with policy affinity need {what}: {most}"
                )
        size = self.constraints.group_size
        why = f" ({GROUP_SIZE}={size})" if size is not None and answer.count > self.left else ""
        operator, tenant = answer.operator + why, answer.tenant + why
        if self.full_hosts:
            whys = ", ".join(f"{count} by {why}" for why, count in sorted(self.full_hosts.items()))
            operator += f"; hosts left out for the VMs that they have: {whys}"
            tenant += "; hosts are left out for the VMs that they have"
        return Refusal(operator, tenant)

    def permitted(self, plan: Plan) -> Mask:
        """Return the hypervisors on which VMs keep the constraints and the island of a plan.

        Any combination of them does. Shape (hypervisors,).
        """
        if not self.constraints.bind_place and len(self.topology.roots) == 1:
            return np.ones(len(self.room), dtype=np.bool_)
        return permitted_hosts(self.problem(), plan)[self.hosts_of_rows]

    def is_refused(self, answer: Rejection, *, is_move: bool = False) -> bool:
        """True if a request without a plan is refused, False if it is placed without one.

        Without a guarantee, a VM that moves is placed, and so is a group whose members already
        break a constraint or are on several islands.
        """
        is_guaranteed = self.constraints.bind_place or (
            self.homogeneous == "true" and self.processors is not None
        )
        return is_guaranteed or not (is_move or answer.conflict)

    def _keeps_policy(self, plan: Plan) -> bool:
        policy = self.hard_policy
        return policy is None or server_group_policy.keeps(policy, self.per_hypervisor(plan))

    def _most_on_one_service(self) -> int:
        """Return the most VMs that one service takes; only the members' service if it has any."""
        if self.hard_policy is None:
            return 0
        room = server_group_policy.open_room(self.hard_policy, self.room)
        return int(np.bincount(self.hard_policy.service, weights=room).max(initial=0))
