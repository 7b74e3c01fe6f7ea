"""The allocation candidates of hosts, and which of them the next VM claims."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from nova.conf import CONF
from nova.scheduler import host_manager

from hpc_sched import conf
from hpc_sched.core.arrays import Array
from hpc_sched.core.room.providers import Amounts
from hpc_sched.nova_glue.io.allocations import Allocations
from hpc_sched.nova_glue.read.room.providers.offered_candidates import (
    Candidate,
    OfferedCandidates,
    amounts_of,
)


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
    room for it; its filters remove candidates from VM to VM.
    """

    def __init__(self, states: Sequence[host_manager.HostState]) -> None:
        self._states = states
        self.offered = OfferedCandidates(states)
        self._orders: dict[int, list[Candidate]] = {}  # position to the claims to come
        # Position to what the next VM claims there. Nova's filters change the lists before the
        # claim is seen.
        self._next = {i: state.allocation_candidates[:1] for i, state in enumerate(states)}

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
        if not conf.is_shadow(CONF):
            self.offered.add(i, order)

    def claimed(self, i: int) -> tuple[Amounts, bool]:
        """Return what a VM has just claimed on a host, and whether that was planned."""
        claims, order = self._next[i], self._orders.get(i)
        if order and claims and order[0] is claims[0]:
            del order[0]
            return amounts_of(claims[0]), True
        self._orders.pop(i, None)
        return (amounts_of(claims[0]) if claims else {}), not self.offered.differ

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
        if candidates.offered.differ and self._arranged_for != instance:
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
        if self._candidates.offered.differ and self._arranged_for == instance:
            self._candidates.note_first(positions)
        self.arrange(instance, positions, place)
