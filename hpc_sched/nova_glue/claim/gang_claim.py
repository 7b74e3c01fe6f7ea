"""The allocations that hpc_sched holds for the instances of one request, ahead of Nova's claims."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from oslo_log import log as logging

from hpc_sched import clock
from hpc_sched.metrics import catalogue, counts
from hpc_sched.nova_glue.io import allocations, request_deadline
from hpc_sched.nova_glue.io.allocations import Allocations, Answer, Consumer, Owner, Written
from hpc_sched.topology import plurals

LOG = logging.getLogger(__name__)

# The same transaction again after others changed a provider at the same moment; the pause grows
# up to the longest one, in seconds.
CONFLICT_RETRIES = 20
FIRST_PAUSE, LONGEST_PAUSE = 0.005, 0.1
# Attempts to change one instance's allocations that others change at the same moment.
CHANGES = 4


@dataclass(frozen=True, slots=True)
class ClaimedPlace:
    """Where an instance is claimed."""

    position: int  # of the HostState
    candidate: Mapping[str, Any]  # of its allocation candidates

    @property
    def allocations(self) -> Allocations:
        """What Placement holds for the instance."""
        found: Allocations = self.candidate["allocations"]
        return found


@dataclass(frozen=True, slots=True, eq=False)
class _Transaction:
    """What a transaction claims, and the generation of its consumers once it is made."""

    places: Mapping[str, ClaimedPlace]
    generation: int


@dataclass(frozen=True, slots=True)
class _Repair:
    """A change of one instance's allocations that Placement has not answered yet."""

    uuid: str
    claimed: ClaimedPlace
    generation: int  # of the consumer when that was claimed
    target: Allocations  # what Nova has claimed; empty: nothing


