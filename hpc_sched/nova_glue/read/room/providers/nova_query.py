"""What Nova requests of Placement for one VM, and what hpc_sched reads for it."""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Self
from urllib import parse

import os_resource_classes as orc
from nova import objects
from nova.conf import CONF
from nova.scheduler import utils as scheduler_utils

from hpc_sched.core.room.resource_request import RequestGroup, ResourceRequest

# Classes of which a HostState has the amounts.
HOST_CLASSES = frozenset({orc.VCPU, orc.PCPU, orc.MEMORY_MB, orc.DISK_GB})
_WITHOUT_LIMIT = frozenset({"group", "same_host", "different_host"})
_KINDS = ("resources", "required", "member_of", "in_tree")
_LEVEL = ("group_policy", "root_required", "same_subtree", "limit")  # of the request as a whole


@dataclass(frozen=True, slots=True)
class NovaQuery:
    """The queries for allocation candidates of one VM, as plain values.

    The second one, where Nova makes it, requests shared processors in place of pinned ones.
    """

    requests: tuple[ResourceRequest, ...]
    # Parameters for the aggregates of hosts, which the plain values lack.
    member_of: tuple[str, ...] = ()
    limit: int | None = None  # of candidates, by [scheduler] max_placement_results; None: no limit
    has_host: bool = False  # whether a host is requested: no others are candidates then

    @classmethod
    def of(cls, spec: objects.RequestSpec) -> Self:
        """Return the queries that the scheduler has made for a RequestSpec.

        Request filters have changed the RequestSpec before Nova's filters are called. Without a
        host that is requested: it is the only candidate then.
        """
        queries = [_query(spec, is_translated=True)]
        if queries[0].cpu_pinning_requested and not CONF.workarounds.disable_fallback_pcpu_query:
            queries.append(_query(spec, is_translated=False))
        parsed = tuple(_parsed(query.to_querystring()) for query in queries)
        return cls(parsed, tuple(_member_of(spec)), _limit(spec), _has_host(spec))

    @property
    def demand(self) -> dict[str, int]:
        """The amount of each resource class that one VM takes, by the first query."""
        return self.requests[0].demand

    def of_trees(self, device: Mapping[str, int] | None = None) -> list[str]:
        """Return queries for allocation candidates whose answers have the whole trees of hosts.

        As Nova's own without request groups of a suffix, which multiply the candidates. Traits of
        the group without a suffix are left out where a device may have them.

        :param device: class and amount that hosts must have too; {}, None: of hosts alone
        """
        found: dict[str, None] = {}
        for request in self.requests:
            own = _without_suffix(request)
            resources = _of_hosts(own.resources) or _of_hosts(request.demand)
            params = [
                ("resources", _amounts((resources | dict(device or {})) or request.demand)),
                ("required", _traits(own) if own.resources.keys() <= HOST_CLASSES else ""),
                ("root_required", _traits(request.root)),
                *(("member_of", text) for text in self.member_of),
            ]
            found[parse.urlencode([one for one in params if one[1]])] = None
        return list(found)

    def of_providers(self, own: Mapping[str, int]) -> list[str]:
        """Return queries for resource providers that together have the roots of hosts with room.

        One for all that a host has itself, and one for each class of devices.

        :param own: what a VM takes of a host's own provider
        """
        group, root = _without_suffix(self.requests[0]), self.requests[0].root
        groups = [root, group] if group.resources.keys() <= HOST_CLASSES else [root]
        traits = ",".join(filter(None, map(_traits, groups)))
        params = [("resources", _amounts(own)), ("required", traits)]
        found = [[*params, *(("member_of", text) for text in self.member_of)]]
        found += [[("resources", f"{name}:{amount}")] for name, amount in self.devices.items()]
        return [parse.urlencode([one for one in each if one[1]]) for each in found]

    @property
    def devices(self) -> dict[str, int]:
        """The least amount of each class of devices that a provider may be requested for."""
        least: dict[str, int] = {}
        for request in self.requests:
            for group in request.groups:
                for name in group.resources.keys() - HOST_CLASSES:
                    amount = group.resources[name]
                    least[name] = min(least.get(name, amount), amount)
        return dict(sorted(least.items()))


