"""The allocation candidates of many provider trees, enumerated once for trees of one kind."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from hpc_sched.core.room import candidate_enumeration
from hpc_sched.core.room.candidate_enumeration import AllocationCandidate
from hpc_sched.core.room.provider_tree import ProviderTree
from hpc_sched.core.room.providers import Amounts
from hpc_sched.core.room.resource_request import ResourceRequest


class TreeCandidates:
    """The candidates for one VM of a request in each of some trees.

    Trees are of one kind if they differ in the uuids of their own providers only, as most hosts of
    a cloud do. Used by one thread.
    """

    def __init__(self, requests: Sequence[ResourceRequest]) -> None:
        """Start without any.

        :param requests: alternatives, each a query; a candidate answers one of them
        """
        self._requests = tuple(requests)
        # Kind to the first tree of it, and what was found there.
        self._found: dict[object, tuple[ProviderTree, Sequence[AllocationCandidate]]] = {}
        self._most: dict[object, Mapping[str, int]] = {}

    def of(self, tree: ProviderTree) -> Sequence[AllocationCandidate]:
        """Return the :func:`candidates` of a tree, for the requests in their order."""
        kind = tree.kind()
        if kind not in self._found:
            self._found[kind] = (
                tree,
                [one for request in self._requests for one in candidates(tree, request)],
            )
        first, found = self._found[kind]
        if first.root.uuid == tree.root.uuid:
            return found
        uuids = {old.uuid: new.uuid for old, new in zip(first.own, tree.own, strict=True)}
        return [renamed(one, uuids) for one in found]

    def with_repeats(self, tree: ProviderTree) -> Iterator[AllocationCandidate]:
        """Yield the candidates of a tree that Placement has, those of equal amounts too."""
        for request in self._requests:
            yield from candidate_enumeration.with_repeats(tree, request)

    def most_by_class(self, tree: ProviderTree) -> Mapping[str, int]:
        """Return by class how many VMs at most fit in a tree if no other class counts.

        As :func:`candidate_enumeration.most_by_class`: no candidates are enumerated.
        """
        kind = tree.kind()
        if kind not in self._most:
            self._most[kind] = candidate_enumeration.most_by_class(tree, self._requests)
        return self._most[kind]


def candidates(tree: ProviderTree, request: ResourceRequest) -> list[AllocationCandidate]:
    """Return the candidates of a tree, of different amounts.

    All of them, or the first :data:`candidate_enumeration.MOST`. As these may have a provider in
    common, the claims of VMs that are claimed one by one are then added, from the first provider on
    and from the last: of those that are in order of their NUMA cells, each begins with another.
    """
    found = candidate_enumeration.candidates(tree, request)
    if len(found) < candidate_enumeration.MOST:
        return found
    most = min(candidate_enumeration.most_by_class(tree, [request]).values())
    by_amounts = {frozenset(one.amounts.items()): one for one in found}
    backwards = replace(tree, own=(tree.root, *reversed(tree.own[1:])))
    for one in [*_one_by_one(tree, request, most), *_one_by_one(backwards, request, most)]:
        by_amounts.setdefault(frozenset(one.amounts.items()), one)
    return list(by_amounts.values())


def _one_by_one(
    tree: ProviderTree, request: ResourceRequest, most: int
) -> Iterator[AllocationCandidate]:
    """Yield the claims of up to ``most`` VMs if each gets the first candidate that is left."""
    for _ in range(most):
        found = candidate_enumeration.candidates(tree, request, 1)
        if not found:
            return
        yield found[0]
        tree = tree.less({key: -amount for key, amount in found[0].amounts.items()})


def renamed(one: AllocationCandidate, uuids: Mapping[str, str]) -> AllocationCandidate:
    """Return a candidate with other uuids of providers, those that are not named as they are."""
    amounts: Amounts = {(uuids.get(uuid, uuid), name): n for (uuid, name), n in one.amounts.items()}
    return AllocationCandidate(
        amounts,
        {
            suffix: tuple(uuids.get(uuid, uuid) for uuid in found)
            for suffix, found in one.mappings.items()
        },
    )