@dataclass
class GangClaim:
    """The claims of one request, in one transaction of Placement.

    Nova later claims VM by VM, finds the same allocations and leaves them alone, but for the
    consumer's generation, which it raises. If it claims another host or candidate for an
    instance, it adds those allocations to ours: :meth:`settle` takes ours away again. What Nova
    never claims is removed by :meth:`release`. Allocations are removed only while the consumer
    has the generation that the claim gave it, so nothing that Nova has found is; and changed only
    if they are what was claimed here and what Nova has added.

    Used by the thread that serves the request and by the one that follows it: each method that
    writes holds the lock.
    """

    owner: Owner
    # Sum of the weighers' multipliers that a claimed host must exceed.
    multiplier: float
    # Instances that Nova has not claimed yet.
    places: dict[str, ClaimedPlace] = field(default_factory=dict)
    # Transactions without an answer, which may still be made.
    unsure: list[_Transaction] = field(default_factory=list)
    transactions: int = 0  # that were sent
    is_complete: bool = False  # whether no more transactions will be sent
    lock: threading.RLock = field(default_factory=threading.RLock)
    _generation: int | None = None  # of each consumer in places
    # Instances that Nova has claimed, to the place if that is where they were claimed here.
    _settled: dict[str, ClaimedPlace | None] = field(default_factory=dict)
    # Those of them whose claims Nova has released again.
    _given_back: set[str] = field(default_factory=set)
    _repairs: list[_Repair] = field(default_factory=list)

    @property
    def is_held(self) -> bool:
        """True if Nova has claims of this request still to find."""
        return bool(self.places)

    def place_of(self, uuid: str) -> ClaimedPlace | None:
        """Return where an instance is claimed, and Nova has claimed it since if it has; or None."""
        return self.places.get(uuid) or self._settled.get(uuid)

    def candidates(self) -> list[Mapping[str, Any]]:
        """Return the allocation candidates of the instances that Nova has not claimed yet."""
        return [place.candidate for place in list(self.places.values())]

    @property
    def is_clean(self) -> bool:
        """True if nothing is left to be removed, now or when a late transaction is made."""
        late = any(self._may_come(attempt) for attempt in self.unsure)
        return not (self.places or self._repairs or late)

    def _may_come(self, attempt: _Transaction) -> list[str]:
        """Return the instances for which a transaction without an answer may still be made.

        Not those that Nova has claimed, whose generations have changed; but Placement forgets a
        consumer whose claim Nova releases.
        """
        return sorted(attempt.places.keys() - (self._settled.keys() - self._given_back))

    def claim(self, places: Mapping[str, ClaimedPlace]) -> Written:
        """Claim places in one transaction, instead of those held; never raises.

        Held claims stay as they are unless the answer is DONE. The instances are those held, if
        any is.
        """
        with self.lock:
            if self._repairs:
                return Written(Answer.UNKNOWN, "an earlier claim may not be released yet")
            written = self._write(places)
            for retry in range(CONFLICT_RETRIES):
                if written.answer is not Answer.CONFLICT or request_deadline.remaining() <= 0:
                    break
                _pause(retry)
                written = self._write(places)
            if written.answer in (Answer.UNKNOWN, Answer.CONSUMER_CHANGED):
                return self._read_back(places, written)
            if written.answer is Answer.DONE:
                self._hold(_Transaction(places, self._next_generation))
            return written

    def settle(self, uuid: str, claimed: Allocations) -> None:
        """Note what Nova has claimed for an instance; remove what it does not use.

        :param claimed: the allocations of the candidate that Nova has chosen
        """
        with self.lock:
            if uuid in self._settled:
                return
            place = self.places.pop(uuid, None)
            is_kept = place is not None and same(place.allocations, claimed)
            self._settled[uuid] = place if is_kept else None
            attempts = [place] if place is not None else []
            attempts += [one.places[uuid] for one in self.unsure if uuid in one.places]
            # Nova has added to what could not be removed.
            attempts += [one.claimed for one in self._repairs if one.uuid == uuid]
            self._repairs = [one for one in self._repairs if one.uuid != uuid]
            for attempt in attempts:
                if not same(attempt.allocations, claimed):
                    LOG.info("Instance %s was not placed where it was claimed", uuid)
                    # Its generation does not matter: Nova has changed it.
                    self._repair([_Repair(uuid, attempt, 0, claimed)])

    def forget_settled(self) -> None:
        """Forget what Nova has claimed: it has released that after NoValidHost."""
        with self.lock:
            self._settled = dict.fromkeys(self._settled)
            self._given_back.update(self._settled)

    def release(self, uuids: set[str] | None = None) -> None:
        """Remove the claims of some instances, by default all that Nova has not claimed."""
        with self.lock:
            wanted = self.places.keys() if uuids is None else self.places.keys() & uuids
            released = {uuid: self.places.pop(uuid) for uuid in sorted(wanted)}
            generation = self._generation
            if not released or generation is None:
                return
            gone = [Consumer(uuid, {}, generation) for uuid in released]
            written = allocations.write(self.owner, gone)
            if not self.places:
                # Placement forgets a consumer without allocations.
                self._generation = None
            if written.answer is not Answer.DONE:
                left = [_Repair(uuid, place, generation, {}) for uuid, place in released.items()]
                if written.answer is Answer.UNKNOWN:
                    self._repairs += left
                else:
                    self._repair(left)
            what = plurals.text(len(released), "instance")
            LOG.info("Released the claims of %s that Nova has not placed", what)

    def clean(self) -> None:
        """Release everything, late transactions included, and repeat what was not answered."""
        with self.lock:
            self.release()
            repairs, self._repairs = self._repairs, []
            self._repair(repairs)
            if self._repairs:
                return
            for attempt in self.unsure:
                for uuid in self._may_come(attempt):
                    late = _Repair(uuid, attempt.places[uuid], attempt.generation, {})
                    if not self._replace(late):
                        return

    def give_up(self) -> None:
        """Log what could not be released."""
        for repair in self._repairs:
            LOG.warning("The claim of instance %s may be left in Placement", repair.uuid)

    @property
    def _next_generation(self) -> int:
        return (self._generation or 0) + 1

    def _hold(self, made: _Transaction) -> None:
        self.places, self._generation = dict(made.places), made.generation

    def _write(self, places: Mapping[str, ClaimedPlace]) -> Written:
        self.transactions += 1
        written = allocations.write(
            self.owner,
            [Consumer(uuid, place.allocations, self._generation) for uuid, place in places.items()],
        )
        counts.count(catalogue.TRANSACTIONS, answer=written.answer.name.lower())
        return written

    def _read_back(self, places: Mapping[str, ClaimedPlace], written: Written) -> Written:
        """Return whether a transaction without an answer, or an earlier one, was made after all."""
        attempt = _Transaction(places, self._next_generation)
        if written.answer is Answer.UNKNOWN:
            self.unsure.append(attempt)
        try:
            found = allocations.read(next(iter(places)))
        except Exception as error:
            return Written(Answer.UNKNOWN, f"{written.detail}; {error}")
        for one in dict.fromkeys([attempt, *reversed(self.unsure)]):
            # Claims that differ elsewhere may agree on this instance, but not on the generation.
            if found.generation == one.generation and same(
                one.places[found.uuid].allocations, found.allocations
            ):
                self._hold(one)
                self.unsure = [other for other in self.unsure if other is not one]
                return Written(Answer.DONE)
        return written

    def _repair(self, repairs: list[_Repair]) -> None:
        """Make some changes; those from the first one on that is not answered are kept for later.

        Placement that does not answer costs one timeout so, not one for each instance.
        """
        for i, repair in enumerate(repairs):
            if not self._replace(repair):
                self._repairs += repairs[i:]
                return

    def _replace(self, repair: _Repair) -> bool:
        """Replace an instance's allocations, if they are still what was claimed.

        :returns: whether Placement has answered
        """
        target = repair.target
        # As Nova adds them up.
        both = {**target, **repair.claimed.allocations}
        for change in range(CHANGES):
            if change:
                _pause(change)
            try:
                found = allocations.read(repair.uuid)
            except Exception as error:
                LOG.debug("The allocations of instance %s cannot be read: %s", repair.uuid, error)
                return False
            is_ours = same(found.allocations, both)
            if not target:
                # Nova raises the generation if it finds the claim, and relies on it then.
                is_ours = is_ours and found.generation == repair.generation
            if not is_ours or same(found.allocations, target):
                return True
            written = allocations.write(
                self.owner, [Consumer(repair.uuid, target, found.generation)]
            )
            if written.answer is Answer.DONE:
                return True
        return False


def _pause(number: int) -> None:
    """Wait before a transaction is sent again; charged to the request."""
    with request_deadline.charged():
        clock.current.sleep(min(FIRST_PAUSE * 2**number, LONGEST_PAUSE))


def contains(held: Allocations, claimed: Allocations) -> bool:
    """True if allocations have all providers and amounts of others."""
    return all(
        provider in held and dict(held[provider]["resources"]) == dict(found["resources"])
        for provider, found in claimed.items()
    )


def same(first: Allocations, second: Allocations) -> bool:
    """True if allocations are equal by provider, resource class and amount."""
    return first.keys() == second.keys() and contains(first, second)
