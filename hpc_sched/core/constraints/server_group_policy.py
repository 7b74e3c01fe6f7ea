"""The room on hosts under a server group's policy: affinity, anti-affinity, soft anti-affinity.

Nova checks hard policies per service host. On bare metal, one service host owns many nodes.
"""

from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from hpc_sched.core.arrays import Array, Mask
from hpc_sched.core.capacity import UNBOUNDED
from hpc_sched.core.constraints import level_of
from hpc_sched.core.plan.problem import Problem
from hpc_sched.core.plan.switch_rooms import switches_with_room

HARD_POLICIES = ("affinity", "anti-affinity")


@dataclass(frozen=True, slots=True, eq=False)
class HardPolicy:
    """Affinity or anti-affinity over the hypervisors of one request."""

    policy: str
    max_per_service: int
    service: Array  # shape (hypervisors,): index of the service host
    # Shape (services,): VMs of the group. Affinity may append members on hosts that are no
    # candidates.
    members: Array
    # Shape (hypervisors,): the leaf, or other switch, that has the bound of a service for itself.
    leaf: Array
    order: Array  # shape (hypervisors,): hypervisors sorted by nodename

    def with_placed(self, placed: Array) -> "HardPolicy":
        """Return the policy once the request has placed VMs. ``placed``: shape (hypervisors,)."""
        return replace(self, members=self.members + self.per_service(placed))

    @property
    def has_single_nodes(self) -> bool:
        """True if each service has one node, as every hypervisor but bare metal has."""
        return int(self.service.max(initial=-1)) + 1 == len(self.service)

    @property
    def counts_nodes(self) -> bool:
        """True if anti-affinity bounds the VMs of services with many nodes."""
        return self.policy == "anti-affinity" and not self.has_single_nodes

    @property
    def allowed(self) -> Array:
        """Additional VMs that anti-affinity allows on each service. Shape (services,)."""
        return np.maximum(self.max_per_service - self.members, 0)

    def with_members(self, room: Array) -> Array:
        """Return ``room``, or 0 where the service has no member. Shape (hypervisors,)."""
        return np.where(self.members[self.service] > 0, room, 0)

    def per_service(self, numbers: Array) -> Array:
        """Return the sums of numbers per hypervisor over each service. Shape (services,)."""
        sums = np.bincount(self.service, weights=numbers, minlength=len(self.members))
        return sums.astype(np.int64)


def hard_policy(
    policy: str | None,
    max_per_host: int | None,
    members: Mapping[tuple[str, str], int] | Mapping[tuple[str, str | None], int],
    places: Sequence[tuple[str, str]],
    leaf: Array,
) -> HardPolicy | None:
    """Return the group's hard policy over these hypervisors, or None without one.

    :param max_per_host: ``max_server_per_host`` of anti-affinity; None: unbounded
    :param members: VMs of the group by (service host, nodename or any other name)
    :param places: service host and nodename of each hypervisor
    :param leaf: the leaf switch of each hypervisor, shape (hypervisors,)
    """
    if policy not in HARD_POLICIES:
        return None
    index: dict[str, int] = {}
    service = np.array([index.setdefault(host, len(index)) for host, _ in places], np.int64)
    on_service = np.zeros(len(index), dtype=np.int64)
    for (host, _node), count in members.items():
        if host in index:
            on_service[index[host]] += count
        elif policy == "affinity":
            # Affinity binds the group to a host that is not a candidate.
            on_service = np.append(on_service, count)
    order = sorted(range(len(places)), key=lambda i: places[i][::-1])
    return HardPolicy(
        policy=policy,
        max_per_service=most_per_host(max_per_host),
        service=service,
        leaf=leaf,
        members=on_service,
        order=np.array(order, dtype=np.int64),
    )


def most_of(policy: str | None, max_per_host: int | None) -> int:
    """Return the VMs of the group that a host takes at most under a policy.

    With soft-anti-affinity one, as long as the group fits so.
    """
    if policy == "soft-anti-affinity":
        return 1
    return most_per_host(max_per_host) if policy == "anti-affinity" else UNBOUNDED


def most_per_host(max_per_host: int | None) -> int:
    """Return the most VMs of the group on one host; UNBOUNDED for None."""
    # Nova's API has no upper limit for the rule; int64 has.
    return UNBOUNDED if max_per_host is None else min(max(max_per_host, 0), UNBOUNDED)


def apply(policy: HardPolicy | None, room: Array, sizes: Sequence[int]) -> Array:
    """Return the room per hypervisor under the policy. Shape (hypervisors,).

    Anti-affinity bounds a host by max_server_per_host less its members. Affinity allows the
    members' host only; without members, the hosts that take the largest size that any host takes,
    but all services that take the smallest if they have many nodes: they differ in where these are.

    :param room: VMs that each hypervisor takes without the policy
    :param sizes: numbers of VMs to plan for, largest first
    """
    if policy is None:
        return room
    members = policy.members
    if policy.policy == "affinity":
        if members.any():
            return policy.with_members(room)
        total = policy.per_service(room)
        needed = sizes[-1]
        if policy.has_single_nodes:
            needed = next((size for size in sizes if (total >= size).any()), needed)
        return np.where(total[policy.service] >= needed, room, 0)
    if policy.has_single_nodes:
        return np.minimum(room, policy.allowed[policy.service])
    # The allowance of a service counts once in every leaf where it has nodes. So the capacity of
    # each single leaf is exact, and leaves can be compared.
    return shared_out(policy, room, policy.leaf, policy.allowed)


