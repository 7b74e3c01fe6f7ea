"""The allocation candidates of one VM on one host, as Placement enumerates them."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from hpc_sched.core.room.provider_tree import Provider, ProviderTree
from hpc_sched.core.room.providers import Amounts, Inventory
from hpc_sched.core.room.resource_request import RequestGroup, ResourceRequest

# Candidates of one host; Nova requests this number for all (``max_placement_results``).
MOST = 1000
# Providers that are tried for parts of candidates before the enumeration ends.
_TRIES = 100 * MOST


@dataclass(frozen=True, slots=True)
class AllocationCandidate:
    """One way to allocate what a VM requests."""

    amounts: Amounts
    mappings: Mapping[str, tuple[str, ...]]  # suffix of the request group to its providers


@dataclass(frozen=True, slots=True)
class _Part:
    """What must come from one provider: a group with a suffix, or one class of the other group."""

    group: RequestGroup
    resources: Mapping[str, int]
    providers: Sequence[Provider]
    # Whether the part before it requests the same: their providers are tried in one order only.
    is_like_last: bool = False


def candidates(
    tree: ProviderTree, request: ResourceRequest, most: int = MOST
) -> list[AllocationCandidate]:
    """Return the candidates of different amounts that fit now, at most a number of them.

    Each class of the group without a suffix comes from one provider of the tree or a shared one,
    whose traits count together; each other group comes from one provider as a whole. The root
    has the traits that are required of it. Empty where Placement refuses the query: traits
    without resources, or several groups with suffixes without a policy.

    In the order of the tree's providers, for the groups in their order. As in ``GET
    /allocation_candidates`` (1.36) of Placement; its order is arbitrary.
    """
    if not _is_answered(tree, request):
        return []
    found: dict[frozenset[tuple[Inventory, int]], AllocationCandidate] = {}
    parts, is_isolated = _parts(tree, request), request.group_policy == "isolate"
    for chosen, amounts in _combinations(parts, is_isolated, _TRIES) if parts else ():
        key = frozenset(amounts.items())
        if key not in found and _is_valid(tree, request, parts, chosen):
            found[key] = AllocationCandidate(amounts, _mappings(parts, chosen))
            if len(found) == most:
                break
    return list(found.values())


def with_repeats(tree: ProviderTree, request: ResourceRequest) -> Iterator[AllocationCandidate]:
    """Yield the candidates that Placement has, in no useful order; limits count each.

    Request groups that are alike may take of the same providers in any order. Some at least if
    there are very many.
    """
    if not _is_answered(tree, request):
        return
    parts = [replace(part, is_like_last=False) for part in _parts(tree, request)]
    for chosen, amounts in _combinations(parts, request.group_policy == "isolate", _TRIES):
        if _is_valid(tree, request, parts, chosen):
            yield AllocationCandidate(amounts, _mappings(parts, chosen))


def _is_answered(tree: ProviderTree, request: ResourceRequest) -> bool:
    """True if Placement does not refuse a query, and the root has what is required of it."""
    lacks_policy = request.group_policy is None and sum(bool(g.suffix) for g in request.groups) > 1
    lacks_resources = any(not group.resources and not group.suffix for group in request.groups)
    return not (lacks_policy or lacks_resources) and request.root.fulfils([tree.root])


def most_by_class(tree: ProviderTree, requests: Sequence[ResourceRequest]) -> dict[str, int]:
    """Return by class how many VMs at most fit in a tree if no other class counts.

    Never less than what fits: each provider counts in whole parts of the least amount that it may
    be requested for, whatever else of a request must come from it. Without classes that not every
    request names; 0 where the root lacks what is required of it. O(providers * groups).

    :param requests: alternatives; each VM is claimed by one of them
    """
    least: dict[Inventory, int] = {}
    free: dict[Inventory, int] = {}
    for request in requests:
        for part in _parts(tree, request) if request.root.fulfils([tree.root]) else ():
            for provider in part.providers:
                for name, amount in part.resources.items():
                    key = provider.uuid, name
                    least[key] = min(least.get(key, amount), amount)
                    found = provider.inventories[name]
                    free[key] = found.capacity - found.used
    demands = [request.demand for request in requests]
    usable = dict.fromkeys(sorted(set.intersection(*map(set, demands))), 0)
    for (uuid, name), amount in least.items():
        if name in usable:
            usable[name] += free[uuid, name] // amount * amount
    return {name: most // min(demand[name] for demand in demands) for name, most in usable.items()}


def _parts(tree: ProviderTree, request: ResourceRequest) -> list[_Part]:
    parts: list[_Part] = []
    last: tuple[object, ...] | None = None
    for group in request.groups:
        each = [{name: amount} for name, amount in sorted(group.resources.items())]
        split = [group.resources] if group.suffix else each
        subtrees = tuple(group.suffix in suffixes for suffixes in request.same_subtree)
        kind = (dict(group.resources), group.required, group.forbidden, subtrees)
        for resources in split:
            providers = [
                provider
                for provider in tree.all
                if all(
                    name in provider.inventories and provider.inventories[name].takes(amount)
                    for name, amount in resources.items()
                )
                and group.forbidden.isdisjoint(provider.traits)
                and (not group.suffix or group.fulfils([provider]))
            ]
            is_like_last = bool(group.suffix) and kind == last
            parts.append(_Part(group, resources, providers, is_like_last))
        last = kind if group.suffix else None
    return parts


def _combinations(
    parts: Sequence[_Part], is_isolated: bool, tries: int
) -> Iterator[tuple[tuple[Provider, ...], dict[Inventory, int]]]:
    """Yield a provider for each part, and the amounts of them all, as far as they fit together."""

    def extended(
        chosen: tuple[Provider, ...], taken: dict[Inventory, int], first: int
    ) -> Iterator[tuple[tuple[Provider, ...], dict[Inventory, int]]]:
        """Yield those that begin with some providers; ``first``: of the next part."""
        nonlocal tries
        if len(chosen) == len(parts):
            yield chosen, taken
            return
        part, following = parts[len(chosen)], parts[len(chosen) + 1 : len(chosen) + 2]
        for number, provider in enumerate(part.providers[first:], first):
            tries -= 1
            is_taken = bool(is_isolated and part.group.suffix) and any(
                one.group.suffix and other.uuid == provider.uuid
                for one, other in zip(parts, chosen, strict=False)
            )
            after = None if is_taken else _with(taken, part.resources, provider)
            if after is not None and tries > 0:
                is_alike = any(one.is_like_last for one in following)
                yield from extended((*chosen, provider), after, number if is_alike else 0)
            if tries <= 0:
                return

    return extended((), {}, 0)


def _with(
    taken: Mapping[Inventory, int], resources: Mapping[str, int], provider: Provider
) -> dict[Inventory, int] | None:
    """Return the amounts with those of one more part, or None if they do not fit together."""
    after = dict(taken)
    for name, amount in resources.items():
        key = provider.uuid, name
        after[key] = after.get(key, 0) + amount
        if after[key] > provider.inventories[name].most:
            return None
    return after


def _is_valid(
    tree: ProviderTree,
    request: ResourceRequest,
    parts: Sequence[_Part],
    chosen: Sequence[Provider],
) -> bool:
    pairs = list(zip(parts, chosen, strict=True))
    return all(
        group.fulfils([provider for part, provider in pairs if part.group is group])
        for group in request.groups
        if not group.suffix
    ) and all(
        _is_subtree(tree, {provider.uuid for part, provider in pairs if part.group.suffix in some})
        for some in request.same_subtree
    )


def _is_subtree(tree: ProviderTree, uuids: set[str]) -> bool:
    """True if one of some providers is above all others."""
    parents = {provider.uuid: provider.parent for provider in tree.all}
    common = set(uuids)
    for uuid in uuids:
        above: set[str] = set()
        at: str | None = uuid
        while at is not None and at not in above:
            above.add(at)
            at = parents.get(at)
        common &= above
    return bool(common) or not uuids


def _mappings(parts: Sequence[_Part], chosen: Sequence[Provider]) -> dict[str, tuple[str, ...]]:
    found: dict[str, dict[str, None]] = {}
    for part, provider in zip(parts, chosen, strict=True):
        found.setdefault(part.group.suffix, {})[provider.uuid] = None
    return {suffix: tuple(uuids) for suffix, uuids in found.items()}
