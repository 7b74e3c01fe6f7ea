"""The end of holds: those whose time is over are removed, whichever scheduler has made them.

Every write of holds removes them with it. A thread of each worker that has seen a hold does where
nothing is written any more.
"""

from oslo_log import log as logging

from hpc_sched import clock, exceptions
from hpc_sched.nova_glue.claim.holds import hold_read, hold_transaction
from hpc_sched.nova_glue.io.allocations import Answer
from hpc_sched.nova_glue.io.periodic_thread import PeriodicThread
from hpc_sched.nova_glue.read.hold import Holds
from hpc_sched.topology import plurals

LOG = logging.getLogger(__name__)

INTERVAL = 60.0  # seconds between two looks while something is held

_is_held = False  # whether there was something when this worker read or wrote last
_look_at = 0.0  # no look before that; monotonic time


def note(holds: Holds) -> None:
    """Look for ends of holds from now on, if there are any."""
    if holds.held or holds.ended:
        start()


def start() -> None:
    """Look for ends of holds from now on."""
    global _is_held, _look_at
    if not _is_held:
        _is_held, _look_at = True, clock.current.monotonic() + INTERVAL
        _thread.wake()
    _thread.start()


def look() -> None:
    """Remove all holds that have ended, if a look is due; end the looks without holds."""
    global _is_held
    if clock.current.monotonic() < _look_at:
        return
    try:
        holds = hold_read.read()
        _is_held = bool(holds.held or holds.ended)
        expire(holds)
    except exceptions.UnansweredError as error:
        LOG.debug("Holds that have ended are not removed: %s", error)


def expire(holds: Holds) -> int:
    """Remove all holds that have ended; return how many. One call, none if nothing has ended.

    None is removed if others write at the same moment: they remove them.
    """
    if not holds.ended:
        return 0
    written = hold_transaction.write(holds, (), ())
    if written.answer is not Answer.DONE:
        LOG.debug("Holds that have ended are not removed: %s", written.detail)
        return 0
    what = plurals.text(len(holds.ended), "held place")
    LOG.info("Removed %s whose time is over", what)
    return len(holds.ended)


def _interval() -> float:
    return INTERVAL if _is_held else 0.0


_thread = PeriodicThread(look, _interval, "hpc_sched holds")
