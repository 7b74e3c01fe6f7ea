"""The first turn: made once for a cloud, by one scheduler.

Of two that make a consumer at the same moment Placement may answer to both that it is done, and may
remove its record as one of them fails. So the turn is made only by the scheduler that has added its
resource class to the provider's inventories, which the provider's generation decides.
"""

import threading
from dataclasses import replace

from hpc_sched import clock, exceptions
from hpc_sched.nova_glue.claim.holds import hold_provider, hold_read
from hpc_sched.nova_glue.claim.transaction import repair
from hpc_sched.nova_glue.io import allocations, request_deadline
from hpc_sched.nova_glue.io.allocations import Answer, Consumer, Written
from hpc_sched.nova_glue.read.hold import Holds

# Looks for a turn that another scheduler makes.
_LOOKS = 8
_FIRST = 1  # generation of a turn that was not used
# Seconds after which the one that was to make it has died.
LEFT_AFTER = 60.0


class MissingTurn:
    """Since when a turn is missing that another scheduler was to make."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._generation, self._since = -1, 0.0  # of the provider; monotonic time

    def is_mine(self, prepared: hold_provider.Prepared) -> bool:
        """True if this scheduler is to make the turn, as the other one has died. At most one call.

        Another one that does so changes the provider's generation.
        """
        now = clock.current.monotonic()
        with self._lock:
            if prepared.generation != self._generation:
                self._generation, self._since = prepared.generation, now
            if now - self._since < LEFT_AFTER:
                return False
            self._generation = -1
        return hold_provider.touch(prepared)


_missing = MissingTurn()


def begin(classes: set[str]) -> Holds | Written:
    """Return the holds once there is a turn; or why there is none, or that it was used already.

    :param classes: of hpc_sched that are written next
    """
    prepared = hold_provider.prepare({hold_provider.TURN_CLASS, *classes})
    if prepared.problem is not None:
        return Written(Answer.FAILED, prepared.problem)
    detail = "the turn of the holds is not made yet"
    if prepared.has_added_turn or _missing.is_mine(prepared):
        turn = Consumer(hold_provider.TURN, hold_provider.TURN_ALLOCATIONS, None)
        written = allocations.write(hold_provider.OWNER, [turn])
        if written.answer is Answer.CONSUMER_PENDING:
            # A dead process of Placement has left its record, or one like this scheduler.
            turn = replace(turn, generation=0)
            written = allocations.write(hold_provider.OWNER, [turn])
        detail = written.detail or detail
    for look in range(_LOOKS):
        if look:
            if request_deadline.remaining_in_all() <= 0:
                break
            repair.pause(look)
        try:
            holds = hold_read.read()
        except exceptions.UnansweredError as error:
            return Written(Answer.FAILED, str(error))
        if holds.turn is not None:
            # What was held since may be claimed by now.
            return holds if holds.turn == _FIRST else Written(Answer.CONSUMER_CHANGED)
    return Written(Answer.FAILED, detail)
