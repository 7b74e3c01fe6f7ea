"""The allocations that hpc_sched holds for the instances of one request, ahead of Nova's claims."""

import threading
from collections.abc import Callable, Mapping

from oslo_log import log as logging

from hpc_sched.nova_glue import request_metrics
from hpc_sched.nova_glue.claim.transaction import repair
from hpc_sched.nova_glue.claim.transaction.ledger import Ledger, Transaction, same
from hpc_sched.nova_glue.io import allocations, request_deadline
from hpc_sched.nova_glue.io.allocations import Allocations, Answer, Consumer, Owner, Written
from hpc_sched.nova_glue.read.room.allocation_candidates import ClaimedPlace
from hpc_sched.topology import plurals

LOG = logging.getLogger(__name__)

# The same transaction again after others changed a provider at the same moment.
CONFLICT_RETRIES = 20
# The same again as long as it is not known whether the first one is made, and the longest pause
# between two of them, in seconds: together some ten seconds.
UNKNOWN_RETRIES, UNKNOWN_PAUSE = 20, 0.8

# Answers to a claim that another copy of it may have been made before: consumers have changed.
_UNCLEAR = (Answer.UNKNOWN, Answer.CONSUMER_CHANGED)


class GangClaim:
    """The claims of one request, in one transaction of Placement.

    Nova later claims VM by VM, finds the same allocations and leaves them alone, but for the
    consumer's generation, which it raises. If it claims another host or candidate for an instance,
    it adds those allocations to the claimed ones: :meth:`note_placed` takes the latter away again.
    What Nova never claims is removed by :meth:`release`. Allocations are removed only while the
    consumer has the generation that the claim gave it, so nothing that Nova has found is, but for
    what it claims while Placement works on the removal; and changed only if they are what was
    claimed here and what Nova has added.

    If the answer to a transaction is lost, and its first consumer is unchanged, the same one is
    sent again: then either the second one is made, so that the first one, if it comes later, finds
    consumers of other generations and is refused as a whole; or it is refused, and what the
    consumers have is read. No consumer is ever sent generation 0, which is one that another
    transaction is about to write.

    Used by the thread that serves the request and by the one that follows it: each method that
    writes holds the lock.
    """

    def __init__(self, owner: Owner) -> None:
        """Hold nothing at first."""
        self.lock = threading.RLock()
        self.ledger = Ledger()
        self.transactions = 0  # claims that were sent
        self._owner = owner
        # Instances that Nova has claimed, to the place if that is where they were claimed here.
        self._placed: dict[str, ClaimedPlace | None] = {}
        # Those of them whose claims Nova has released again.
        self._given_back: set[str] = set()
        self._repairs: list[repair.Repair] = []

    @property
    def places(self) -> dict[str, ClaimedPlace]:
        """The places of the instances that Nova has not claimed yet. A copy."""
        return {uuid: holding.place for uuid, holding in list(self.ledger.held.items())}

    @property
    def is_clean(self) -> bool:
        """True if nothing is left to be removed, now or when a late transaction is made."""
        return not (self.ledger.held or self._repairs or self.ledger.late)

    def place_of(self, uuid: str) -> ClaimedPlace | None:
        """Return where an instance is claimed, and Nova has claimed it since if it has; or None."""
        holding = self.ledger.held.get(uuid)
        return holding.place if holding is not None else self._placed.get(uuid)

    def claim(self, places: Mapping[str, ClaimedPlace]) -> Written:
        """Claim places in one transaction, instead of those held; never raises.

        What other instances hold stays, and so does what these hold unless the answer is DONE or
        CONSUMER_CHANGED. One call; one for each instance, too, after an answer was lost.
        """
        with self.lock:
            conflicts = unknown = 0
            while True:
                sent = self.ledger.claim(places)
                written = self._send(sent)
                answer = written.answer
                if answer in _UNCLEAR and self._read_back(sent, written):
                    if self.ledger.holds(places):
                        return Written(Answer.DONE)
                    if self.ledger.others & places.keys():
                        return written
                is_known = answer is Answer.FAILED and not self.ledger.late
                if answer in (Answer.DONE, Answer.NO_ROOM) or is_known:
                    return written
                if answer is Answer.CONFLICT:
                    conflicts += 1
                else:
                    unknown += 1
                is_late = request_deadline.remaining_in_all() <= 0
                if is_late or conflicts > CONFLICT_RETRIES or unknown > UNKNOWN_RETRIES:
                    return written
                if answer is Answer.CONFLICT:
                    repair.pause(conflicts - 1)
                else:
                    repair.pause(unknown, UNKNOWN_PAUSE)

    def fence(self) -> None:
        """Keep transactions without an answer from being made while Nova claims VM by VM.

        If one were made between Nova's read of an instance's allocations and its claim, Nova would
        give up the whole request. Instances of it are claimed one by one until none can be made.
        """
        with self.lock:
            unfenced = self.ledger.unfenced
            for uuid in {uuid: None for one in unfenced(self._of_nova) for uuid in one.places}:
                one = next((one for one in unfenced(self._of_nova) if uuid in one.places), None)
                if one is None:
                    continue
                written = self.claim({uuid: self.places.get(uuid, one.places[uuid])})
                if written.answer not in (Answer.DONE, Answer.NO_ROOM):
                    return

    def note_placed(self, uuid: str, claimed: Allocations) -> None:
        """Note what Nova has claimed for an instance; remove what it does not use.

        :param claimed: the allocations of the candidate that Nova has chosen
        """
        with self.lock:
            if uuid in self._placed:
                return
            holding = self.ledger.held.pop(uuid, None)
            is_kept = holding is not None and same(holding.place.allocations, claimed)
            self._placed[uuid] = holding.place if holding is not None and is_kept else None
            for attempt in (holding, *self.ledger.claims_of(uuid)):
                if attempt is not None and not same(attempt.place.allocations, claimed):
                    LOG.info("Instance %s was not placed where it was claimed", uuid)
                    self._repair([repair.Repair(uuid, attempt, claimed)], is_deferred=False)

    def forget_placed(self) -> None:
        """Forget what Nova has claimed: it has released that after NoValidHost."""
        with self.lock:
            self._placed = dict.fromkeys(self._placed)
            self._given_back.update(self._placed)

    def release(self) -> None:
        """Remove the claims of all instances that Nova has not claimed.

        If the answer is lost they count as held: a claim or a fence then shows what they have.
        """
        with self.lock:
            held = self.ledger.held
            gone = sorted(held)
            if not gone:
                return
            answer = self._send(self.ledger.release(gone)).answer
            if answer not in (Answer.DONE, Answer.UNKNOWN):
                for uuid in gone:
                    if not self._release_one(uuid):
                        break
            if released := sum(uuid not in held for uuid in gone):
                what = plurals.text(released, "instance")
                LOG.info("Released the claims of %s that Nova has not placed", what)

    def clean(
        self, is_deleted: Callable[[str], bool | None], *, is_last: bool = False
    ) -> list[str]:
        """Release everything, late transactions included, and repeat what was not answered.

        The request is over: Nova claims none of its instances any more.

        :param is_deleted: says whether an instance that Nova has claimed was deleted since; None
            if that is not known
        :param is_last: whether no late transaction can be made any more
        :returns: the instances that may hold what is of no use, as far as is known; in order
        """
        with self.lock:
            self.release()
            repairs, self._repairs = self._repairs, []
            self._repair(repairs, is_deferred=True)
            late = self.ledger.late
            is_answered = not self.ledger.held and not self._repairs
            for one in late:
                # After one that is not answered the others wait for the next look.
                is_answered = is_answered and self._look_at(one, is_deleted, is_last=is_last)
            unread = [one for one in self.ledger.late if one not in late] if is_answered else late
            useless = {uuid for one in unread for uuid in one.places}
            return sorted({*self.ledger.held, *(one.uuid for one in self._repairs), *useless})

    def _look_at(
        self, late: Transaction, is_deleted: Callable[[str], bool | None], *, is_last: bool
    ) -> bool:
        """Remove what a late claim has made; return whether Placement has answered.

        Two claims of one consumer that begin at the same moment can leave usage behind of which
        Placement does not know the consumer any more, and lists no allocation. The next claim
        replaces it.
        """
        absent, made = dict[str, ClaimedPlace](), list[Consumer]()
        is_made, is_known = False, True
        for uuid, place in late.places.items():
            found = repair.read(uuid)
            if found is None:
                return False
            is_novas = uuid in self._of_nova
            if late.leaves(found):
                is_made = True
                is_gone = not is_novas or is_deleted(uuid)
                if is_gone:
                    made.append(found)
                is_known = is_known and is_gone is not None
            elif found.generation is not None and not (is_made or is_last):
                # It is not made, and cannot be: but for a moment in which Placement takes a
                # consumer that is made meanwhile for its own. The last look is at all.
                return True
            elif found.generation is None and not is_novas:
                absent[uuid] = place
        self.ledger.read(made)
        if absent and (is_made or is_last):
            self._adopt(absent)
        self.release()
        return is_known and not self.ledger.held

    def _adopt(self, places: Mapping[str, ClaimedPlace]) -> None:
        """Claim places anew, for usage that is left behind there to get a consumer again."""
        answer = self._send(self.ledger.claim(places)).answer
        if answer is Answer.NO_ROOM and len(places) > 1:
            # What is left behind has room.
            for uuid, place in places.items():
                self._send(self.ledger.claim({uuid: place}))

    @property
    def _of_nova(self) -> set[str]:
        """Instances that Nova has claimed and not released again."""
        return self._placed.keys() - self._given_back

    def _send(self, sent: Transaction) -> Written:
        written = allocations.write(self._owner, sent.consumers)
        if not sent.is_release:
            self.transactions += 1
            request_metrics.current.sent(written.answer.name.lower())
        is_unclear = written.answer in _UNCLEAR and not sent.is_release
        if written.answer is not Answer.UNKNOWN and not is_unclear:
            self.ledger.answered(sent, is_made=written.answer is Answer.DONE)
        return written

    def _read_back(self, sent: Transaction, written: Written) -> bool:
        """Read what a claim and those without an answer have made; return whether that is known.

        After an unknown answer it is not if the first consumer is unchanged, as yet.
        """
        found: list[Consumer] = []
        # What Nova has claimed by now may look like a late claim of the same place.
        late = [
            uuid for one in self.ledger.late for uuid in one.places if uuid not in self._of_nova
        ]
        for uuid in dict.fromkeys([*sent.places, *late]):
            consumer = repair.read(uuid) if request_deadline.remaining_in_all() > 0 else None
            if consumer is None:
                return False
            is_unchanged = not found and consumer.generation == sent.generations[uuid]
            if written.answer is Answer.UNKNOWN and is_unchanged:
                return False
            found.append(consumer)
        self.ledger.read(found)
        if written.answer is not Answer.UNKNOWN:
            self.ledger.answered(sent, is_made=False)
        return True

    def _release_one(self, uuid: str) -> bool:
        """Release an instance if it has what it was given; return whether that is known."""
        for change in range(repair.CHANGES):
            if change:
                repair.pause(change)
            found = repair.read(uuid)
            if found is None:
                return False
            self.ledger.read([found])
            if uuid not in self.ledger.held:
                return True
            if self._send(self.ledger.release([uuid])).answer is Answer.UNKNOWN:
                return False
            if uuid not in self.ledger.held:
                return True
        return False

    def _repair(self, repairs: list[repair.Repair], *, is_deferred: bool) -> None:
        """Make some changes; those from the first one on that is not answered are kept for later.

        Placement that does not answer costs one timeout so, not one for each instance.
        """
        for i, one in enumerate(repairs):
            if not repair.make(self._owner, one, is_deferred=is_deferred):
                self._repairs += repairs[i:]
                return
