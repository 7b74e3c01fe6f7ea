"""The input of every decision about placement: a group, and the hypervisors of one moment."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from hpc_sched.core.arrays import Array, Mask
from hpc_sched.core.constraints import (
    NO_CONSTRAINTS,
    Constraints,
    level_of,
    server_group_policy,
)
from hpc_sched.core.constraints.server_group_policy import HardPolicy
from hpc_sched.core.fragmentation.price import (
    FragmentationPrice,
    empty_hosts,
    fragmentation_price,
)
from hpc_sched.core.fragmentation.rates import NO_PRICE, FragmentationRates
from hpc_sched.core.hpc_specs import HPCSpecs
from hpc_sched.core.plan.objective import Objective
from hpc_sched.core.plan.problem import KeptSums, Problem, host_counts
from hpc_sched.core.plan.result import Plan
from hpc_sched.core.plan.tie_order import TieOrder
from hpc_sched.core.processors.group_processors import HostProcessors
from hpc_sched.core.room.hypervisor_rooms import HypervisorRooms
from hpc_sched.core.sharing.mdobp import MDOBPInput
from hpc_sched.topology.model import Topology

if TYPE_CHECKING:
    from hpc_sched.core.plan.gathering import Gathering

Number = TypeVar("Number", np.int64, np.float64)


@dataclass(frozen=True, slots=True, eq=False)
class PlacementInput:
    """A group of VMs, its members and its constraints, on the hypervisors of one moment.

    Arrays are read-only. A hypervisor is a pair (host, nodename); the caller chooses their
    order. Several hypervisors may be one host of the topology.
    """

    topology: Topology
    tie: TieOrder  # of equal switches
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
    # Of the awaiting and missing VMs those that affect the choice alone: they never refuse the
    # request. Shelved members and members on hosts that are down; on a move all other VMs.
    followers: int = 0
    is_move: bool = False  # whether the VM of this request exists already
    constraints: Constraints = NO_CONSTRAINTS
    server_group_policy: str | None = None
    hard_policy: HardPolicy | None = None  # its bound on hypervisors; None for a soft policy
    pack_hosts: bool = True  # whether the fewest hosts are filled inside a leaf
    # If MDOBP chooses hosts in a leaf; arrays have a row per hypervisor.
    packing: MDOBPInput | None = None
    homogeneous: str = "false"  # true, prefer or false
    processors: HostProcessors | None = None  # read by choose_processor alone
    # Reason to number of hosts that are full because of VMs of others; part of a refusal.
    full_hosts: Mapping[str, int] | None = None
    check: HypervisorRooms | None = None  # of rooms that are bounds only; None if all are exact
    # Hypervisors that a weigher of Nova puts behind all others, whatever hpc_sched's weighers
    # say; shape (hypervisors,). None without any.
    shunned: Mask | None = None
    # Hypervisors of the processor type that is taken if it can hold the group; shape
    # (hypervisors,). None without a preference.
    preferred: Mask | None = None
    # Followers on hosts that are down, not among the members. Where they are, shape (hosts,); None
    # without any.
    leaving: Array | None = None
    # Most VMs of the group, members included, on a host of the topology; None: unbounded.
    most_per_host: int | None = None
    gathering: Gathering | None = None  # None: a group that is apart is not brought together
    kept: KeptSums | None = None  # of rooms per host of the topology; see Problem.kept
    objective: Objective | None = None  # what the plan is best by; None: the least Hop-Byte
    price: FragmentationPrice | None = None  # read if may_be_priced

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
        leaving: Mapping[tuple[str, str], int] | None = None,
        left: int,
        awaiting: int,
        orphans: int = 0,
        followers: int = 0,
        is_move: bool = False,
        packing: MDOBPInput | None = None,
        processors: HostProcessors | None = None,
        check: HypervisorRooms | None = None,
        shunned: Mask | None = None,
        preferred: Mask | None = None,
        objective: Objective | None = None,
        rates: FragmentationRates = NO_PRICE,
        empty: Array | None = None,
    ) -> Self:
        """Return the request of a group by the ``hpc:`` values of its flavor and its server group.

        :param group_id: key of the tie order
        :param max_per_host: most VMs of the group on one service host; None: unbounded
        :param places: service host and nodename of each hypervisor
        :param names: host of the topology of each hypervisor
        :param room: VMs that each hypervisor takes, before the policy; shape (hypervisors,)
        :param members: VMs of the group that have a place, by service host and host
        :param leaving: members that must move as well, which are not among these
        :param followers: awaiting VMs that affect the choice alone; on a move all but one do
        :param rates: of the fragmentation price
        :param empty: VMs that each hypervisor takes while it has none, shape (hypervisors,); read
            if there are rates
        """
        host_index = np.array([topology.index_of(name) for name in names], dtype=np.int64)
        counts = _per_host(topology, members)
        missing = max((hpc_specs.constraints.group_size or 0) - int(counts.sum()), 0)
        made = cls(
            topology=topology,
            tie=TieOrder(topology, group_id),
            host_index=host_index,
            room=room,
            members=counts,
            left=left,
            awaiting=awaiting,
            orphans=orphans,
            leaving=_per_host(topology, leaving) if leaving else None,
            missing=missing,
            followers=max(awaiting, missing) - left if is_move else followers,
            is_move=is_move,
            constraints=NO_CONSTRAINTS if hpc_specs.is_flat else hpc_specs.constraints,
            server_group_policy=policy,
            hard_policy=server_group_policy.hard_policy(
                policy, max_per_host, members, places, topology.leaf_index[host_index]
            ),
            pack_hosts=policy != "soft-anti-affinity" and packing is None,
            packing=packing,
            homogeneous=hpc_specs.homogeneous,
            processors=processors,
            check=check,
            shunned=shunned,
            preferred=preferred,
            objective=objective,
        )
        if not rates or empty is None or not made.may_be_priced:
            return made
        bound = server_group_policy.most_of(policy, max_per_host)
        of_all = empty_hosts(topology, host_index[room > 0], empty[room > 0])
        size = made.whole + int(counts.sum())
        price = fragmentation_price(rates, topology, of_all, room, size, bound)
        return replace(made, price=price)

    @property
    def may_be_priced(self) -> bool:
        """True if a fragmentation price counts: where plans are compared by Hop-Byte alone.

        Not for an objective, nor for a policy whose plans are compared with each other: affinity,
        where a group is on one host, and any on services of many nodes.
        """
        policy = self.hard_policy
        is_spread = policy is None or (policy.policy != "affinity" and policy.has_single_nodes)
        return self.objective is None and is_spread

    @property
    def _plan_price(self) -> FragmentationPrice | None:
        """The price that a plan pays, by the level that the group requires; None without one."""
        if self.price is None or not self.may_be_priced:
            return None
        required = self.constraints.bounds.level
        if required is None:
            return self.price
        from hpc_sched.core.fragmentation.required_price import where_required

        return where_required(self.price, level_of(self.topology, required))

    def after(self, placed: Array) -> Self:
        """Return the request once some of its VMs are placed. O(hosts of the topology).

        :param placed: VMs on each hypervisor, shape (hypervisors,)
        """
        number, policy, packing = int(placed.sum()), self.hard_policy, self.packing
        left, gathering = max(self.left - number, 0), self.gathering
        if number and gathering is not None:
            last = self.hosts_of_rows[placed > 0][-1]
            gathering = gathering.after(int(self.topology.leaf_index[last]))
        return replace(
            self,
            room=np.maximum(self.room - placed, 0),
            members=self.members + self.per_host(placed),
            left=left,
            awaiting=max(self.awaiting - number, left),
            missing=max(self.missing - number, 0),
            hard_policy=None if policy is None else policy.with_placed(placed),
            packing=None if packing is None else packing.after(placed),
            gathering=gathering,
        )

    def among(self, candidates: Mask) -> Self:
        """Return the same request with fewer candidates.

        :param candidates: shape (hypervisors,)
        """
        return replace(self, room=np.where(candidates, self.room, 0))

    def candidate_sets(self) -> Iterator[Self]:
        """Yield the request on fewer candidates than all first, as far as others have room.

        Without shunned hosts, of these first those of the preferred processor type.
        """
        for request in filter(None, (self._without(self.shunned), self)):
            yield from filter(None, (request.on_preferred(), request))

    def on_preferred(self) -> Self | None:
        """Return the request on the preferred processor type; None if that is no difference."""
        return self._without(self.other_processors)

    @property
    def other_processors(self) -> Mask | None:
        """Hypervisors of other types than the preferred one; None without a preference."""
        return None if self.preferred is None else ~self.preferred

    def _without(self, left_out: Mask | None) -> Self | None:
        """Return the request without some hypervisors; None if only they, or none, have room."""
        if left_out is None or not self.room[left_out].any() or not self.room[~left_out].any():
            return None
        return self.among(~left_out)

    def uses(self, plan: Plan, hypervisors: Mask | None) -> bool:
        """True if a plan has VMs on some hypervisors. None: on none of them."""
        if hypervisors is None:
            return False
        room = self.per_host(self.among(~hypervisors).room)
        return bool((host_counts(self.topology, plan.hosts) > room).any())

    def uses_shunned(self, plan: Plan) -> bool:
        """True if a plan has VMs on shunned hosts."""
        return self.uses(plan, self.shunned)

    @property
    def is_bounded_by_room(self) -> bool:
        """True if more room on hosts could hold more VMs of the group."""
        policy = self.hard_policy
        return policy is None or policy.policy == "affinity" or policy.max_per_service > 1

    @property
    def active(self) -> int:
        """VMs that are being created or will be: the fewest for which ``prefer`` holds."""
        return max(self.awaiting - self.orphans, self.left, self.missing)

    @property
    def placing(self) -> int:
        """VMs that are placed now, or at the same moment by other requests: they come first.

        On a move all that await: each has a request of its own.
        """
        later = 0 if self.is_move else self.orphans + self.followers
        return max(self.awaiting - later, self.left)

    @property
    def whole(self) -> int:
        """VMs of the group without a place, those without a request included."""
        return max(self.awaiting, self.missing)

    @property
    def least_size(self) -> int | None:
        """VMs without a place that must fit by ``hpc:min_size``; None without it, and on moves.

        Followers refuse no request: without them.
        """
        size = self.constraints.min_size
        if size is None or self.is_move:
            return None
        return min(max(size - int(self.members.sum()) - self.followers, 0), self.whole)

    @property
    def sizes(self) -> tuple[int, ...]:
        """Numbers of VMs to plan for, largest first; the last one must fit.

        The VMs of this request must fit; with ``require``, and in parts, the group must fit at its
        final size, its followers left out, or at its least size if it states one. VMs of other
        requests, and orphaned build requests, only improve the choice.
        """
        if self.whole == self.left:
            return (self.left,)
        least, fewest, bounds = self.least_size, self.left, self.constraints.bounds
        if least is not None:
            fewest = max(fewest, least)
        elif bounds.level is not None or bounds.guaranteed_parts is not None:
            # Where some VMs are decides whether others have room.
            fewest = max(fewest, self.missing - self.followers)
        wanted = {self.whole, self.active, fewest}
        return tuple(sorted((count for count in wanted if count >= fewest), reverse=True))

    @property
    def capacity(self) -> Array:
        """VMs that each hypervisor takes under the server group's policy. Shape (hypervisors,)."""
        return server_group_policy.apply(self.hard_policy, self.room, self.sizes)

    def problem(self) -> Problem:
        """Return the problem that the planner solves. O(hypervisors)."""
        return self.problem_of(self.capacity)

    def capacity_at(self, level: int) -> Array:
        """Return the :attr:`capacity` whose sums below the switches of a level are exact.

        The policy's bound on a service of many nodes holds per switch of this level.
        """
        policy = self.hard_policy
        if policy is not None:
            policy = replace(policy, leaf=self.switches(level))
        return server_group_policy.apply(policy, self.room, self.sizes)

    @property
    def hosts_of_rows(self) -> Array:
        """Index in ``topology.hosts`` of each hypervisor. Shape (hypervisors,)."""
        return np.arange(len(self.room)) if self.host_index is None else self.host_index

    def per_host(self, numbers: NDArray[Number]) -> NDArray[Number]:
        """Return the sums of numbers, or rows, per hypervisor over each host. Shape (hosts, ..)."""
        if self.host_index is None:
            return numbers
        sums = np.zeros((len(self.topology.hosts), *numbers.shape[1:]), numbers.dtype)
        np.add.at(sums, self.host_index, numbers)
        return sums

    def switches(self, level: int) -> Array:
        """Return the switch of a level above each hypervisor. Shape (hypervisors,)."""
        above: Array = self.topology.groups[level - 1][self.hosts_of_rows]
        return above

    def problem_of(self, capacity: Array) -> Problem:
        """Return the problem with other capacities. ``capacity``: shape (hypervisors,)."""
        packing = self.packing
        if packing is not None and self.host_index is not None:
            attraction = packing.attraction
            packing = replace(
                packing,
                free=self.per_host(packing.free),
                usable=self.per_host(packing.usable),
                attraction=None if attraction is None else self.per_host(attraction),
            )
        problem = Problem(
            topology=self.topology,
            capacity=self.per_host(capacity),
            members=self.members,
            awaiting=self.awaiting,
            tie=self.tie,
            constraints=self.constraints,
            placing=self.placing,
            pack_hosts=self.pack_hosts,
            packing=packing,
            kept=self.kept,
            objective=self.objective,
            price=self._plan_price,
        )
        return problem if self.most_per_host is None else problem.bounded(self.most_per_host)

    def per_hypervisor(self, plan: Plan, room: Array | None = None) -> Array:
        """Return the VMs that a plan has on each hypervisor. Shape (hypervisors,).

        Several hypervisors of one host are filled one after the other.

        :param room: within which the plan was made; by default without the policy
        """
        room = self.room if room is None else room
        left, hosts = host_counts(self.topology, plan.hosts), self.hosts_of_rows
        counts: Array = np.zeros(len(hosts), dtype=np.int64)
        for i in np.flatnonzero(left[hosts]).tolist():
            counts[i] = min(left[hosts[i]], room[i])
            left[hosts[i]] -= counts[i]
        return counts


def _per_host(topology: Topology, numbers: Mapping[tuple[str, str], int]) -> Array:
    """Return numbers by (service host, host) as the sums over hosts. Shape (hosts,)."""
    sums: Array = np.zeros(len(topology.hosts), dtype=np.int64)
    for (_, name), number in numbers.items():
        sums[topology.index_of(name)] += number
    return sums
