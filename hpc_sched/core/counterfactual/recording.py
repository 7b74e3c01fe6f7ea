"""The input of a decision, in the form in which the decision log keeps it."""

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from hpc_sched.core.arrays import Array, Mask
from hpc_sched.core.constraints.server_group_policy import HardPolicy
from hpc_sched.core.counterfactual.host_classes import NONE, NOT_A_CANDIDATE, HostClass
from hpc_sched.core.fragmentation.price import FragmentationPrice
from hpc_sched.core.group_request import GroupRequest
from hpc_sched.core.logged.decision_entry import LoggedInput, LoggedPrice
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
    """Return the input of a decision; None with members on hosts down, or for a gathered group.

    O(hypervisors log hypervisors).
    """
    if request.leaving is not None and request.leaving.any():
        return None
    if any(request.starts()):
        return None
    policy, processors = request.hard_policy, left_out.processors
    shunned, removed = sorted(left_out.shunned), sorted(left_out.removed)
    types = _types(processors)
    has_services = policy is not None and not _is_by_host(policy, request)
    links = None
    if request.objective is not None:
        # Few groups have one.
        from hpc_sched.core.counterfactual.recorded_objective import link_numbers

        links = link_numbers(request)
    words = defaultdict[int, list[str]](list)
    for leaf, word in (
        *_candidates(request, left_out, shunned, types, links, has_services=has_services),
        *_others(request, [left_out.removed[why] for why in removed], links),
    ):
        words[leaf].append(word)
    tree, heights = _tree(request.topology, words)
    is_spread = policy is not None and policy.policy == "anti-affinity"
    return LoggedInput(
        levels=request.topology.levels,
        tree=tree,
        heights=heights,
        max_per_host=policy.max_per_service if policy is not None and is_spread else None,
        orphans=request.orphans,
        missing=request.missing,
        followers=request.followers,
        is_move=request.is_move,
        by_mdobp=left_out.by_mdobp,
        shunned=tuple(shunned),
        removed=tuple(removed),
        processors=tuple(types),
        member_processors={
            name or "": count for name, count in (processors.members if processors else {}).items()
        },
        homogeneous=left_out.homogeneous if processors is not None else "false",
        services=tuple(policy.members.tolist()) if policy is not None and has_services else (),
        price=_price(request.price),
    )


def _price(price: FragmentationPrice | None) -> LoggedPrice | None:
    if price is None:
        return None
    rates = price.rates
    return LoggedPrice(float(rates.leaf), float(rates.pod), price.leaf_slots, price.pod_slots)


def _types(processors: HostProcessors | None) -> list[str]:
    """Return the processor types, those that the group may take first, best first."""
    if processors is None:
        return []
    return list(dict.fromkeys([*processors.best_first(), *sorted(processors.hypervisors)]))


def _is_by_host(policy: HardPolicy, request: GroupRequest) -> bool:
    """True if the members of each service are those on its host."""
    members = request.members[request.hosts_of_rows]
    return policy.has_single_nodes and bool((policy.members[policy.service] == members).all())


def _candidates(
    request: GroupRequest,
    left_out: LeftOut,
    shunned: Sequence[str],
    types: Sequence[str],
    links: Array | None,
    *,
    has_services: bool,
) -> Iterator[tuple[int, str]]:
    """Yield the classes of the hypervisors as words, each with its leaf, by leaf.

    :param links: number of each host's link, shape (hosts,); None: all have the usual one
    """
    hosts, policy = request.hosts_of_rows, request.hard_policy
    free = request.room if left_out.free is None else left_out.free
    reasons: Array = np.zeros(len(hosts), dtype=np.int64)  # as the bits of a number
    for number, why in enumerate(shunned[:62]):
        reasons |= left_out.shunned[why].astype(np.int64) << number
    type_ = np.full(len(hosts), NONE if types else 0)
    for number, name in enumerate(types):
        if left_out.processors is not None:
            type_[left_out.processors.hypervisors[name]] = number
    nothing = np.full(len(hosts), NONE)
    columns = (
        request.room,
        np.where(free > request.room, free, 0),
        request.members[hosts],
        reasons,
        nothing,
        type_,
        policy.service if policy is not None and has_services else nothing,
        np.where(np.bincount(hosts)[hosts] > 1, hosts, NONE),
        nothing if links is None else links[hosts],
    )
    kinds = list(zip(*(column.tolist() for column in columns), strict=True))
    words = {}
    for kind in set(kinds):
        of_kind = tuple(number for number in range(len(shunned)) if kind[3] >> number & 1)
        words[kind] = str(HostClass(*kind)._replace(shunned=of_kind))
    leaves = request.topology.leaf_index[hosts].tolist()
    for (leaf, kind), count in sorted(Counter(zip(leaves, kinds, strict=True)).items()):
        yield leaf, f"{count}{words[kind]}"


def _others(
    request: GroupRequest, removed: Sequence[RemovedHosts], links: Array | None
) -> Iterator[tuple[int, str]]:
    """Yield the classes of hosts that filters removed, and of others with members, as words.

    Each with its leaf. Members are those of the first filter that removed their host.
    """

    def link_of(host: int) -> int:
        return NONE if links is None else links.item(host)

    leaf_of = request.topology.leaf_index.tolist()
    elsewhere = request.members.copy()
    elsewhere[request.hosts_of_rows] = 0
    members = {i: int(elsewhere[i]) for i in np.flatnonzero(elsewhere).tolist()}
    for number, hosts in enumerate(removed):
        alike = Counter(
            (leaf_of[host], room, members.pop(host, 0), link_of(host))
            for host, room in zip(hosts.host, hosts.room, strict=True)
        )
        for (leaf, room, count, link), of_class in sorted(alike.items()):
            yield leaf, f"{of_class}{HostClass(0, room, count, removed=number, link=link)}"
    for host, count in members.items():
        word = HostClass(NOT_A_CANDIDATE, members=count, link=link_of(host))
        yield leaf_of[host], f"1{word}"


def _tree(
    topology: Topology, words: Mapping[int, Sequence[str]]
) -> tuple[dict[str, Any], dict[str, int]]:
    """Return the switches above some leaves, nested, and the levels that this does not show.

    :param words: of each leaf, by its index
    """
    switches = topology.switches
    below: dict[int, Any] = {}
    shown: dict[int, int] = {}  # switch to its level by the tree
    tree: dict[str, Any] = {}
    for leaf in sorted(words):
        below[leaf], shown[leaf] = " ".join(words[leaf]), 1
        child = leaf
        for above in list(topology.upwards(leaf))[1:]:
            below.setdefault(above, {})[switches[child].name] = below[child]
            shown[above] = max(shown.get(above, 2), shown[child] + 1)
            child = above
        tree[switches[child].name] = below[child]
    heights = {switches[s].name: switches[s].level for s in below if switches[s].level != shown[s]}
    return tree, heights