def _query(spec: objects.RequestSpec, *, is_translated: bool) -> scheduler_utils.ResourceRequest:
    found = scheduler_utils.ResourceRequest.from_request_spec(spec, is_translated)
    # As in scheduler_utils.resources_from_request_spec: for groups of ports, for instance.
    is_open = found.get_num_of_suffixed_groups() >= 2 and not found.group_policy
    if is_open and found.suffixed_groups_from_flavor <= 1:
        found.group_policy = "none"
    return found


def _limit(spec: objects.RequestSpec) -> int | None:
    """Return the limit of a request; none for those with hints that name a group or instances."""
    hints = (spec.scheduler_hints or {}) if "scheduler_hints" in spec else {}
    is_unlimited = not _WITHOUT_LIMIT.isdisjoint(hints)
    return None if is_unlimited else int(CONF.scheduler.max_placement_results)


def _has_host(spec: objects.RequestSpec) -> bool:
    found = spec.requested_destination if "requested_destination" in spec else None
    names = () if found is None else [name for name in ("host", "node") if name in found]
    return any(getattr(found, name) for name in names)


def _member_of(spec: objects.RequestSpec) -> Iterable[str]:
    """Yield the parameters for aggregates that the request filters have set."""
    destination = spec.requested_destination if "requested_destination" in spec else None
    if destination is None:
        return
    if "aggregates" in destination and destination.aggregates:
        yield from (f"in:{','.join(sorted(one.split(',')))}" for one in destination.aggregates)
    if "forbidden_aggregates" in destination and destination.forbidden_aggregates:
        yield f"!in:{','.join(sorted(destination.forbidden_aggregates))}"


def _parsed(query: str) -> ResourceRequest:
    """Return Nova's query string as plain values.

    Groups with a suffix are in an order in which equal ones follow each other.
    """
    level: defaultdict[str, list[str]] = defaultdict(list)
    groups: defaultdict[str, defaultdict[str, list[str]]] = defaultdict(lambda: defaultdict(list))
    for key, value in parse.parse_qsl(query):
        if key in _LEVEL:
            level[key].append(value)
        elif kind := next((kind for kind in _KINDS if key.startswith(kind)), None):
            groups[key.removeprefix(kind)][kind].append(value)
    found = [
        _group(suffix, params.get("resources", ()), params.get("required", ()))
        for suffix, params in sorted(groups.items())
    ]
    found.sort(key=lambda one: (bool(one.suffix), sorted(one.resources.items()), _traits(one)))
    return ResourceRequest(
        tuple(found),
        next(iter(level["group_policy"]), None),
        tuple(frozenset(text.split(",")) for text in level["same_subtree"]),
        _group("", (), level["root_required"]),
    )


def _group(suffix: str, resources: Iterable[str], required: Iterable[str]) -> RequestGroup:
    amounts = dict(pair.rsplit(":", 1) for text in resources for pair in text.split(","))
    names = [name for text in required for name in text.split(",")]
    return RequestGroup(
        suffix,
        {name: int(amount) for name, amount in sorted(amounts.items()) if int(amount)},
        tuple(frozenset({name}) for name in sorted(names) if not name.startswith("!")),
        frozenset(name.removeprefix("!") for name in names if name.startswith("!")),
    )


def _without_suffix(request: ResourceRequest) -> RequestGroup:
    """Return the group without a suffix, an empty one if there is none."""
    return next((group for group in request.groups if not group.suffix), RequestGroup("", {}))


def _traits(group: RequestGroup) -> str:
    """Return the traits of a group as ``required`` has them."""
    required = sorted(name for one in group.required for name in one)
    return ",".join([*required, *(f"!{name}" for name in sorted(group.forbidden))])


def _of_hosts(resources: Mapping[str, int]) -> dict[str, int]:
    return {name: resources[name] for name in resources if name in HOST_CLASSES}


def _amounts(resources: Mapping[str, int]) -> str:
    return ",".join(f"{name}:{amount}" for name, amount in sorted(resources.items()))
