"""Empty records of consumers, which others are about to fill, or a dead process has left.

Placement makes the record of a new consumer, with generation 0, before the transaction in which its
allocations are written. As long as it is empty nothing can be written for the consumer as for a new
one.
"""

import dataclasses
from collections.abc import Sequence

from hpc_sched import clock
from hpc_sched.nova_glue.io import allocations
from hpc_sched.nova_glue.io.allocations import Answer, Consumer, Owner

# Neither is one of Keystone's: no tenant's quota counts what is held.
OWNER = Owner("hpc_sched", "hpc_sched")
# Seconds after which such a record was left by a process of Placement that has died. What is still
# made would remove it in the end, with what it holds by then.
LEFT_AFTER = 60.0
_IMPOSSIBLE = 2**31 - 1  # a generation

_pending_since: dict[str, float] = {}  # consumers, to a monotonic time


def with_left_records(consumers: Sequence[Consumer]) -> list[Consumer]:
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
