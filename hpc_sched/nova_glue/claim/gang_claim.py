"""The allocations that hpc_sched holds for the instances of one request, ahead of Nova's claims."""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from oslo_log import log as logging

from hpc_sched.nova_glue.io import allocations, circuit_breaker
from hpc_sched.nova_glue.io.allocations import Allocations, Answer, Consumer, Owner, Written

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


@dataclass
class GangClaim:
    """The claims of one request, in one transaction of Placement.

    Nova later claims VM by VM, finds the same allocations and leaves them alone. If it claims
    another host or candidate for an instance, it adds those allocations to ours: :meth:`settle`
    takes ours away again. What Nova never claims is removed by :meth:`release`. Allocations are
    changed only with the generation with which they were read or written, and only if they
    are, or contain, what was claimed here.

    Used by the thread that serves the request and by the one that follows it: each method that
    writes holds the lock.
    """

    owner: Owner
    # Sum of the weighers' multipliers that a claimed host must exceed.
    multiplier: float
    # Instances that Nova has not claimed yet.
    places: dict[str, ClaimedPlace] = field(default_factory=dict)
    # Transactions without an answer, which may still be made.
    unsure: list[Mapping[str, ClaimedPlace]] = field(default_factory=list)
    transactions: int = 0  # that were sent
    is_complete: bool = False  # whether no more transactions will be sent
    lock: threading.RLock = field(default_factory=threading.RLock)
    _generation: int | None = None  # of each consumer in places
    _settled: set[str] = field(default_factory=set)  # instances that Nova has claimed
    # Changes that Placement did not answer: instance, what was claimed, what it shall have.
    _repairs: list[tuple[str, ClaimedPlace, Allocations]] = field(default_factory=list)

    @property
    def is_held(self) -> bool:
        """True if Nova has claims of this request still to find."""
        return bool(self.places)

    def has(self, uuid: str) -> bool:
        """True if an instance is claimed here, or has been claimed by Nova since."""
        return uuid in self.places or uuid in self._settled

    @property
    def is_clean(self) -> bool:
        """True if nothing is left to be removed, now or when a late transaction is made.

        That cannot be made once Nova has claimed for its instances: their generations have changed.
        """
        late = any(attempt.keys() - self._settled for attempt in self.unsure)
        return not (self.places or self._repairs or late)

    def claim(self, places: Mapping[str, ClaimedPlace]) -> Written:
        """Claim places in one transaction, instead of those held; never raises.

        Held claims stay as they are unless the answer is DONE. The same instances each time.
        """
        with self.lock:
            written = self._write(places)
            for retry in range(CONFLICT_RETRIES):
                if written.answer is not Answer.CONFLICT or circuit_breaker.remaining() <= 0:
                    break
                time.sleep(min(FIRST_PAUSE * 2**retry, LONGEST_PAUSE))
                written = self._write(places)
            if written.answer in (Answer.UNKNOWN, Answer.CONSUMER_CHANGED):
                return self._read_back(places, written)
            if written.answer is Answer.DONE:
                self._generation = (self._generation or 0) + 1
                self.places = dict(places)
            return written

    def settle(self, uuid: str, claimed: Allocations) -> None:
        """Note what Nova has claimed for an instance; remove what it does not use.

        :param claimed: the allocations of the candidate that Nova has chosen
        """
        with self.lock:
            if uuid in self._settled:
                return
            place = self.places.pop(uuid, None)
            attempts = [place] if place is not None else []
            attempts += [attempt[uuid] for attempt in self.unsure if uuid in attempt]
            self._settled.add(uuid)
            for attempt in attempts:
                if not same(attempt.allocations, claimed):
                    LOG.info("Instance %s was not placed where it was claimed", uuid)
                    self._repair(uuid, attempt, claimed)

    def release(self, uuids: set[str] | None = None) -> None:
        """Remove the claims of some instances, by default all that Nova has not claimed."""
        with self.lock:
            wanted = self.places.keys() if uuids is None else self.places.keys() & uuids
            released = {uuid: self.places.pop(uuid) for uuid in sorted(wanted)}
            if not released:
                return
            gone = [Consumer(uuid, {}, self._generation) for uuid in released]
            written = allocations.write(self.owner, gone)
            if written.answer is not Answer.DONE:
                for uuid, place in released.items():
                    self._repair(uuid, place, {})
            LOG.info("Released the claims of %d instances that were not placed", len(released))

    def clean(self) -> None:
        """Release everything, late transactions included, and repeat what was not answered."""
        with self.lock:
            self.release()
            repairs, self._repairs = self._repairs, []
            for uuid, place, target in repairs:
                self._repair(uuid, place, target)
            for attempt in self.unsure:
                for uuid in attempt.keys() - self._settled:
                    self._replace(uuid, attempt[uuid], {})

    def give_up(self) -> None:
        """Log what could not be released."""
        for uuid, _, _ in self._repairs:
            LOG.warning("The claim of instance %s may be left in Placement", uuid)

    def _write(self, places: Mapping[str, ClaimedPlace]) -> Written:
        self.transactions += 1
        return allocations.write(
            self.owner,
            [Consumer(uuid, place.allocations, self._generation) for uuid, place in places.items()],
        )

    def _read_back(self, places: Mapping[str, ClaimedPlace], written: Written) -> Written:
        """Return whether a transaction, or an earlier one, was made: all of it or nothing."""
        if written.answer is Answer.UNKNOWN:
            self.unsure.append(places)
        try:
            found = allocations.read(next(iter(places)))
        except Exception as error:
            return Written(Answer.UNKNOWN, f"{written.detail}; {error}")
        for attempt in reversed([*self.unsure, places]):
            if found.allocations and same(attempt[found.uuid].allocations, found.allocations):
                self.places, self._generation = dict(attempt), found.generation
                self.unsure = [other for other in self.unsure if other is not attempt]
                return Written(Answer.DONE)
        return written

    def _repair(self, uuid: str, claimed: ClaimedPlace, target: Allocations) -> None:
        """Replace an instance's allocations; noted to be done again if that is not answered."""
        if not self._replace(uuid, claimed, target):
            self._repairs.append((uuid, claimed, target))

    def _replace(self, uuid: str, claimed: ClaimedPlace, target: Allocations) -> bool:
        """Replace an instance's allocations by others, if they still have what was claimed.

        Without a target they are removed, and only if they are exactly what was claimed.

        :returns: whether Placement has answered
        """
        is_ours = contains if target else same
        for _ in range(CHANGES):
            try:
                found = allocations.read(uuid)
            except Exception as error:
                LOG.debug("The allocations of instance %s cannot be read: %s", uuid, error)
                return False
            if not is_ours(found.allocations, claimed.allocations):
                return True
            if same(found.allocations, target):
                return True
            written = allocations.write(self.owner, [Consumer(uuid, target, found.generation)])
            if written.answer is Answer.DONE:
                return True
        return False


def contains(held: Allocations, claimed: Allocations) -> bool:
    """True if allocations have all providers and amounts of others."""
    return all(
        provider in held and dict(held[provider]["resources"]) == dict(found["resources"])
        for provider, found in claimed.items()
    )


def same(first: Allocations, second: Allocations) -> bool:
    """True if allocations are equal by provider, resource class and amount."""
    return first.keys() == second.keys() and contains(first, second)
