"""Repairs: what Nova does not use of an instance's allocations is taken away again.

If Nova claims another host or candidate for an instance than was claimed for it, it adds up both.
"""

from dataclasses import dataclass

from oslo_log import log as logging

from hpc_sched import clock
from hpc_sched.core.logged.decision_summary import CLAIMS
from hpc_sched.nova_glue.claim.transaction.ledger import Holding, contains, same
from hpc_sched.nova_glue.io import allocations, request_deadline
from hpc_sched.nova_glue.io.allocations import Allocations, Answer, Consumer, Owner

LOG = logging.getLogger(__name__)

# Attempts to change one instance's allocations that others change at the same moment.
CHANGES = 4
# Seconds between two attempts, doubled each time.
FIRST_PAUSE, LONGEST_PAUSE = 0.005, 0.1


@dataclass(frozen=True, slots=True)
class Repair:
    """A change of one instance's allocations."""

    uuid: str
    claimed: Holding  # of the request, and of no use
    target: Allocations  # what Nova has claimed


def make(owner: Owner, repair: Repair, *, is_deferred: bool = False) -> bool:
    """Take a place away from an instance if it has that in addition to what Nova has claimed.

    Reads and writes until no other change interferes, :data:`CHANGES` times at the most.

    :param is_deferred: whether the VM may have been evacuated since: then both places may be its
        own, and only what Nova's first claim has left is changed
    :returns: whether Placement has answered
    """
    # As Nova adds them up.
    both = {**repair.target, **repair.claimed.place.allocations}
    for change in range(CHANGES):
        if change:
            pause(change)
        found = read(repair.uuid)
        if found is None:
            return False
        place = repair.claimed.place.allocations
        if same(found.allocations, repair.target) or not contains(found.allocations, place):
            return True
        is_later = is_deferred and found.generation != repair.claimed.generation + 1
        if is_later or not same(found.allocations, both):
            # Others have changed it: whether the place is in use by now is not known.
            if not same(found.allocations, place):
                LOG.warning("Instance %s may hold a host that it does not use", repair.uuid)
            return True
        changed = Consumer(repair.uuid, repair.target, found.generation)
        if allocations.write(owner, [changed]).answer is Answer.DONE:
            return True
    return False


def read(uuid: str) -> Consumer | None:
    """Return what an instance has in Placement, or None if that does not answer."""
    try:
        return allocations.read(uuid)
    except Exception as error:
        LOG.debug("The allocations of instance %s cannot be read: %s", uuid, error)
        return None


def pause(number: int, longest: float = LONGEST_PAUSE) -> None:
    """Wait before something is sent again; charged to the request."""
    with request_deadline.charged(CLAIMS):
        clock.current.sleep(min(FIRST_PAUSE * 2**number, longest))
