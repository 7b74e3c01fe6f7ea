"""One group to place, for the scheduler, ``hpc-sched fits`` and the simulator alike.

GroupRequest          the input of every decision about placement
  after               the request once some of its VMs are placed
  problem             the planner's input: capacities under the server group's policy
  decide              the plan of the group, or a Rejection
  choose_processor    the same on one processor type (Gupta2012, homogeneity)
  host_order          the hosts in the order in which one VM tries them
  refusal             the reason of a Rejection, for operator and tenant
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Generic, Self, TypeVar

import numpy as np

from hpc_sched.core import server_group_policy
from hpc_sched.core.arrays import Array, Mask
from hpc_sched.core.constraints import NO_CONSTRAINTS, Constraints, level_of
from hpc_sched.core.extra_specs import GROUP_SIZE, MAX_LEAVES, HPCSpecs
from hpc_sched.core.plan.planner import solve_most, solve_sizes
from hpc_sched.core.plan.problem import Problem, tie_order
from hpc_sched.core.plan.pruning import permitted_hosts
from hpc_sched.core.plan.ranking import plan_order, spare_order
from hpc_sched.core.plan.rejection import largest_gang, rejected
from hpc_sched.core.plan.result import Plan, Refusal, Rejection
from hpc_sched.core.processors import HostProcessors
from hpc_sched.core.server_group_policy import HardPolicy
from hpc_sched.core.sharing.mdobp import MDOBPInput
from hpc_sched.topology import plurals
from hpc_sched.topology.model import Topology

Answer = TypeVar("Answer")


@dataclass(frozen=True, slots=True)
class ProcessorChoice(Generic[Answer]):
    """The processor type that a group is placed on."""

    name: str
    hypervisors: Mask  # shape (hypervisors,)
    answer: Answer  # the plan or the places on these hypervisors


@dataclass(frozen=True, slots=True, eq=False)
class GroupRequest:
    """A group of VMs, its members and its constraints, on the hypervisors of one moment.

    Arrays are read-only. A hypervisor is a pair (host, nodename); the caller chooses their
    order. Several hypervisors may be one host of the topology.
    """

    topology: Topology
    tie: Array  # shape (switches,): rank of each switch among equals, see problem.tie_order
    # Shape (hypervisors,): index in topology.hosts; None: one hypervisor a host, in their order.
    host_index: Array | None
    # Shape (hypervisors,): VMs that each takes, before the server group's policy; 0 if it is
    # not a candidate.
    room: Array
    members: Array  # shape (hosts,): VMs of the group that have a place
    left: int  # VMs of this request without a place
    awaiting: int  # VMs of the group without a place, at least those of this request
    orphans: int = 0  # of them, VMs whose build requests no conductor works on any more
    missing: int = 0  # VMs without a request up to the final size (``hpc:group_size``)
    constraints: Constraints = NO_CONSTRAINTS
    server_group_policy: str | None = None
    hard_policy: HardPolicy | None = None  # its bound on hypervisors; None for a soft policy
    pack_hosts: bool = True  # whether the fewest hosts are filled inside a leaf
    # If MDOBP chooses hosts in a leaf; arrays have a row per hypervisor.
    packing: MDOBPInput | None = None
    homogeneous: str = "false"  # true, prefer or false
    processors: HostProcessors | None = None  # read by choose_processor alone
    # Reason to number of hosts that are full because of VMs of others; part of a refusal.
    left_out: Mapping[str, int] | None = None

    @classmethod
    def of(
        cls,
        topology: Topology,
        hpc_specs: HPCSpecs,
        *,
        group_id: str,
        policy: str | None,
        max_per_host: int | None,
        places: Sequence[tuple[str, str]],
        names: Sequence[str],
        room: Array,
        members: Mapping[tuple[str, str], int],
        left: int,
        awaiting: int,
        orphans: int = 0,
        is_move: bool = False,
        packing: MDOBPInput | None = None,
        processors: HostProcessors | None = None,
    ) -> Self:
        """Return the request of a group by the ``hpc:`` values of its flavor and its server group.

        :param group_id: key of the tie order
        :param max_per_host: most VMs of the group on one service host; None: unbounded
        :param places: service host and nodename of each hypervisor
        :param names: host of the topology of each hypervisor
        :param room: VMs that each hypervisor takes, before the policy; shape (hypervisors,)
        :param members: VMs of the group that have a place, by service host and host
        """
        host_index = np.array([topology.index_of(name) for name in names], dtype=np.int64)
        counts = np.zeros(len(topology.hosts), dtype=np.int64)
        for (_, name), count in members.items():
            counts[topology.index_of(name)] += count
        final_size = 0 if is_move else hpc_specs.constraints.group_size or 0
        return cls(
            topology=topology,
            tie=tie_order(topology, group_id),
            host_index=host_index,
            room=room,
            members=counts,
            left=left,
            awaiting=awaiting,
            orphans=orphans,
            missing=max(final_size - int(counts.sum()), 0),
            constraints=NO_CONSTRAINTS if hpc_specs.is_flat else hpc_specs.constraints,
            server_group_policy=policy,
            hard_policy=server_group_policy.hard_policy(
                policy, max_per_host, members, places, topology.leaf_index[host_index]
            ),
            pack_hosts=policy != "soft-anti-affinity" and packing is None,
            packing=packing,
            homogeneous=hpc_specs.homogeneous,
            processors=processors,
        )

    def after(self, placed: Array) -> Self:
        """Return the request once some of its VMs are placed. O(hosts of the topology).

        :param placed: VMs on each hypervisor, shape (hypervisors,)
        """
        number, policy, packing = int(placed.sum()), self.hard_policy, self.packing
        left = max(self.left - number, 0)
        return replace(
            self,
            room=np.maximum(self.room - placed, 0),
            members=self.members + self.per_host(placed),
            left=left,
            awaiting=max(self.awaiting - number, left),
            missing=max(self.missing - number, 0),
            hard_policy=None if policy is None else policy.with_placed(placed),
            packing=None if packing is None else packing.after(placed),
        )

    def among(self, candidates: Mask) -> Self:
        """Return the same request with fewer candidates.

        :param candidates: shape (hypervisors,)
        """
        return replace(self, room=np.where(candidates, self.room, 0))

    @property
    def active(self) -> int:
        """VMs that are being created or will be: the fewest for which ``prefer`` holds."""
        return max(self.awaiting - self.orphans, self.left, self.missing)

    @property
    def sizes(self) -> tuple[int, ...]:
        """Numbers of VMs to plan for, largest first; the last one must fit.

        The VMs of this request must fit; with ``require`` the group must fit at its final size.
        VMs of other requests, and orphaned build requests, only improve the choice.
        """
        is_required = self.constraints.require is not None
        fewest = max(self.left, self.missing) if is_required else self.left
        wanted = {max(self.awaiting, self.missing), self.active, fewest}
        return tuple(sorted((count for count in wanted if count >= fewest), reverse=True))

    @property
    def capacity(self) -> Array:
        """VMs that each hypervisor takes under the server group's policy. Shape (hypervisors,)."""
        return server_group_policy.apply(self.hard_policy, self.room, self.sizes)

    def problem(self) -> Problem:
        """Return the problem that the planner solves. O(hypervisors)."""
        return self._problem(self.capacity)

    def problem_at(self, level: int) -> Problem:
        """Return the problem whose rooms below the switches of a level are exact.

        The policy's bound on a service of many nodes holds per switch of this level.
        """
        policy = self.hard_policy
        if policy is not None:
            policy = replace(policy, leaf=self._switches(level))
        return self._problem(server_group_policy.apply(policy, self.room, self.sizes))

    def decide(self) -> Plan | Rejection:
        """Return the plan of least Hop-Byte within the constraints, or a Rejection.

        :raises exceptions.RequestError: for a level that the topology does not have
        """
        answer = solve_sizes(self.problem(), self.sizes, self.active)
        if isinstance(answer, Rejection) or self._keeps_policy(answer):
            return answer
        # A service of many nodes: capacities are exact for each leaf, not for several together.
        switches = [self._switches(level) for level in range(2, self.topology.depth + 1)]
        plans: list[Plan] = []
        for room in server_group_policy.by_service(
            self.hard_policy, self.room, self.sizes, self._per_hypervisor(answer), switches
        ):
            found = solve_sizes(self._problem(room), self.sizes, self.active)
            if isinstance(found, Rejection):
                answer = found
            elif self._keeps_policy(found):
                plans.append(found)
        if plans:
            return min(plans, key=lambda plan: (-plan.count, plan.hop_bytes))
        if isinstance(answer, Plan):
            # No service takes all VMs; the Rejection lists what fits.
            return rejected(self.problem(), self.sizes[-1], require=None, max_leaves=None)
        return answer

    def unconstrained(self, count: int) -> Plan | Rejection:
        """Return the plan of least Hop-Byte of ``count`` VMs without constraints."""
        bare = replace(
            self, constraints=NO_CONSTRAINTS, left=count, awaiting=count, orphans=0, missing=0
        )
        return bare.decide()

    def host_order(self, answer: Plan | Rejection, slot: int) -> Array:
        """Return all hosts of the topology in the order in which one VM tries them, best first.

        A weigher cannot refuse: without a plan, the order is that of a plan of the largest
        number of VMs that fits without constraints. Shape (hosts,).

        :param answer: of :meth:`decide`
        :param slot: which of the plan's places belongs to the VM, from 0
        """
        problem = self.problem()
        if not isinstance(answer, Plan):
            answer = solve_most(problem, self.awaiting)
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
        most = 0
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
            self._problem(self.room), capacity=empty, members=np.zeros_like(empty)
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
        if self.left_out:
            whys = ", ".join(f"{count} by {why}" for why, count in sorted(self.left_out.items()))
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
        if self.constraints.bind_place:
            return True
        if self.homogeneous == "true" and self.processors is not None:
            return True
        return not (is_move or answer.conflict)

    @property
    def hosts_of_rows(self) -> Array:
        """Index in ``topology.hosts`` of each hypervisor. Shape (hypervisors,)."""
        return np.arange(len(self.room)) if self.host_index is None else self.host_index

    def per_host(self, numbers: Array) -> Array:
        """Return the sums of numbers per hypervisor over each host. Shape (hosts,)."""
        if self.host_index is None:
            return numbers
        counts = np.zeros(len(self.topology.hosts), dtype=np.int64)
        np.add.at(counts, self.host_index, numbers)
        return counts

    def _switches(self, level: int) -> Array:
        """Return the switch of a level above each hypervisor. Shape (hypervisors,)."""
        above: Array = self.topology.groups[level - 1][self.hosts_of_rows]
        return above

    def _problem(self, capacity: Array) -> Problem:
        return Problem(
            topology=self.topology,
            capacity=self.per_host(capacity),
            members=self.members,
            awaiting=self.awaiting,
            tie=self.tie,
            constraints=self.constraints,
            pack_hosts=self.pack_hosts,
            packing=None if self.packing is None else self._packing(self.packing),
        )

    def _packing(self, packing: MDOBPInput) -> MDOBPInput:
        if self.host_index is None:
            return packing
        free = np.zeros((len(self.topology.hosts), len(packing.demand)))
        usable = np.zeros_like(free)
        np.add.at(free, self.host_index, packing.free)
        np.add.at(usable, self.host_index, packing.usable)
        return replace(packing, free=free, usable=usable)

    def _keeps_policy(self, plan: Plan) -> bool:
        """True if the plan keeps the hard policy, counted by service."""
        policy = self.hard_policy
        return policy is None or server_group_policy.keeps(policy, self._per_hypervisor(plan))

    def _per_hypervisor(self, plan: Plan) -> Array:
        """Return the VMs that a plan has on each hypervisor. Shape (hypervisors,)."""
        hosts = self.topology.hosts
        counts = [plan.hosts.get(hosts[i], 0) for i in self.hosts_of_rows.tolist()]
        return np.array(counts, dtype=np.int64)

    def _most_on_one_service(self) -> int:
        """Return the most VMs that one service takes; only the members' service if it has any."""
        if self.hard_policy is None:
            return 0
        room = server_group_policy.open_room(self.hard_policy, self.room)
        return int(np.bincount(self.hard_policy.service, weights=room).max(initial=0))
