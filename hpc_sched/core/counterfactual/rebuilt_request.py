"""The request of a recorded decision, rebuilt: the planner answers as it did for the scheduler."""

import itertools
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from hpc_sched import exceptions
from hpc_sched.core.arrays import Array, Mask
from hpc_sched.core.constraints import Constraints, level_of
from hpc_sched.core.constraints.constraint import LevelConstraint
from hpc_sched.core.constraints.homogeneous import CHOICES
from hpc_sched.core.constraints.server_group_policy import HARD_POLICIES, HardPolicy, most_per_host
from hpc_sched.core.constraints.values import CONSTRAINTS
from hpc_sched.core.counterfactual.host_classes import NONE, NOT_A_CANDIDATE, HostClass, classes_in
from hpc_sched.core.counterfactual.recorded_objective import objective_in
from hpc_sched.core.fragmentation.price import FragmentationPrice
from hpc_sched.core.fragmentation.rates import MOST as MOST_RATE
from hpc_sched.core.fragmentation.rates import rates_of
from hpc_sched.core.group_request import GroupRequest
from hpc_sched.core.logged.decision_entry import DecisionEntry, LoggedInput, LoggedPrice
from hpc_sched.core.logged.logged_objective import LoggedObjective
from hpc_sched.core.plan.objective import Objective
from hpc_sched.core.plan.tie_order import TieOrder
from hpc_sched.core.processors.group_processors import HostProcessors
from hpc_sched.topology.model import Topology
from hpc_sched.topology.tree import MAX_LEVELS

# More than that no request has; a damaged record must not take the memory of the machine.
MAX_HOSTS = 100_000
MAX_VMS = 1 << 14  # of the group
MAX_PRODUCT = 100_000_000  # of both
Hosts = list[tuple[str, HostClass]]  # name and class of each hypervisor


class RecordError(exceptions.HPCSchedError):
    """The record does not have what is needed to plan again."""


@dataclass(frozen=True, slots=True, eq=False)
class RebuiltRequest:
    """The request of a decision, with what was left out of it. Hosts have made-up names.

    Arrays have a row per hypervisor; the hosts that filters removed are among them, without room.
    """

    request: GroupRequest  # its shunned hosts are those of ``shunned``
    free: Array  # room without the VMs of others, and without the filters
    shunned: Mapping[str, Mask]  # by reason
    removed: Mapping[str, Mask]  # by filter
    is_member_host: Mask  # whether it was no candidate, and has members only
    by_mdobp: bool  # whether MDOBP chooses the hosts inside a leaf
    by_leaf: bool  # whether costs count VMs on one host as VMs of one leaf


def rebuilt(entry: DecisionEntry) -> RebuiltRequest:
    """Return the request of a decision.

    :raises RecordError: if the record does not have it, or is damaged
    """
    if entry.input is None:
        raise RecordError("the record does not have what the planner was given")
    if entry.left is None or entry.awaiting is None or entry.left < 0:
        raise RecordError("the record does not have the number of VMs")
    try:
        return _rebuilt(entry, entry.input, entry.left, max(entry.awaiting, entry.left))
    except (exceptions.HPCSchedError, ValueError, LookupError, OverflowError) as failure:
        raise RecordError(f"the record is damaged: {failure}") from failure


def _rebuilt(entry: DecisionEntry, given: LoggedInput, left: int, awaiting: int) -> RebuiltRequest:
    topology, hosts = _fabric(given)
    host_index = np.array([topology.index_of(name) for name, _ in hosts], dtype=np.int64)

    def column(name: str) -> Array:
        return np.array([getattr(of_host, name) for _, of_host in hosts], dtype=np.int64)

    room = np.maximum(column("room"), 0)
    members: Array = np.zeros(len(topology.hosts), dtype=np.int64)
    members[host_index] = column("members")
    number = max(awaiting, given.missing) + int(members.sum())
    if number > MAX_VMS or number * len(hosts) > MAX_PRODUCT:
        raise ValueError(f"{number} VMs on {len(hosts)} hosts are too many to plan again")
    constraints = _constraints(entry.wishes or {}, topology)
    shunned = _by_number(given.shunned, [of_host.shunned for _, of_host in hosts])
    policy = entry.policy or None
    request = GroupRequest(
        topology=topology,
        tie=TieOrder(topology, entry.group or entry.instance or ""),
        host_index=host_index,
        room=room,
        members=members,
        left=left,
        awaiting=awaiting,
        orphans=max(given.orphans, 0),
        missing=max(given.missing, 0),
        followers=max(given.followers, 0),
        is_move=given.is_move,
        constraints=constraints,
        server_group_policy=policy,
        hard_policy=_hard_policy(policy, given, column, topology.leaf_index[host_index]),
        pack_hosts=policy != "soft-anti-affinity" and not given.by_mdobp,
        homogeneous=given.homogeneous if given.homogeneous in CHOICES else "false",
        processors=_processors(given, column("type_")),
        shunned=np.logical_or.reduce(list(shunned.values())) if shunned else None,
        objective=_objective(entry.objective, topology, host_index, column("link")),
        price=_price(given.price),
    )
    return RebuiltRequest(
        request=request,
        free=np.maximum(column("free"), room),
        shunned=shunned,
        removed=_by_number(given.removed, [(of_host.removed,) for _, of_host in hosts]),
        is_member_host=column("room") == NOT_A_CANDIDATE,
        by_mdobp=given.by_mdobp,
        by_leaf=given.by_mdobp,
    )


