"""The request of a recorded decision, rebuilt: the planner answers as it did for the scheduler."""

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
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
from hpc_sched.core.decision_entry import DecisionEntry, LoggedInput
from hpc_sched.core.group_request import GroupRequest
from hpc_sched.core.plan.problem import tie_order
from hpc_sched.core.processors.group_processors import HostProcessors
from hpc_sched.topology.model import Topology
from hpc_sched.topology.tree import MAX_LEVELS

# More than that no request has; a damaged record must not take the memory of the machine.
MAX_HOSTS = 100_000
MAX_VMS = 1 << 14  # of the group
MAX_PRODUCT = 100_000_000  # of both


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


@dataclass(frozen=True, slots=True)
class _Row:
    """A hypervisor."""

    leaf: int
    host: int
    of: HostClass


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
    topology, rows = _fabric(given)
    host_index = np.array([row.host for row in rows], dtype=np.int64)
    room = np.array([max(row.of.room, 0) for row in rows], dtype=np.int64)
    members: Array = np.zeros(len(topology.hosts), dtype=np.int64)
    members[host_index] = [row.of.members for row in rows]
    number = max(awaiting, given.missing) + int(members.sum())
    if number > MAX_VMS or number * len(rows) > MAX_PRODUCT:
        raise ValueError(f"{number} VMs on {len(rows)} hosts are too many to plan again")
    wishes = _constraints(entry.wishes or {}, topology)
    shunned = _by_number(given.shunned, rows, lambda row: row.of.shunned)
    removed = _by_number(given.removed, rows, lambda row: (row.of.removed,))
    policy = entry.policy or None
    marked = list(shunned.values())
    request = GroupRequest(
        topology=topology,
        tie=tie_order(topology, entry.group or entry.instance or ""),
        host_index=host_index,
        room=room,
        members=members,
        left=left,
        awaiting=awaiting,
        orphans=max(given.orphans, 0),
        missing=max(given.missing, 0),
        constraints=wishes,
        server_group_policy=policy,
        hard_policy=_hard_policy(policy, given, rows, topology, host_index),
        pack_hosts=policy != "soft-anti-affinity" and not given.by_mdobp,
        homogeneous=given.homogeneous if given.homogeneous in CHOICES else "false",
        processors=_processors(given, rows),
        shunned=np.logical_or.reduce(marked) if marked else None,
    )
    return RebuiltRequest(
        request=request,
        free=np.array([row.of.free for row in rows], dtype=np.int64),
        shunned=shunned,
        removed=removed,
        is_member_host=np.array([row.of.room == NOT_A_CANDIDATE for row in rows], dtype=np.bool_),
        by_mdobp=given.by_mdobp,
        by_leaf=given.by_mdobp,
    )


def _fabric(given: LoggedInput) -> tuple[Topology, list[_Row]]:
    """Return the part of the fabric that the record has, and its hypervisors."""
    classes: dict[str, list[HostClass]] = {}
    total = 0
    for leaf, text in _leaves(given.tree):
        classes[leaf] = list(classes_in(text))
        total += sum(one.hosts for one in classes[leaf])
        if total > MAX_HOSTS:
            raise ValueError(f"expected at most {MAX_HOSTS} hosts")
    # Hypervisors of one host, by its number, have one name.
    names: dict[str, list[tuple[str, HostClass]]] = {}
    for at, (leaf, found) in enumerate(classes.items()):
        # The name of a leaf may be long.
        names[leaf] = [
            (f"leaf {at} host {number if one.host == NONE else f'h{one.host}'}", one)
            for number, one in enumerate(one for one in found for _ in range(one.hosts))
        ]

    def named(tree: Mapping[str, Any]) -> dict[str, Any]:
        return {
            name: named(below)
            if isinstance(below, Mapping)
            else list(dict.fromkeys(host for host, _ in names[name]))
            for name, below in tree.items()
        }

    if len(given.levels) > MAX_LEVELS:
        raise ValueError(f"expected at most {MAX_LEVELS} levels")
    topology = Topology.from_tree(named(given.tree), given.levels, heights=given.heights)
    rows = [
        _Row(topology.switch_index(leaf), topology.index_of(host), one)
        for leaf, hosts in names.items()
        for host, one in hosts
    ]
    return topology, rows


def _leaves(tree: Mapping[str, Any], level: int = 1) -> Iterator[tuple[str, str]]:
    if level > MAX_LEVELS:
        raise ValueError(f"expected at most {MAX_LEVELS} levels")
    for name, below in tree.items():
        if isinstance(below, Mapping):
            yield from _leaves(below, level + 1)
        elif isinstance(below, str):
            yield name, below
        else:
            raise ValueError(f"switch {name!r}: expected switches or hosts, found {below!r:.40}")


def _constraints(wishes: Mapping[str, Any], topology: Topology) -> Constraints:
    """Return the constraints; raises RequestError for an unknown level."""
    found = {one.name: wishes.get(one.name) for one in CONSTRAINTS}
    for one in CONSTRAINTS:
        value = found[one.name]
        if value is None:
            continue
        if issubclass(one, LevelConstraint):
            level_of(topology, value if isinstance(value, str) else "")
        elif not one.is_valid(value, ()):
            expected = one.expected(())
            raise ValueError(f"{one.name}: expected {expected}, found {value!r:.40}")
    return Constraints(**found)


def _by_number(
    reasons: tuple[str, ...], rows: list[_Row], numbers: Callable[[_Row], tuple[int, ...]]
) -> dict[str, Mask]:
    """Return the hypervisors of each reason; those without any hypervisor are left out."""
    at = defaultdict[int, list[int]](list)
    for i, row in enumerate(rows):
        for number in numbers(row):
            at[number].append(i)
    found = {}
    for number, why in enumerate(reasons):
        if number in at:
            found[why] = np.zeros(len(rows), dtype=np.bool_)
            found[why][at[number]] = True
    return found


def _hard_policy(
    policy: str | None,
    given: LoggedInput,
    rows: list[_Row],
    topology: Topology,
    host_index: Array,
) -> HardPolicy | None:
    if policy not in HARD_POLICIES:
        return None
    if given.services:
        # Rows of other hosts, which take a VM without a filter at most, are services of their own.
        own = iter(range(len(given.services), len(given.services) + len(rows)))
        if any(row.of.service >= len(given.services) for row in rows):
            raise ValueError(f"expected at most {len(given.services)} services")
        service = [next(own) if row.of.service == NONE else row.of.service for row in rows]
        on_service = np.zeros(len(given.services) + len(rows), dtype=np.int64)
        on_service[: len(given.services)] = given.services
        for row, number in zip(rows, service, strict=True):
            if row.of.service == NONE:
                on_service[number] = row.of.members
    else:
        service = list(range(len(rows)))
        on_service = np.array([row.of.members for row in rows], dtype=np.int64)
    return HardPolicy(
        policy=policy,
        max_per_service=most_per_host(given.max_per_host),
        service=np.array(service, dtype=np.int64),
        members=on_service,
        leaf=topology.leaf_index[host_index],
        order=np.arange(len(rows)),
    )


def _processors(given: LoggedInput, rows: list[_Row]) -> HostProcessors | None:
    if not given.processors:
        return None
    types = np.array([row.of.type_ for row in rows], dtype=np.int64)
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
