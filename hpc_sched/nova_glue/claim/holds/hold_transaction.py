"""Writes of holds: a compare-and-swap of the whole set."""

from collections.abc import Collection, Sequence
from uuid import uuid4

from hpc_sched import exceptions
from hpc_sched.nova_glue.claim.holds import hold_provider, hold_read, hold_turn
from hpc_sched.nova_glue.claim.holds.hold_numbers import amounts_of
from hpc_sched.nova_glue.claim.transaction import repair
from hpc_sched.nova_glue.io import allocations, request_deadline
from hpc_sched.nova_glue.io.allocations import Answer, Consumer, Written
from hpc_sched.nova_glue.read.hold import Hold, Holds

# The same transaction again: while others change the provider at the same moment, and while no
# answer to it comes.
_ATTEMPTS = 8


def write(holds: Holds, replace: Sequence[Hold], remove: Collection[str]) -> Written:
    """Replace the holds of some instances and remove those of others; see :func:`store.write`."""
    if holds.turn is None:
        begun = hold_turn.begin(_classes(replace))
        if isinstance(begun, Written):
            return begun
        holds = begun
    written, is_unclear = _send(_consumers(holds, replace, remove), _classes(replace))
    if written.answer is Answer.CONSUMER_CHANGED and is_unclear:
        return _found(holds, replace, remove, written)
    if written.answer is not Answer.DONE and is_unclear:
        return Written(Answer.UNKNOWN, written.detail)
    if written.answer in (Answer.CONFLICT, Answer.CONSUMER_PENDING):
        return Written(Answer.CONSUMER_CHANGED, written.detail)
    return written


def _send(consumers: Sequence[Consumer], classes: Collection[str]) -> tuple[Written, bool]:
    """Send a transaction until it is made or refused.

    :returns: the last answer, and whether there was none to an earlier copy
    """
    written, is_prepared, is_unclear = Written(Answer.FAILED), False, False
    for attempt in range(_ATTEMPTS):
        if attempt and not _pause(attempt):
            break
        written = allocations.write(hold_provider.OWNER, consumers)
        match written.answer:
            case Answer.DONE | Answer.CONSUMER_CHANGED | Answer.FAILED:
                break
            case Answer.NO_ROOM:
                # A resource class or an inventory of it is missing.
                prepared = hold_provider.prepare(classes)
                if is_prepared or prepared.problem is not None:
                    detail = prepared.problem or written.detail
                    return Written(Answer.FAILED, detail), is_unclear
                is_prepared = True
            case Answer.UNKNOWN:
                is_unclear = True
    return written, is_unclear


def _consumers(holds: Holds, replace: Sequence[Hold], remove: Collection[str]) -> list[Consumer]:
    """Return the body of a transaction; it removes what has ended, too."""
    given = {one.instance for one in replace}
    gone = [holds.consumers[uuid] for uuid in holds.held if uuid in {*remove} - given]
    consumers = [Consumer(hold_provider.TURN, hold_provider.TURN_ALLOCATIONS, holds.turn)]
    for one in replace:
        found = holds.consumers.get(one.instance)
        uuid = str(uuid4()) if found is None else found.uuid
        held = {hold_provider.UUID: {"resources": amounts_of(one)}}
        consumers.append(Consumer(uuid, held, None if found is None else found.generation))
    return consumers + [Consumer(one.uuid, {}, one.generation) for one in (*gone, *holds.ended)]


def _found(
    holds: Holds, replace: Sequence[Hold], remove: Collection[str], written: Written
) -> Written:
    """Return whether a transaction was made to which there was no answer, and one that it changed.

    Whichever it is: no copy of it can be made any more. Only a new hold shows whose transaction it
    was: what is removed another one may have removed.
    """
    try:
        found = hold_read.read()
    except exceptions.UnansweredError as error:
        return Written(Answer.UNKNOWN, str(error))
    is_made = (
        bool(replace)
        and found.turn == (holds.turn or 0) + 1
        and all(found.held.get(one.instance) == one for one in replace)
        and found.held.keys().isdisjoint({*remove} - {one.instance for one in replace})
    )
    return Written(Answer.DONE) if is_made else written


def _classes(replace: Sequence[Hold]) -> set[str]:
    return {name for one in replace for name in amounts_of(one)}


def _pause(attempt: int) -> bool:
    """Wait before something is sent again; False if the request has no time left."""
    if request_deadline.remaining_in_all() <= 0:
        return False
    repair.pause(attempt)
    return True