def _objective(
    logged: LoggedObjective | None, topology: Topology, host_index: Array, link: Array
) -> Objective | None:
    if logged is None:
        return None
    links: Array = np.full(len(topology.hosts), NONE)
    links[host_index] = link
    return objective_in(logged, topology, links)


def _price(logged: LoggedPrice | None) -> FragmentationPrice | None:
    if logged is None:
        return None
    if not all(0 <= rate <= MOST_RATE for rate in (logged.leaf, logged.pod)):
        raise ValueError(f"price: expected rates from 0 to {MOST_RATE}")
    slots = [max(number, 1) for number in (logged.leaf_slots, logged.pod_slots)]
    return FragmentationPrice(rates_of(logged.leaf, logged.pod), *slots)


def _fabric(given: LoggedInput) -> tuple[Topology, Hosts]:
    """Return the part of the fabric that the record has, and its hypervisors."""
    hosts: Hosts = []
    tree = _with_hosts(given.tree, hosts, itertools.count())
    if len(given.levels) > MAX_LEVELS:
        raise ValueError(f"expected at most {MAX_LEVELS} levels")
    return Topology.from_tree(tree, given.levels, heights=given.heights), hosts


def _with_hosts(
    tree: Mapping[str, Any], hosts: Hosts, leaves: Iterator[int], level: int = 1
) -> dict[str, Any]:
    """Return nested switches with the made-up names of their hosts.

    :param hosts: to which the hypervisors are added; those of one host, by its number, have one
        name
    :param leaves: numbers of further leaves; the name of one may be long
    """
    if level > MAX_LEVELS:
        raise ValueError(f"expected at most {MAX_LEVELS} levels")
    found: dict[str, Any] = {}
    for name, below in tree.items():
        if isinstance(below, Mapping):
            found[name] = _with_hosts(below, hosts, leaves, level + 1)
            continue
        if not isinstance(below, str):
            raise ValueError(f"switch {name!r}: expected switches or hosts, found {below!r:.40}")
        leaf, first = next(leaves), len(hosts)
        for number, alike in classes_in(below):
            if len(hosts) + number > MAX_HOSTS:
                raise ValueError(f"expected at most {MAX_HOSTS} hosts")
            for at in range(len(hosts) - first, len(hosts) - first + number):
                host = at if alike.host == NONE else f"h{alike.host}"
                hosts.append((f"leaf {leaf} host {host}", alike))
        found[name] = list(dict.fromkeys(host for host, _ in hosts[first:]))
    return found


def _constraints(wishes: Mapping[str, Any], topology: Topology) -> Constraints:
    """Return the constraints; raises RequestError for an unknown level."""
    found = {one: wishes[one.name] for one in CONSTRAINTS if wishes.get(one.name) is not None}
    for one, value in found.items():
        if issubclass(one, LevelConstraint):
            level_of(topology, value if isinstance(value, str) else "")
        elif not one.is_valid(value, ()):
            raise ValueError(f"{one.name}: expected {one.expected(())}, found {value!r:.40}")
    return Constraints(**{one.name: value for one, value in found.items()})


def _by_number(reasons: Sequence[str], numbers_of: Sequence[tuple[int, ...]]) -> dict[str, Mask]:
    """Return the hypervisors of each reason; those without any hypervisor are left out.

    :param numbers_of: the reasons of each hypervisor, by number
    """
    at = defaultdict[int, list[int]](list)
    for i, numbers in enumerate(numbers_of):
        for number in numbers:
            at[number].append(i)
    rows = np.arange(len(numbers_of))
    return {why: np.isin(rows, at[number]) for number, why in enumerate(reasons) if number in at}


def _hard_policy(
    policy: str | None, given: LoggedInput, column: Callable[[str], Array], leaf: Array
) -> HardPolicy | None:
    if policy not in HARD_POLICIES:
        return None
    number, members = len(given.services), column("members")
    service = column("service") if number else np.full(len(leaf), NONE)
    if (service >= max(number, 1)).any():
        raise ValueError(f"expected at most {number} services")
    # Rows of other hosts, which take a VM without a filter at most, are services of their own.
    is_own = service == NONE
    service[is_own] = number + np.arange(is_own.sum())
    on_service = np.array([*given.services, *[0] * len(leaf)], dtype=np.int64)
    on_service[service[is_own]] = members[is_own]
    return HardPolicy(
        policy=policy,
        max_per_service=most_per_host(given.max_per_host),
        service=service,
        members=on_service,
        leaf=leaf,
        order=np.arange(len(leaf)),
    )


def _processors(given: LoggedInput, types: Array) -> HostProcessors | None:
    if not given.processors:
        return None
    number = len(given.processors)
    return HostProcessors(
        hypervisors={name: types == i for i, name in enumerate(given.processors)},
        # By cores alone, types come in the order of the record.
        cores={name: number - i for i, name in enumerate(given.processors)},
        members={name or None: count for name, count in given.member_processors.items()},
    )


def of_size(request: GroupRequest, count: int) -> GroupRequest:
    """Return the request for this number of VMs and no other: only then costs are comparable."""
    constraints = request.constraints
    if count < request.active:
        # A smaller number than this is not planned by the preferred level.
        constraints = constraints.changed(prefer=None)
    return replace(
        request, constraints=constraints, left=count, awaiting=count, orphans=0, missing=0
    )
