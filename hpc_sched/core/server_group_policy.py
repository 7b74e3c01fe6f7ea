"""What a server group's hard policy leaves of the room on its hosts.

Nova checks hard policies by service host; on bare metal one service host owns many nodes.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hpc_sched.core.capacity import UNBOUNDED

Array = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Bound:
    """A hard policy over the HostStates of one request."""

    policy: str
    max_per_service: int
    service: Array  # per hypervisor: index of its service host
    members: Array  # per service host: VMs of the group there at first sight
    leaf: Array  # per hypervisor: its leaf switch
    order: Array  # hypervisors by nodename


def bound(
    policy: str | None,
    max_per_host: int | None,
    members: Counter[tuple[str, str | None]],
    places: Sequence[tuple[str, str]],
    leaf: Array,
) -> Bound | None:
    """Return the group's hard policy over these hypervisors, or None where it has none.

    :param max_per_host: most VMs of the group on one service host, where bounded
    :param members: VMs of the group per service host and nodename, None where that is not known
    :param places: service host and nodename of each hypervisor
    :param leaf: per hypervisor, the index of its leaf switch
    """
    if policy not in ("affinity", "anti-affinity"):
        return None
    index: dict[str, int] = {}
    service = np.array([index.setdefault(host, len(index)) for host, _ in places], np.int64)
    on_service = np.zeros(len(index), dtype=np.int64)
    for (host, _node), count in members.items():
        if host in index:
            on_service[index[host]] += count
        elif policy == "affinity":
            # The group is bound to a host that is not among the candidates.
            on_service = np.append(on_service, count)
    order = sorted(range(len(places)), key=lambda i: places[i][::-1])
    return Bound(
        policy=policy,
        max_per_service=most_per_host(max_per_host),
        service=service,
        leaf=leaf,
        members=on_service,
        order=np.array(order, dtype=np.int64),
    )


def most_per_host(max_per_host: int | None) -> int:
    """Return the most VMs of the group that its policy ever lets stand on one host."""
    # Nova's API bounds the rule from below alone, and numpy counts with 64 bits.
    return UNBOUNDED if max_per_host is None else min(max(max_per_host, 0), UNBOUNDED)


def apply(limit: Bound | None, room: Array, placed: Array, sizes: Sequence[int]) -> Array:
    """Return the room per hypervisor that the policy leaves.

    Anti-affinity leaves max_server_per_host less the members there; affinity only the
    members' host, or while there are none the hosts that take the whole group, in the first
    of its sizes that any takes.

    :param room: per hypervisor, what it takes without the policy
    :param placed: per hypervisor, VMs that this request has placed
    :param sizes: numbers of VMs to plan for, the most wanted first
    """
    if limit is None:
        return room
    members = _members(limit, placed)
    if limit.policy == "affinity":
        if members.any():
            return np.where(members[limit.service] > 0, room, 0)
        total = np.bincount(limit.service, weights=room, minlength=len(members))
        needed = next((size for size in sizes if (total >= size).any()), sizes[-1])
        return np.where(total[limit.service] >= needed, room, 0)
    allowed = np.maximum(limit.max_per_service - members, 0)
    if len(limit.members) == len(room):  # one node a service, as on every hypervisor
        return np.minimum(room, allowed[limit.service])
    # What a service may still take counts once in every leaf where it has nodes: each leaf's
    # capacity is then right by itself, and that is what leaves are compared by.
    return _shared_out(limit, room, allowed, limit.leaf)


def by_service(
    limit: Bound | None, room: Array, placed: Array, sizes: Sequence[int]
) -> Iterator[Array]:
    """Yield rooms per hypervisor of which every use keeps a policy of many-node services.

    Anti-affinity: what a service may take is shared out once among all its nodes. Affinity:
    one service after the other that takes the VMs that must fit, by the name of its nodes.
    """
    if limit is None:
        return
    members = _members(limit, placed)
    if limit.policy == "anti-affinity":
        allowed = np.maximum(limit.max_per_service - members, 0)
        yield _shared_out(limit, room, allowed, np.zeros_like(limit.leaf))
        return
    total = np.bincount(limit.service, weights=room, minlength=len(members))
    for service in dict.fromkeys(limit.service[limit.order].tolist()):
        if total[service] >= sizes[-1] and (members[service] or not members.any()):
            yield np.where(limit.service == service, room, 0)


def keeps(limit: Bound | None, planned: Array, placed: Array) -> bool:
    """Tell whether planned VMs per hypervisor keep the policy, counted by service."""
    if limit is None:
        return True
    members = _members(limit, placed)
    new = np.bincount(limit.service, weights=planned, minlength=len(members)).astype(np.int64)
    if limit.policy == "anti-affinity":
        return bool((new + members <= np.maximum(limit.max_per_service, members)).all())
    return bool(((new + members) > 0).sum() <= 1)


def open_room(limit: Bound | None, room: Array, placed: Array) -> Array:
    """Return the room per hypervisor of the services that may take VMs of the group at all."""
    if limit is None:
        return room
    members = _members(limit, placed)
    if limit.policy == "anti-affinity":
        return np.where(members[limit.service] < limit.max_per_service, room, 0)
    return np.where(members[limit.service] > 0, room, 0) if members.any() else room


def _members(limit: Bound, placed: Array) -> Array:
    """Return the VMs of the group per service, those that this request has placed included."""
    here = np.bincount(limit.service, weights=placed, minlength=len(limit.members))
    members: Array = limit.members + here.astype(np.int64)
    return members


def _shared_out(limit: Bound, room: Array, allowed: Array, part: Array) -> Array:
    """Return the room per hypervisor, what a service may take given once in each part."""
    bounded = np.zeros_like(room)
    given: dict[tuple[int, int], int] = {}
    for i in limit.order:
        service = int(limit.service[i])
        key = (service, int(part[i]))
        bounded[i] = min(int(room[i]), int(allowed[service]) - given.get(key, 0))
        given[key] = given.get(key, 0) + int(bounded[i])
    return bounded
