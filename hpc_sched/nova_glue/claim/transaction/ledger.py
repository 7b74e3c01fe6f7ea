"""The ledger of a request: what its instances hold in Placement, and what may still be made.

Each transaction is written here before it is sent, and leaves when every copy of it is answered.
The answer to one may be lost; then Placement has made it already, makes it later, or never does. To
find it made proves nothing of another copy, so it stays until no copy can come any more. Placement
makes a transaction as a whole, and only if each of its consumers has the generation that it names.
So it cannot be made while one of them has another: it is *fenced*. No I/O.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field

from hpc_sched.nova_glue.io.allocations import Allocations, Consumer
from hpc_sched.nova_glue.read.room.allocation_candidates import ClaimedPlace


@dataclass(frozen=True, slots=True)
class Holding:
    """What an instance holds, and the generation of its consumer."""

    place: ClaimedPlace
    generation: int


@dataclass(slots=True, eq=False)
class Transaction:
    """A claim of places for some instances, or the release of the places that they hold."""

    places: Mapping[str, ClaimedPlace]
    # The consumers must have these; None: Placement must not know the consumer.
    generations: Mapping[str, int | None]
    is_release: bool = False
    copies: int = 0  # that were sent and are not answered

    @property
    def consumers(self) -> list[Consumer]:
        """The body of the transaction."""
        return [
            Consumer(uuid, {}, self.generations[uuid])
            if self.is_release
            else Consumer(uuid, place.allocations, self.generations[uuid], is_claim=True)
            for uuid, place in self.places.items()
        ]

    def generation_after(self, uuid: str) -> int:
        """Return the generation that a claim gives a consumer."""
        return (self.generations[uuid] or 0) + 1

    def leaves(self, found: Consumer) -> bool:
        """True if this claim leaves a consumer in the state that was read."""
        return self._is_next(found) and same(self.places[found.uuid].allocations, found.allocations)

    def is_refuted_by(self, found: Consumer) -> bool:
        """True if a consumer proves that another transaction was made in place of this claim."""
        return self._is_next(found) and not self.leaves(found)

    def _is_next(self, found: Consumer) -> bool:
        """True if a consumer has the generation that this claim gives it."""
        is_claimed = not self.is_release and found.uuid in self.places
        return is_claimed and found.generation == self.generation_after(found.uuid)

    def repeats(self, other: Transaction) -> bool:
        """True if two transactions are the same to Placement."""
        return (
            self.is_release == other.is_release
            and self.generations == other.generations
            and all(
                same(place.allocations, other.places[uuid].allocations)
                for uuid, place in self.places.items()
            )
        )


@dataclass(slots=True)
class Ledger:
    """The transactions of one request. Used with the lock of its :class:`GangClaim` held."""

    # What instances hold that Nova has not claimed yet.
    held: dict[str, Holding] = field(default_factory=dict)
    # Transactions with copies that are not answered, oldest first.
    open: list[Transaction] = field(default_factory=list)
    # Instances that had allocations which are not the request's when they were read last.
    others: set[str] = field(default_factory=set)

    def claim(self, places: Mapping[str, ClaimedPlace]) -> Transaction:
        """Write down a claim that is sent next, instead of what its instances hold."""
        generations = {
            uuid: self.held[uuid].generation if uuid in self.held else None for uuid in places
        }
        return self._write(Transaction(places, generations))

    def release(self, uuids: Iterable[str]) -> Transaction:
        """Write down the release of held instances that is sent next."""
        gone = {uuid: self.held[uuid] for uuid in uuids}
        return self._write(
            Transaction(
                {uuid: holding.place for uuid, holding in gone.items()},
                {uuid: holding.generation for uuid, holding in gone.items()},
                is_release=True,
            )
        )

    def answered(self, sent: Transaction, *, is_made: bool) -> None:
        """Note that Placement has answered a copy."""
        sent.copies -= 1
        if not sent.copies:
            self.open = [one for one in self.open if one is not sent]
        if not is_made:
            return
        for uuid, place in sent.places.items():
            if sent.is_release:
                self.held.pop(uuid, None)
            else:
                self.held[uuid] = Holding(place, sent.generation_after(uuid))

    def read(self, found: Collection[Consumer]) -> None:
        """Note what consumers have."""
        attempts = [
            one
            for one in reversed(self.open)
            if not any(one.is_refuted_by(consumer) for consumer in found)
        ]
        for consumer in found:
            self.others.discard(consumer.uuid)
            holding = self.held.pop(consumer.uuid, None)
            if holding is not None and is_held(holding, consumer):
                self.held[consumer.uuid] = holding
            elif consumer.generation is not None:
                maker = next((one for one in attempts if one.leaves(consumer)), None)
                if maker is None:
                    self.others.add(consumer.uuid)
                else:
                    place = maker.places[consumer.uuid]
                    self.held[consumer.uuid] = Holding(place, consumer.generation)

    def holds(self, places: Mapping[str, ClaimedPlace]) -> bool:
        """True if all these instances hold these places."""
        return all(
            uuid in self.held and same(self.held[uuid].place.allocations, place.allocations)
            for uuid, place in places.items()
        )

    def unfenced(self, of_nova: Collection[str]) -> list[Transaction]:
        """Return the transactions that nothing keeps from being made, oldest first.

        :param of_nova: instances that Nova has claimed, so that their generations have changed
        """
        return [
            one
            for one in self.open
            if all(
                uuid not in of_nova
                and (self.held[uuid].generation if uuid in self.held else None) == generation
                for uuid, generation in one.generations.items()
            )
        ]

    def claims_of(self, uuid: str) -> list[Holding]:
        """Return what an instance would hold by claims that may have been made."""
        return [
            Holding(one.places[uuid], one.generation_after(uuid))
            for one in self.late
            if uuid in one.places
        ]

    @property
    def late(self) -> list[Transaction]:
        """The claims that may still be made."""
        return [one for one in self.open if not one.is_release]

    def _write(self, sent: Transaction) -> Transaction:
        """Return the transaction with one more copy: the one that is open if it is the same."""
        for one in self.open:
            if one.generations.keys() == sent.generations.keys() and one.repeats(sent):
                one.copies += 1
                return one
        sent.copies = 1
        self.open.append(sent)
        return sent


def is_held(holding: Holding, found: Consumer) -> bool:
    """True if a consumer still has what it was given, and nothing else has changed it."""
    return found.generation == holding.generation and same(
        holding.place.allocations, found.allocations
    )


def contains(held: Allocations, claimed: Allocations) -> bool:
    """True if allocations have all providers and amounts of others."""
    return all(
        provider in held and dict(held[provider]["resources"]) == dict(found["resources"])
        for provider, found in claimed.items()
    )


def same(first: Allocations, second: Allocations) -> bool:
    """True if allocations are equal by provider, resource class and amount."""
    return first.keys() == second.keys() and contains(first, second)
