"""The input of a decision, in the form in which the decision log keeps it."""

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
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

    host: Sequence[int]  # index in ``topology.hosts`` of each
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
    words = defaultdict[int, list[str]](list)
    for leaf, word in _candidates(request, left_out, shunned, types, has_services):
        words[leaf].append(word)
    elsewhere, leaf_of = _members_elsewhere(request), topology.leaf_index.tolist()
    removed = sorted(left_out.removed)
    for number, why in enumerate(removed):
        hosts = left_out.removed[why]
        alike = Counter(
            (leaf_of[host], room, elsewhere.pop(host, 0))
            for host, room in zip(hosts.host, hosts.room, strict=True)
        )
        for (leaf, room, members), count in sorted(alike.items()):
            words[leaf].append(str(HostClass(count, 0, room, members, removed=number)))
    for host, members in elsewhere.items():
        words[leaf_of[host]].append(str(HostClass(1, NOT_A_CANDIDATE, 0, members)))
    texts = {leaf: " ".join(of_leaf) for leaf, of_leaf in words.items()}
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
) -> Iterator[tuple[int, str]]:
    """Yield the classes of the hypervisors as words, each with its leaf, by leaf."""
    hosts = request.hosts_of_rows
    if not len(hosts):
        return
    nothing = np.full(len(hosts), NONE)
    sets = _sets([left_out.shunned[why] for why in shunned], len(hosts))
    type_ = np.full(len(hosts), NONE if types else 0)
    service, host = nothing, nothing
    for number, name in enumerate(types):
        if left_out.processors is not None:
            type_[left_out.processors.hypervisors[name]] = number
    if request.hard_policy is not None and has_services:
        service = request.hard_policy.service
    is_shared = (np.bincount(hosts) > 1)[hosts]
    if is_shared.any():
        host = np.where(is_shared, hosts, NONE)
    free = request.room if left_out.free is None else np.maximum(left_out.free, request.room)
    columns = [request.room, free, request.members[hosts], sets, type_, service, host]
    kind, first = _kinds(columns)
    after_count = []
    for room, free_, members, set_, its_type, its_service, its_host in zip(
        *(column[first].tolist() for column in columns), strict=True
    ):
        reasons = tuple(number for number in range(len(shunned)) if set_ >> number & 1)
        alike = HostClass(0, room, free_, members, reasons, NONE, its_type, its_service, its_host)
        after_count.append(str(alike)[1:])
    code = request.topology.leaf_index[hosts] * len(first) + kind
    found, counts = np.unique(code, return_counts=True)
    for leaf_and_kind, count in zip(found.tolist(), counts.tolist(), strict=True):
        leaf, number = divmod(leaf_and_kind, len(first))
        yield leaf, f"{count}{after_count[number]}"


def _sets(masks: Sequence[Mask], length: int) -> Array:
    """Return the reasons of each hypervisor as the bits of a number. Shape (hypervisors,)."""
    bits: Array = np.zeros(length, dtype=np.int64)
    for number, mask in enumerate(masks[:62]):
        bits |= mask.astype(np.int64) << number
    return bits


def _kinds(columns: Sequence[Array]) -> tuple[Array, Array]:
    """Return the kind of each row by its numbers, and the position of one row of each kind."""
    kind: Array = np.zeros(len(columns[0]), dtype=np.int64)
    for column in columns:
        if (column != column[0]).any():
            # Below rows * rows.
            numbers = np.unique(column, return_inverse=True)[1]
            kind = np.unique(kind * len(column) + numbers, return_inverse=True)[1]
    return kind, np.unique(kind, return_index=True)[1]


def _members_elsewhere(request: GroupRequest) -> dict[int, int]:
    """Return the members on each host that is no candidate, by its index."""
    elsewhere = request.members > 0
    elsewhere[request.hosts_of_rows] = False
    return {i: int(request.members[i]) for i in np.flatnonzero(elsewhere).tolist()}


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
