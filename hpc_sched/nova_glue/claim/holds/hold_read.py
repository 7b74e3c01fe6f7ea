"""The read of all holds, at one moment."""

from collections.abc import Mapping
from typing import Any

from hpc_sched import clock, exceptions, masking
from hpc_sched.nova_glue.claim.holds import hold_provider
from hpc_sched.nova_glue.claim.holds.hold_numbers import (
    UNTIL,
    class_of,
    hold_of,
    is_shortened,
)
from hpc_sched.nova_glue.io import circuit_breaker, placement
from hpc_sched.nova_glue.read.hold import Hold, HoldConsumer, Holds

# Seconds that a hold may last, with a clock that is ahead: one that ends later is of a wrong clock.
_LONGEST = 86400.0 + 3600.0


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
    of: dict[str, HoldConsumer] = {}
    ended: list[HoldConsumer] = []
    for uuid, found in sorted(consumers.items()):
        consumer = HoldConsumer(uuid, found["consumer_generation"])
        hold = hold_of(found["resources"], shortened)
        # A consumer is removed with all that it has, on other providers too: only if it says when
        # it ends. Others may be of other software, or of another version.
        until = found["resources"].get(UNTIL)
        if until is None or (hold is None and until > now):
            continue
        if hold is None or not now < until <= now + _LONGEST or hold.instance in held:
            ended.append(consumer)
        else:
            held[hold.instance], of[hold.instance] = hold, consumer
    return Holds(turn, held, of, tuple(ended))


def _read() -> tuple[dict[str, Any], Mapping[str, str]]:
    """Return all consumers of the provider, and Nova's class for each class with another name."""
    path = f"/resource_providers/{hold_provider.UUID}/allocations"
    consumers = dict(hold_provider.call("GET", path)[1].get("allocations", {}))
    names = {name for one in consumers.values() for name in one["resources"]}
    if not any(map(is_shortened, names)):
        return consumers, {}
    _, found = hold_provider.call("GET", "/resource_classes")
    return consumers, {class_of(one["name"]): one["name"] for one in found["resource_classes"]}
