"""The input of a decision, in the form in which the decision log keeps it."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from hpc_sched.core.arrays import Array, Mask
from hpc_sched.core.counterfactual.host_classes import NONE, NOT_A_CANDIDATE, HostClass
from hpc_sched.core.decision_entry import LoggedInput
from hpc_sched.core.group_request import GroupRequest
from hpc_sched.core.processors.group_processors import HostProcessors
from hpc_sched.topology.model import Topology


@dataclass(frozen=True, slots=True)
class RemovedHosts:
    """Hosts that a filter removed before the plan, as far as the topology has them."""

    leaf: Sequence[int]  # index in ``topology.switches`` of each
    room: Sequence[int]  # VMs that each takes without the filter


@dataclass(frozen=True, slots=True, eq=False)
class LeftOut:
    """What was left out of a request, and why; arrays have a row per hypervisor."""

    free: Array | None = None  # room without the VMs of others; None: the same
    shunned: Mapping[str, Mask] = field(default_factory=dict)  # by reason
    removed: Mapping[str, RemovedHosts] = field(default_factory=dict)  # by filter
    processors: HostProcessors | None = None  # None if no type was to be chosen
    homogeneous: str = "false"
    by_mdobp: bool = False


def logged_input(request: GroupRequest, left_out: LeftOut) -> LoggedInput | None:
    """Return the input of a decision; None for members that must move as well.

    O(hypervisors log hypervisors).
    """
    if request.leaving is not None and request.leaving.any():
        return None
    topology, policy = request.topology, request.hard_policy
    shunned = sorted(left_out.shunned)
    processors = left_out.processors
    types = _types(processors)
    has_services = policy is not None and not _is_by_host(request)
    found = defaultdict[int, list[HostClass]](list)
    for leaf, found_class in _candidates(request, left_out, shunned, types, has_services):
        found[leaf].append(found_class)
    for leaf, found_class in _members_elsewhere(request):
        found[leaf].append(found_class)
    removed = sorted(left_out.removed)
    for number, why in enumerate(removed):
        hosts = left_out.removed[why]
        rows, counts = np.unique(
            np.array([hosts.leaf, hosts.room], dtype=np.int64), axis=1, return_counts=True
        )
        for leaf, room, count in zip(*rows.tolist(), counts.tolist(), strict=True):
            found[leaf].append(HostClass(count, 0, room, removed=number))
    texts = {leaf: " ".join(map(str, sorted(classes))) for leaf, classes in found.items()}
    tree, heights = _tree(topology, texts)
    is_spread = policy is not None and policy.policy == "anti-affinity"
    return LoggedInput(
        levels=topology.levels,
        tree=tree,
        heights=heights,
        max_per_host=policy.max_per_service if policy is not None and is_spread else None,
        orphans=request.orphans,
        missing=request.missing,
        by_mdobp=left_out.by_mdobp,
        shunned=tuple(shunned),
        removed=tuple(removed),
        processors=tuple(types),
        member_processors={
            name or "": count for name, count in (processors.members if processors else {}).items()
        },
        homogeneous=left_out.homogeneous if processors is not None else "false",
        services=tuple(policy.members.tolist()) if policy is not None and has_services else (),
    )


def _types(processors: HostProcessors | None) -> list[str]:
    """Return the processor types, those that the group may take first, best first."""
    if processors is None:
        return []
    return list(dict.fromkeys([*processors.best_first(), *sorted(processors.hypervisors)]))


def _is_by_host(request: GroupRequest) -> bool:
    """True if the members of each service are those on its host."""
    policy = request.hard_policy
    if policy is None or not policy.has_single_nodes:
        return policy is None
    members = policy.members[policy.service]
    return bool((members == request.members[request.hosts_of_rows]).all())


def _candidates(
    request: GroupRequest,
    left_out: LeftOut,
    shunned: Sequence[str],
    types: Sequence[str],
    has_services: bool,
) -> list[tuple[int, HostClass]]:
    """Return the classes of the hypervisors, each with its leaf."""
    hosts = request.hosts_of_rows
    if not len(hosts):
        return []
    nothing = np.full(len(hosts), NONE)
    sets = _sets([left_out.shunned[why] for why in shunned], len(hosts))
    type_, host = nothing.copy(), nothing
    for number, name in enumerate(types):
        if left_out.processors is not None:
            type_[left_out.processors.hypervisors[name]] = number
    service = nothing
    if request.hard_policy is not None and has_services:
        service = request.hard_policy.service
    if (np.bincount(hosts) > 1).any():
        host = np.where((np.bincount(hosts) > 1)[hosts], hosts, NONE)
    free = request.room if left_out.free is None else np.maximum(left_out.free, request.room)
    columns = [
        request.topology.leaf_index[hosts],
        request.room,
        free,
        request.members[hosts],
        sets,
        type_,
        service,
        host,
    ]
    first, counts = _distinct(columns)
    rows = zip(*(column[first].tolist() for column in columns), counts.tolist(), strict=True)
    reasons = {
        code: tuple(number for number in range(len(shunned)) if code >> number & 1)
        for code in np.unique(sets).tolist()
    }
    return [
        (
            leaf,
            HostClass(
                hosts=count,
                room=room,
                free=free_,
                members=members,
                shunned=reasons[set_],
                type_=its_type,
                service=its_service,
                host=its_host,
            ),
        )
        for leaf, room, free_, members, set_, its_type, its_service, its_host, count in rows
    ]


def _sets(masks: Sequence[Mask], length: int) -> Array:
    """Return the reasons of each hypervisor as the bits of a number. Shape (hypervisors,)."""
    bits: Array = np.zeros(length, dtype=np.int64)
    for number, mask in enumerate(masks[:62]):
        bits |= mask.astype(np.int64) << number
    return bits


def _distinct(columns: Sequence[Array]) -> tuple[Array, Array]:
    """Return the position of one row of each kind, and the number of such rows."""
    code = np.zeros(len(columns[0]), dtype=np.int64)
    for column in columns:
        if (column == column[0]).all():
            continue
        values, inverse = np.unique(column, return_inverse=True)
        # Codes stay below rows * values.
        code = np.unique(code, return_inverse=True)[1] * len(values) + inverse
    _, first, counts = np.unique(code, return_index=True, return_counts=True)
    return first, counts


def _members_elsewhere(request: GroupRequest) -> list[tuple[int, HostClass]]:
    """Return the hosts with members that are no candidates, each with its leaf."""
    elsewhere = request.members > 0
    elsewhere[request.hosts_of_rows] = False
    leaf_index = request.topology.leaf_index
    return [
        (int(leaf_index[i]), HostClass(1, NOT_A_CANDIDATE, 0, int(request.members[i])))
        for i in np.flatnonzero(elsewhere).tolist()
    ]


def _tree(topology: Topology, texts: Mapping[int, str]) -> tuple[dict[str, Any], dict[str, int]]:
    """Return the switches above some leaves, nested, and the levels that this does not show.

    :param texts: index of a leaf to what the tree has for it
    """
    switches = topology.switches
    below: dict[int, Any] = {}
    shown: dict[int, int] = {}  # switch to its level by the tree
    tree: dict[str, Any] = {}
    for leaf in sorted(texts):
        below[leaf], shown[leaf] = texts[leaf], 1
        child = leaf
        for above in list(topology.upwards(leaf))[1:]:
            below.setdefault(above, {})[switches[child].name] = below[child]
            shown[above] = max(shown.get(above, 2), shown[child] + 1)
            child = above
        tree[switches[child].name] = below[child]
    heights = {switches[s].name: switches[s].level for s in below if switches[s].level != shown[s]}
    return tree, heights
