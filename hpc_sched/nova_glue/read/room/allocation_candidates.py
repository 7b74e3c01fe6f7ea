"""The allocation candidates of hosts, and which of them the next VM claims."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from nova.conf import CONF
from nova.scheduler import host_manager

from hpc_sched import conf
from hpc_sched.core.arrays import Array
from hpc_sched.core.room.candidate_enumeration import AllocationCandidate
from hpc_sched.core.room.providers import Amounts, Inventory
from hpc_sched.nova_glue.io.allocations import Allocations

Candidate = Mapping[str, Any]  # an allocation request of Placement, as Nova hands it on


@dataclass(frozen=True, slots=True)
class ClaimedPlace:
    """Where an instance is claimed."""

    position: int  # of the HostState
    candidate: Candidate

    @property
    def allocations(self) -> Allocations:
        """What Placement holds for the instance."""
        found: Allocations = self.candidate["allocations"]
        return found


class AllocationCandidates:
    """The allocation candidates of the HostStates of one request.

    Nova claims the first candidate of a host, whether or not an earlier VM of the request has left
    room for it; its filters remove candidates from VM to VM. Placement may have cut its list: then
    a host gets candidates of its tree that were not offered.
    """

    def __init__(self, states: Sequence[host_manager.HostState]) -> None:
        self._states = states
        # Whether any host has more than one.
        self.differ = any(len(state.allocation_candidates) > 1 for state in states)
        self._orders: dict[int, list[Candidate]] = {}  # position to the claims to come
        # Position to what the next VM claims there. Nova's filters change the lists before the
        # claim is seen.
        # Those that Placement has not offered, by position and amounts, and which Nova has got.
        self._own: dict[int, dict[frozenset[tuple[Inventory, int]], Candidate]] = {}
        self._added: set[int] = set()
        # Position to a list of Nova's and those of different amounts in it.
        self._different: dict[int, tuple[Any, dict[frozenset[str], list[Candidate]]]] = {}
        self._next = {i: state.allocation_candidates[:1] for i, state in enumerate(states)}

    def providers(self, i: int) -> set[str]:
        """Return the providers of all candidates of a host."""
        found = self._states[i].allocation_candidates
        return set().union(*(candidate.get("allocations", ()) for candidate in found))

    def number_offered(self, i: int) -> int:
        """Return how many candidates of a host are Placement's."""
        found = self._states[i].allocation_candidates
        return sum(id(one) not in self._added for one in found)

    def different(self, i: int) -> list[Candidate]:
        """Return the candidates of a host of different amounts: the first one of equal ones.

        Request groups that are alike may take of the same providers in any order.
        """
        return [one for found in self._by_providers(i).values() for one in found]

    def matching(self, i: int, found: Iterable[AllocationCandidate]) -> list[Candidate]:
        """Return candidates of a host as Nova hands them on, made where it has none of the amounts.

        Without those that were made before and that Nova's filters have removed since.
        """
        own, offered = self._own.setdefault(i, {}), self._by_providers(i)
        chosen = []
        for one in found:
            allocations = _allocations(one.amounts)
            equal = (
                found
                for found in offered.get(frozenset(allocations), ())
                if found["allocations"] == allocations
            )
            candidate = next(equal, None)
            if candidate is None:
                key = frozenset(one.amounts.items())
                if key not in own:
                    mappings = {suffix: list(uuids) for suffix, uuids in one.mappings.items()}
                    own[key] = {"allocations": allocations, "mappings": mappings}
                elif id(own[key]) in self._added:
                    continue
                candidate = own[key]
            chosen.append(candidate)
        return chosen

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

    def next_claims(self, i: int, number: int) -> list[Candidate]:
        """Return the candidates of the next claims on a host, as far as their order is known."""
        order = self._orders.get(i) or self._states[i].allocation_candidates[:1] * number
        return order[:number]

    def chosen(self, i: int) -> Candidate | None:
        """Return the candidate that Nova claims for the current VM if it chooses the host."""
        return next(iter(self._next[i]), None)

    def offers(self, place: ClaimedPlace) -> bool:
        """True if a host still has a claimed candidate: filters remove some."""
        offered = self._states[place.position].allocation_candidates
        return any(one is place.candidate for one in offered)

    def put_first(self, i: int, chosen: Candidate) -> None:
        """Put one candidate of a host first, which it still offers."""
        state = self._states[i]
        found = state.allocation_candidates
        if found[0] is not chosen:
            state.allocation_candidates = [chosen, *(one for one in found if one is not chosen)]
        self._next[i] = [chosen]

    def plan(self, i: int, order: Sequence[Candidate]) -> None:
        """Set the claims to come on a host; outside shadow mode Nova gets those that it lacks."""
        self._orders[i] = list(order)
        state = self._states[i]
        made = {id(one) for one in self._own.get(i, {}).values()} - self._added
        new = {id(one): one for one in order if id(one) in made}
        if new and not conf.is_shadow(CONF):
            self._added |= new.keys()
            state.allocation_candidates = [*state.allocation_candidates, *new.values()]

    def claimed(self, i: int) -> tuple[Amounts, bool]:
        """Return what a VM has just claimed on a host, and whether that was planned."""
        claims, order = self._next[i], self._orders.get(i)
        if order and claims and order[0] is claims[0]:
            del order[0]
            return amounts_of(claims[0]), True
        self._orders.pop(i, None)
        return (amounts_of(claims[0]) if claims else {}), not self.differ

    def arrange(self, positions: Array) -> None:
        """Put first, on each of some hosts, the candidate that its next VM shall claim."""
        for i in positions.tolist():
            found, order = self._states[i].allocation_candidates, self._orders.get(i)
            if order and any(one is order[0] for one in found):
                self.put_first(i, order[0])
            else:
                self._next[i] = found[:1]

    def note_first(self, positions: Array) -> None:
        """Note what is first on some hosts after filters that have removed candidates."""
        self._next |= {i: self._states[i].allocation_candidates[:1] for i in positions.tolist()}


class CandidateOrder:
    """Puts first, on each host of a request, the candidate that its next VM shall claim."""

    def __init__(self, candidates: AllocationCandidates, arrange: Callable[[Array], None]) -> None:
        """Start with the order of Placement.

        :param arrange: puts the candidates of some HostStates in order
        """
        self._candidates = candidates
        self._arrange = arrange
        # The VM whose candidates are in order, and the one that weighers have seen them for.
        self._arranged_for: str | None = None
        self._noted_for: str | None = None

    def arrange(self, instance: str | None, positions: Array, place: ClaimedPlace | None) -> None:
        """Put the candidates of some HostStates in order; in shadow mode nothing is changed.

        :param instance: uuid of the VM to place next
        :param place: where it is claimed already
        """
        if conf.is_shadow(CONF):
            return
        candidates = self._candidates
        if candidates.differ and self._arranged_for != instance:
            self._arranged_for = instance
            self._arrange(positions)
        if place is not None and candidates.offers(place):
            candidates.put_first(place.position, place.candidate)

    def note(self, instance: str | None, positions: Array, place: ClaimedPlace | None) -> None:
        """Note which candidate is first on each host, after the last filter.

        Filters behind those of hpc_sched may have removed some. Parameters as of :meth:`arrange`.
        """
        if self._noted_for == instance:
            return
        self._noted_for = instance
        if self._candidates.differ and self._arranged_for == instance:
            self._candidates.note_first(positions)
        self.arrange(instance, positions, place)


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
