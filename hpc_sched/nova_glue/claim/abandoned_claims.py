"""Claims of schedulers that were killed: they are released once their requests are proved dead.

A scheduler that is killed releases nothing, and only Placement knows what it has claimed. A thread
of one worker of each nova-scheduler looks for instances whose requests are dead
(:mod:`~hpc_sched.nova_glue.read.instances.instances_without_cell`), and releases what they hold if
only hpc_sched has written it (:func:`allocations.read_unused_claim`).

A scheduler that is only slow may claim after nova-conductor has given up and buried the instances:
so each is looked at again, until no scheduler can have its request any more.
"""

import math
from dataclasses import dataclass

from nova import context as nova_context
from oslo_log import log as logging

from hpc_sched import clock, masking
from hpc_sched.nova_glue.claim import claim_conditions
from hpc_sched.nova_glue.io import allocations, databases
from hpc_sched.nova_glue.io.allocations import Answer
from hpc_sched.nova_glue.io.periodic_thread import OneWorker, PeriodicThread
from hpc_sched.nova_glue.read.instances import instances_without_cell
from hpc_sched.nova_glue.read.instances.instances_without_cell import InstanceWithoutCell

LOG = logging.getLogger(__name__)

INTERVAL = 15.0  # seconds between two looks
# Instances whose allocations are read in one look, the others in the next looks: those that were
# never read first, newest first, so that looking again at many keeps no claim from being released.
MAX_READS = 128
# Seconds until an instance is looked at again, and how they grow from one time to the next.
FIRST_PAUSE, PAUSE_FACTOR = INTERVAL, 4.0
# The same release again after others changed a host at the same moment; seconds, doubled each time.
CONFLICT_RETRIES, FIRST_SLEEP = 5, 0.02


@dataclass(slots=True)
class _Examined:
    again_at: float  # monotonic time; infinite after the last time
    pause: float  # seconds from the next time to the one after it


@dataclass(slots=True)
class _Memory:
    """What a worker has looked at; used by one thread."""

    examined: dict[str, _Examined]  # by instance; the last look's alone
    after: int = 0  # number of an instance up to which nothing can change any more


_memory = _Memory({})

#: Prepared before workers are forked: all of them would read the same.
worker = OneWorker()


def look() -> None:
    """Release the claims of requests that are proved dead.

    One query in the API database, and one call for each instance that is due, at most
    :data:`MAX_READS`. What cannot be read is tried again in the next look.
    """
    if not worker.is_this():
        return
    if claim_conditions.obstacle() is not None:
        return
    try:
        found = instances_without_cell.read(nova_context.get_admin_context(), _memory.after)
    except databases.OUTAGES as error:
        LOG.debug("Claims of dead requests are not looked for: %s", databases.reason(error))
        return
    known = {one.uuid: _memory.examined.get(one.uuid) for one in found}
    _memory.examined = {uuid: one for uuid, one in known.items() if one is not None}
    now = clock.current.monotonic()
    due = [one for one in found if one.is_dead and _is_due(one.uuid, now)]
    due.sort(key=lambda one: _due_since(one.uuid))
    for one in due[:MAX_READS]:
        before = _memory.examined.get(one.uuid)
        pause = FIRST_PAUSE if before is None else before.pause
        if not release(one):
            # Placement may fail for this one alone: the next look begins with others.
            _memory.examined[one.uuid] = _Examined(now, pause)
            return
        again_at = math.inf if one.is_over else now + pause
        _memory.examined[one.uuid] = _Examined(again_at, PAUSE_FACTOR * pause)
    _memory.after = max(_memory.after, _settled(found))


def release(one: InstanceWithoutCell) -> bool:
    """Release what the claim of a dead request holds; return whether Placement has answered."""
    try:
        claim = allocations.read_unused_claim(one.uuid)
    except Exception as error:
        LOG.debug(
            "The claim of instance %s cannot be read: %s", one.uuid, masking.first_line(error)
        )
        return False
    if claim is None:
        return True
    answer = allocations.release(claim)
    for number in range(CONFLICT_RETRIES):
        # Another scheduler may release others of the same request at the same moment.
        if answer is not Answer.CONFLICT:
            break
        clock.current.sleep(FIRST_SLEEP * 2**number)
        answer = allocations.release(claim)
    if answer is Answer.DONE:
        LOG.info("Released the claim of instance %s, which is %s", one.uuid, one.state)
    return answer not in (Answer.UNKNOWN, Answer.FAILED, Answer.CONFLICT)


def _is_due(uuid: str, now: float) -> bool:
    return now >= _due_since(uuid)


def _due_since(uuid: str) -> float:
    examined = _memory.examined.get(uuid)
    return -math.inf if examined is None else examined.again_at


def _settled(found: list[InstanceWithoutCell]) -> int:
    """Return the number up to which all instances have been looked at for the last time."""
    settled = 0
    for one in reversed(found):
        examined = _memory.examined.get(one.uuid)
        if examined is None or examined.again_at < math.inf:
            break
        settled = one.number
    return settled


# Started by the first request of a worker.
thread = PeriodicThread(look, lambda: INTERVAL, "hpc_sched abandoned", is_due_at_once=False)
