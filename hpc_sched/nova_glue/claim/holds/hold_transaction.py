"""Reads and writes of all holds: a compare-and-swap of the whole set."""

from collections.abc import Collection, Sequence

from oslo_log import log as logging

from hpc_sched import clock, exceptions, masking
from hpc_sched.nova_glue.claim.holds import hold_provider
from hpc_sched.nova_glue.claim.holds.hold_numbers import amounts_of, consumer_of, hold_of
from hpc_sched.nova_glue.claim.transaction import repair
from hpc_sched.nova_glue.io import allocations, circuit_breaker, placement, request_deadline
from hpc_sched.nova_glue.io.allocations import Answer, Consumer, Owner, Written
from hpc_sched.nova_glue.io.hold import Hold, Holds

LOG = logging.getLogger(__name__)

# Neither is one of Keystone's: no tenant's quota counts what is held.
OWNER = Owner("hpc_sched", "hpc_sched")
# The same transaction again: while others make a consumer or change the provider at the same
# moment, and while no answer to it comes.
_ATTEMPTS = 8
# Answers that another consumer's record is being made, after which it is taken for one that a dead
# process of Placement has left. Of the turn alone: it belongs to no instance.
_PENDING = 5


def read() -> Holds:
    """Return all holds at one moment. One call to Placement.

    :raises exceptions.UnansweredError: if Placement does not answer within the request's deadline
    """
    try:
        _, found = circuit_breaker.ask_one(
            placement.PLACEMENT,
            lambda: hold_provider.call(
                "GET", f"/resource_providers/{hold_provider.UUID}/allocations"
            ),
            placement.MAX_READS,
        )
    except exceptions.UnansweredError:
        raise
    except Exception as error:
        raise exceptions.UnansweredError(masking.first_line(error)) from error
    consumers = dict(found.get("allocations", {}))
    turn = consumers.pop(hold_provider.TURN, {}).get("consumer_generation")
    now = clock.current.unix_time()
    held: dict[str, Hold] = {}
    generations: dict[str, int] = {}
    for uuid, one in consumers.items():
        instance = consumer_of(uuid)
        generations[instance] = one["consumer_generation"]
        hold = hold_of(uuid, one["resources"])
        # What cannot be read is removed as what has ended.
        if hold is not None and hold.until > now:
            held[instance] = hold
    return Holds(turn, held, generations)


def write(holds: Holds, replace: Sequence[Hold], remove: Collection[str]) -> Written:
    """Replace the holds of some instances and remove those of others; see :func:`store.write`."""
    if holds.turn is None:
        begun = _begin(replace)
        if isinstance(begun, Written):
            return begun
        holds = begun
    consumers = _consumers(holds, replace, remove)
    is_prepared = is_unclear = False
    written = Written(Answer.FAILED)
    for attempt in range(_ATTEMPTS):
        if attempt and not _pause(attempt):
            break
        written = allocations.write(OWNER, consumers)
        answer = written.answer
        if answer is Answer.NO_ROOM:
            # A resource class or an inventory of it is missing.
            problem = None if is_prepared else hold_provider.prepare(_classes(replace))
            if is_prepared or problem is not None:
                return Written(Answer.FAILED, problem or written.detail)
            is_prepared = True
        elif answer is Answer.CONSUMER_CHANGED and is_unclear:
            return _found(holds, replace, remove, written)
        elif answer in (Answer.DONE, Answer.CONSUMER_CHANGED, Answer.FAILED):
            is_known = answer is Answer.DONE or not is_unclear
            return written if is_known else Written(Answer.UNKNOWN, written.detail)
        is_unclear = is_unclear or answer is Answer.UNKNOWN
    return Written(Answer.UNKNOWN if is_unclear else Answer.CONSUMER_CHANGED, written.detail)


def _consumers(holds: Holds, replace: Sequence[Hold], remove: Collection[str]) -> list[Consumer]:
    """Return the body of a transaction; it removes what has ended, too."""
    generations = holds.generations
    given = {one.instance for one in replace}
    gone = sorted(({*remove, *holds.ended} & generations.keys()) - given)
    return [
        Consumer(hold_provider.TURN, hold_provider.TURN_ALLOCATIONS, holds.turn),
        *(
            Consumer(
                consumer_of(one.instance),
                {hold_provider.UUID: {"resources": amounts_of(one)}},
                generations.get(one.instance),
            )
            for one in replace
        ),
        *(Consumer(consumer_of(uuid), {}, generations[uuid]) for uuid in gone),
    ]


def _found(
    holds: Holds, replace: Sequence[Hold], remove: Collection[str], written: Written
) -> Written:
    """Return whether a transaction was made to which there was no answer, and one that it changed.

    Whichever it is: no copy of it can be made any more.
    """
    try:
        found = read()
    except exceptions.UnansweredError as error:
        return Written(Answer.UNKNOWN, str(error))
    is_made = (
        found.turn == (holds.turn or 0) + 1
        and all(found.held.get(one.instance) == one for one in replace)
        and found.generations.keys().isdisjoint({*remove} - {one.instance for one in replace})
    )
    return Written(Answer.DONE) if is_made else written


def _begin(replace: Sequence[Hold]) -> Holds | Written:
    """Make the turn before it is used; return the holds by then, or why it is not made.

    Of two that make a consumer at the same moment Placement may answer to both that it is done. So
    a turn that is made here proves nothing; that nothing is held after it was made does.
    """
    problem = hold_provider.prepare({hold_provider.TURN_CLASS, *_classes(replace)})
    if problem is not None:
        return Written(Answer.FAILED, problem)
    written = Written(Answer.FAILED)
    for attempt in range(_ATTEMPTS):
        if attempt and not _pause(attempt):
            break
        generation = 0 if attempt >= _PENDING else None
        turn = Consumer(hold_provider.TURN, hold_provider.TURN_ALLOCATIONS, generation)
        written = allocations.write(OWNER, [turn])
        if written.answer is Answer.FAILED:
            return written
        try:
            holds = read()
        except exceptions.UnansweredError as error:
            return Written(Answer.FAILED, str(error))
        if holds.turn is not None:
            return holds if not holds.held else Written(Answer.CONSUMER_CHANGED)
    return Written(Answer.FAILED, written.detail)


def _classes(replace: Sequence[Hold]) -> set[str]:
    return {name for one in replace for name in amounts_of(one)}


def _pause(attempt: int) -> bool:
    """Wait before something is sent again; False if the request has no time left."""
    if request_deadline.remaining_in_all() <= 0:
        return False
    repair.pause(attempt)
    return True
