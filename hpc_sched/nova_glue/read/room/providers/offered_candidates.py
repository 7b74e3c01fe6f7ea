"""The allocation candidates that hosts have, as Placement has offered them and from their trees."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from nova.scheduler import host_manager

from hpc_sched.core.room.candidate_enumeration import AllocationCandidate
from hpc_sched.core.room.providers import Amounts, Inventory
from hpc_sched.nova_glue.io.allocations import Allocations

Candidate = Mapping[str, Any]  # an allocation request of Placement, as Nova hands it on


class OfferedCandidates:
    """The lists of candidates of the HostStates of one request.

    Placement may have cut its answer: then a host gets candidates of its tree that were not
    offered, which Nova claims as any other. Request groups that are alike may take of the same
    providers in any order, so that many candidates have equal amounts.
    """

    def __init__(self, states: Sequence[host_manager.HostState]) -> None:
        self._states = states
        # Whether any host has more than one, those included that are added.
        self.differ = any(len(state.allocation_candidates) > 1 for state in states)
        # Those that Placement has not offered, by position and amounts, and which Nova has got.
        self._own: dict[int, dict[frozenset[tuple[Inventory, int]], Candidate]] = {}
        self._added: set[int] = set()
        # Position to a list of Nova's and those of different amounts in it.
        self._different: dict[int, tuple[Any, dict[frozenset[str], list[Candidate]]]] = {}

    def providers(self, i: int) -> set[str]:
        """Return the providers of all candidates of a host."""
        found = self._states[i].allocation_candidates
        return set().union(*(candidate.get("allocations", ()) for candidate in found))

    def number(self, i: int) -> int:
        """Return how many candidates of a host are Placement's."""
        found = self._states[i].allocation_candidates
        return sum(id(one) not in self._added for one in found)

    def different(self, i: int) -> list[Candidate]:
        """Return the candidates of a host of different amounts: the first one of equal ones."""
        return [one for found in self._by_providers(i).values() for one in found]

    def matching(self, i: int, found: Iterable[AllocationCandidate]) -> list[Candidate]:
        """Return candidates of a host as Nova hands them on, made where it has none of the amounts.

        Without those that were made before and that Nova's filters have removed since.
        """
        own = self._own.setdefault(i, {})
        chosen = []
        for one in found:
            allocations, key = _allocations(one.amounts), frozenset(one.amounts.items())
            candidate = self._equal(i, allocations)
            if candidate is None and key not in own:
                mappings = {suffix: list(uuids) for suffix, uuids in one.mappings.items()}
                own[key] = {"allocations": allocations, "mappings": mappings}
            if candidate is None and id(own[key]) not in self._added:
                candidate = own[key]
            if candidate is not None:
                chosen.append(candidate)
        return chosen

    def _equal(self, i: int, allocations: Allocations) -> Candidate | None:
        equal = self._by_providers(i).get(frozenset(allocations), ())
        return next((one for one in equal if one["allocations"] == allocations), None)

    def _by_providers(self, i: int) -> dict[frozenset[str], list[Candidate]]:
        """Return the candidates of different amounts by their providers."""
        offered = self._states[i].allocation_candidates
        known = self._different.get(i)
        if known is not None and known[0] is offered:
            return known[1]
        by_providers: dict[frozenset[str], list[Candidate]] = {}
        for one in offered:
            allocations = one.get("allocations", {})
            equal = by_providers.setdefault(frozenset(allocations), [])
            if not any(allocations == other.get("allocations", {}) for other in equal):
                equal.append(one)
        self._different[i] = offered, by_providers
        return by_providers

    def add(self, i: int, chosen: Iterable[Candidate]) -> None:
        """Give Nova those of some candidates of a host that :meth:`matching` has made."""
        made = {id(one) for one in self._own.get(i, {}).values()} - self._added
        new = {id(one): one for one in chosen if id(one) in made}
        if new:
            state = self._states[i]
            self._added |= new.keys()
            state.allocation_candidates = [*state.allocation_candidates, *new.values()]
            self.differ |= len(state.allocation_candidates) > 1


def _allocations(amounts: Amounts) -> Allocations:
    """Return amounts as Placement has them in an allocation request."""
    found: dict[str, dict[str, dict[str, int]]] = {}
    for (provider, name), amount in amounts.items():
        found.setdefault(provider, {"resources": {}})["resources"][name] = amount
    return found


def amounts_of(candidate: Candidate) -> dict[tuple[str, str], int]:
    """Return the amounts of a candidate by provider and resource class."""
    return {
        (provider, name): amount
        for provider, found in candidate.get("allocations", {}).items()
        for name, amount in found["resources"].items()
    }
