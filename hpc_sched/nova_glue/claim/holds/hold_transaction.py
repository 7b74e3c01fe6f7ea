"""Reads and writes of all holds: a compare-and-swap of the whole set."""

import dataclasses
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from hpc_sched import clock, exceptions, masking
from hpc_sched.nova_glue.claim.holds import hold_provider
from hpc_sched.nova_glue.io.hold import Hold, Holds
from hpc_sched.nova_glue.claim.holds.hold_numbers import (
    amounts_of,
    class_of,
    consumer_of,
    hold_of,
    is_shortened,
)
from hpc_sched.nova_glue.claim.transaction import repair
from hpc_sched.nova_glue.io import allocations, circuit_breaker, placement, request_deadline
from hpc_sched.nova_glue.io.allocations import Answer, Consumer, Owner, Written

# Neither is one of Keystone's: no tenant's quota counts what is held.
OWNER = Owner("hpc_sched", "hpc_sched")
# The same transaction again: while others make a consumer or change the provider at the same
# moment, and while no answer to it comes.
_ATTEMPTS = 8
# Of them answers that others make the record of a consumer, after which it is looked at.
_PENDING = 5
# Seconds after which such a record was left by a process of Placement that has died. What is still
# made would remove it in the end, with what it holds by then.
LEFT_AFTER = 60.0
_IMPOSSIBLE = 2**31 - 1  # a generation
_pending_since: dict[str, float] = {}  # consumers, to a monotonic time


def read() -> Holds:
    """Return all holds at one moment. One call to Placement.

    Two if a class is held that has a name of more than 238 letters.

    :raises exceptions.UnansweredError: if Placement does not answer within the request's deadline
    """
    try:
        consumers, shortened = circuit_breaker.ask_one(
            placement.PLACEMENT, _read, placement.MAX_READS
        )
    except exceptions.UnansweredError:
        raise
    except Exception as error:
        raise exceptions.UnansweredError(masking.first_line(error)) from error
    turn = consumers.pop(hold_provider.TURN, {}).get("consumer_generation")
    now = clock.current.unix_time()
    held: dict[str, Hold] = {}
    generations: dict[str, int] = {}
    for uuid, one in consumers.items():
        instance = consumer_of(uuid)
        generations[instance] = one["consumer_generation"]
        hold = hold_of(uuid, one["resources"], shortened)
        # What cannot be read is removed as what has ended.
        if hold is not None and hold.until > now:
            held[instance] = hold
    return Holds(turn, held, generations)


def _read() -> tuple[dict[str, Any], Mapping[str, str]]:
    """Return all consumers of the provider, and Nova's class for each class with another name."""
    path = f"/resource_providers/{hold_provider.UUID}/allocations"
    consumers = dict(hold_provider.call("GET", path)[1].get("allocations", {}))
    names = {name for one in consumers.values() for name in one["resources"]}
    if not any(map(is_shortened, names)):
        return consumers, {}
    _, found = hold_provider.call("GET", "/resource_classes")
    return consumers, {class_of(one["name"]): one["name"] for one in found["resource_classes"]}


def write(holds: Holds, replace: Sequence[Hold], remove: Collection[str]) -> Written:
    """Replace the holds of some instances and remove those of others; see :func:`store.write`."""
    if holds.turn is None:
        begun = _begin(replace)
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
    written, is_prepared, is_unclear, pending = Written(Answer.FAILED), False, False, 0
    for attempt in range(_ATTEMPTS):
        if attempt and not _pause(attempt):
            break
        written = allocations.write(OWNER, consumers)
        match written.answer:
            case Answer.DONE | Answer.CONSUMER_CHANGED | Answer.FAILED:
                break
            case Answer.NO_ROOM:
                # A resource class or an inventory of it is missing.
                problem = written.detail if is_prepared else hold_provider.prepare(classes)
                if problem is not None:
                    return Written(Answer.FAILED, problem), is_unclear
                is_prepared = True
            case Answer.CONSUMER_PENDING:
                pending += 1
                if pending == _PENDING:
                    consumers = _with_records_of(consumers)
            case Answer.UNKNOWN:
                is_unclear = True
    return written, is_unclear


def _with_records_of(consumers: Sequence[Consumer]) -> list[Consumer]:
    """Return consumers with the generation of the empty records that a dead process has left.

    One call for each new consumer.
    """
    return [
        dataclasses.replace(one, generation=0)
        if one.generation is None and _is_left(one.uuid)
        else one
        for one in consumers
    ]


def _is_left(consumer: str) -> bool:
    """True if the record of a consumer is empty, and has been for so long that it stays so."""
    # No consumer can have the generation that this names: nothing is written, no record is made.
    probe = Consumer(consumer, {}, _IMPOSSIBLE)
    if allocations.write(OWNER, [probe]).answer is not Answer.CONSUMER_PENDING:
        _pending_since.pop(consumer, None)
        return False
    now = clock.current.monotonic()
    return now - _pending_since.setdefault(consumer, now) >= LEFT_AFTER


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
    turns = [Consumer(hold_provider.TURN, hold_provider.TURN_ALLOCATIONS, None)]
    written = Written(Answer.FAILED)
    for attempt in range(_ATTEMPTS):
        if attempt and not _pause(attempt):
            break
        [turn] = turns if attempt < _PENDING else _with_records_of(turns)
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