def by_service(
    policy: HardPolicy, room: Array, sizes: Sequence[int], planned: Array
) -> Iterator[Array]:
    """Yield rooms per hypervisor for affinity, one for each service that takes ``sizes[-1]`` VMs.

    Those that take a larger size first; without members, of services with one node the first
    only, for all plans on one host cost the same. Members that have moved apart are nearer to some
    of their hosts. Shape (hypervisors,).

    :param planned: VMs per hypervisor of the plan that breaks the policy; the services with most
        of them come first, then go by the names of nodes with room
    """
    members = policy.members
    total, on_service = policy.per_service(room), policy.per_service(planned)
    ordered = policy.service[policy.order]
    services = [
        service
        for service in dict.fromkeys(ordered[room[policy.order] > 0].tolist())
        if total[service] >= sizes[-1] and (members[service] or not members.any())
    ]
    services.sort(key=lambda i: (sum(total[i] < size for size in sizes), -on_service[i]))
    is_any = policy.has_single_nodes and not members.any()
    for service in services[:1] if is_any else services:
        yield np.where(policy.service == service, room, 0)


def branches(policy: HardPolicy, room: Array, planned: Array) -> Iterator[Array]:
    """Yield rooms per hypervisor, within those given, that lack a plan that breaks anti-affinity.

    Each plan within the given rooms that keeps the policy is within one of them. Shape
    (hypervisors,).

    :param room: exact for each leaf, as :func:`apply` returns it
    :param planned: VMs per hypervisor; of one service there are more than it takes
    """
    service = np.flatnonzero(policy.per_service(planned) > policy.allowed)[0]
    left, others = int(policy.allowed[service]), policy.service == service
    for leaf in np.unique(policy.leaf[others & (planned > 0)]).tolist():
        here = others & (policy.leaf == leaf)
        number = int(planned[here].sum())
        yield _lowered(policy, room, here, number - 1)
        # In all other plans this leaf has as many VMs of the service, or more.
        left -= number
        if left < 0:
            return
        others &= ~here
        room = _lowered(policy, room, others, left)


def keeps(policy: HardPolicy, planned: Array) -> bool:
    """True if planned VMs per hypervisor keep the policy, counted by service.

    Members may break it already: they have moved, or the rule was another one.
    """
    members, new = policy.members, policy.with_placed(planned).members
    if policy.policy == "anti-affinity":
        return bool((new <= np.maximum(policy.max_per_service, members)).all())
    taken = new > members
    return bool(taken.sum() <= 1 and (not members.any() or (members[taken] > 0).all()))


def open_room(policy: HardPolicy | None, room: Array) -> Array:
    """Return ``room``, or 0 where the policy allows the service no VM. Shape (hypervisors,)."""
    if policy is None:
        return room
    if policy.policy == "anti-affinity":
        return np.where(policy.allowed[policy.service] > 0, room, 0)
    return policy.with_members(room) if policy.members.any() else room


def fewest_per_host(problem: Problem, sizes: Sequence[int]) -> int | None:
    """Return the smallest bound on the group's VMs per host with which it fits, for soft policies.

    Members count. The bound of the first size that fits at all; None if none does.
    O(hosts * log of the bound) for each size.

    :param sizes: numbers of VMs to plan for, largest first
    """
    bounds = problem.constraints.bounds
    level = level_of(problem.topology, bounds.level)
    for size in sizes:

        def fits(bound: int, size: int = size) -> bool:
            return len(switches_with_room(problem.bounded(bound), size, level, bounds)) > 0

        takes = np.minimum(problem.capacity, size)
        most = int((problem.members + takes).max(initial=1, where=takes > 0))
        bound = 1
        while bound < most and not fits(bound):
            bound = min(2 * bound, most)
        if bound < most or fits(most):
            # Half of it was too small: the group fits with any larger bound that it fits with.
            return bisect_left(range(bound), True, bound // 2 + 1, bound, key=fits)
    return None


def _lowered(policy: HardPolicy, room: Array, nodes: Mask, most: int) -> Array:
    """Return the room per hypervisor with at most ``most`` VMs on some nodes of each leaf."""
    allowed = np.full_like(policy.members, most)
    return np.where(nodes, shared_out(policy, np.where(nodes, room, 0), policy.leaf, allowed), room)


def shared_out(policy: HardPolicy, room: Array, part: Array, allowed: Array) -> Array:
    """Return the room per hypervisor, each service's allowance divided within each part.

    The first hypervisors in the policy's order have it. O(hypervisors log hypervisors).

    :param part: of each hypervisor, shape (hypervisors,)
    :param allowed: shape (services,)
    """
    nodes = policy.order[np.lexsort((part[policy.order], policy.service[policy.order]))]
    service, rooms = policy.service[nodes], room[nodes]
    is_first = np.ones(len(nodes), dtype=np.bool_)
    is_first[1:] = (np.diff(service) != 0) | (np.diff(part[nodes]) != 0)
    before = np.cumsum(rooms) - rooms
    before -= before[is_first][np.cumsum(is_first) - 1]
    bounded = np.zeros_like(room)
    bounded[nodes] = np.clip(allowed[service] - before, 0, rooms)
    return bounded
