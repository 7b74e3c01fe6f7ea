"""The store of holds in Placement, as the phases of a request use it.

What a request has read is what it may change: :func:`write` is a compare-and-swap of all holds.
Where others have written since, it is to read again, and plan again. A transaction to which there
was no answer may be made at any later time, but not after another one was: to read again and to
write *fences* it. One that is left so, and made later, ends by itself.
"""

from collections.abc import Collection, Iterable, Sequence

from hpc_sched import exceptions
from hpc_sched.nova_glue.claim.holds import hold_ends, hold_read, hold_transaction
from hpc_sched.nova_glue.claim.transaction import repair
from hpc_sched.nova_glue.io.allocations import Answer, Written
from hpc_sched.nova_glue.read.hold import Hold, Holds

# A release again, when others have written at the same moment.
_ATTEMPTS = 6


def read() -> Holds:
    """Return all holds at one moment, without those that have ended. One call to Placement.

    :raises exceptions.UnansweredError: if Placement does not answer within the request's deadline
    """
    holds = hold_read.read()
    hold_ends.note(holds)
    return holds


def write(holds: Holds, replace: Sequence[Hold], remove: Collection[str] = ()) -> Written:
    """Replace the holds of some instances and remove those of others, all or none; never raises.

    One call. Without holds it changes nothing, and fences what was sent before. What has ended is
    removed with it. The first hold of a cloud takes up to some fifteen calls more, the first one of
    a longer nodename or a new resource class some three. An answer that is lost takes a second
    call, and may take a third.

    :param holds: what was read before; nothing is written if others have written since
    :param replace: new holds, or others in place of those that the instances have
    :param remove: instances; those without a hold are ignored
    :returns: DONE; CONSUMER_CHANGED if others have written since, and nothing is written; FAILED if
        it cannot be written; UNKNOWN without an answer: it may be written, now or later
    """
    written = hold_transaction.write(holds, replace, remove)
    if replace and written.answer in (Answer.DONE, Answer.UNKNOWN):
        hold_ends.start()
    return written


def release(instances: Iterable[str]) -> Written:
    """Remove the holds of some instances, whatever others write; never raises.

    One call if they have none, else two; two more for each write of others at the same moment.

    :returns: DONE if they have none by then
    """
    gone = set(instances)
    written = Written(Answer.DONE)
    for attempt in range(_ATTEMPTS):
        if attempt:
            repair.pause(attempt)
        try:
            holds = read()
        except exceptions.UnansweredError as error:
            return Written(Answer.FAILED, str(error))
        if gone.isdisjoint(holds.held):
            return Written(Answer.DONE)
        written = hold_transaction.write(holds, (), gone)
        if written.answer is not Answer.CONSUMER_CHANGED:
            return written
    return written
