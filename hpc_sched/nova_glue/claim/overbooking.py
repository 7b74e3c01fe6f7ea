"""Hosts that hold more than they have, after claims that were made at the same moment.

If another transaction has changed a provider while Placement works on one, it writes that again, up
to ``[placement] allocation_conflict_retry_count`` times. It does so within one transaction of its
database, whose view of what is in use is as old as the first attempt: both are made, and the
provider may hold more than it has (Placement 16.0.0). The clients see no conflict. With 1 it leaves
the repetition to them, and this does not happen.

Each request looks after its claim, so that of two the one that is made last sees both. Those that
claim at the same moment judge alike which of them stay: those with the earlier reservation ids.
"""

from collections import Counter
from collections.abc import Collection
from dataclasses import dataclass
from itertools import accumulate

import numpy as np
from nova import context as nova_context
from oslo_log import log as logging

from hpc_sched import clock
from hpc_sched.core.room.providers import Amounts
from hpc_sched.nova_glue.claim import claim_conflict
from hpc_sched.nova_glue.claim.request_claims import RequestClaims
from hpc_sched.nova_glue.io import databases, placement, request_deadline
from hpc_sched.nova_glue.read.instances import request_instances

LOG = logging.getLogger(__name__)

# Seconds for the reads of all hosts of a claim: 64 hosts take some 0.5 s.
BUDGET = 1.0
# Seconds in which no other request is accepted, scheduled and claimed, as far as is known.
SHORT = 0.25


@dataclass(frozen=True, slots=True)
class Company:
    """Whether instances of other requests may have been placed before a claim."""

    is_there: bool
    at: float  # a monotonic time


def company(instances: Collection[str]) -> Company:
    """Return whether instances of other requests are being placed, or that is not known.

    Never for a request of one instance: its claim is as Nova's own. Moves are not seen. One query
    in the API database; none if the request has waited long for others.

    :param instances: of the request
    """
    now = clock.current.monotonic()
    if len(instances) < 2:
        return Company(is_there=False, at=now)
    if request_deadline.has_waited_long():
        return Company(is_there=True, at=now)
    try:
        context = nova_context.get_admin_context()
        found = request_instances.are_others_placed(context, instances)
    except databases.OUTAGES as error:
        LOG.debug("Hosts are read after a claim: %s", databases.api_problem(error))
        found = True
    return Company(found, now)


def to_leave(claims: RequestClaims, before: Company) -> list[int]:
    """Return the hosts of a claim that hold more than they have, if the request must plan again.

    Positions of HostStates; none if the claim stays. The rooms of the hosts that were reached are
    what Placement has left there. A request whose claim stays waits until the others have moved; if
    they do not, as Nova's own claims, or if that is not known, it moves itself.

    Without company nothing, or one query in the API database after a claim that was not short. With
    it two calls to Placement for each provider of the claim's hosts, those with the least room
    first, as far as :data:`BUDGET` goes. While hosts hold too much, for each look two calls for
    each of their providers and one for each that holds too much, and one query.

    :param before: what :func:`company` said before the claim
    """
    is_short = clock.current.monotonic() - before.at < SHORT
    if not before.is_there and (is_short or not company(claims.instances).is_there):
        return []
    inputs, look_at = claims.group.inputs, _fullest_first(claims)
    for look in range(claim_conflict.MAX_LOOKS):
        if look and not claim_conflict.pause(look):
            break
        excess = inputs.rooms.overbooked(look_at, BUDGET)
        if excess is None and look:
            # What was known before makes it move.
            break
        if not excess:
            return []
        look_at = sorted(excess)
        too_much = {key: amount for found in excess.values() for key, amount in found.items()}
        if _is_last(claims.instances, too_much):
            break
    LOG.info(
        "Group %s is claimed again: more is claimed on %s than there is. Placement does not let "
        "that happen with allocation_conflict_retry_count = 1",
        inputs.request.group_id,
        ", ".join(inputs.name_of(i) for i in look_at),
    )
    return look_at


def _fullest_first(claims: RequestClaims) -> list[int]:
    """Return the hosts of a claim, those with the least room first."""
    held = claims.group.held()
    positions = np.flatnonzero(held)
    left = (claims.group.inputs.rooms.left - held)[positions]
    found: list[int] = positions[np.argsort(left, kind="stable")].tolist()
    return found


def _is_last(own: Collection[str], excess: Amounts) -> bool:
    """True if the request is to move, or it is not known which ones are.

    Of the requests that are being placed, those with the latest reservation ids move, as a whole,
    until no provider holds too much.
    """
    found = placement.read_consumers({provider for provider, _ in excess})
    consumers = sorted({uuid for held in found.values() for uuid in held})
    try:
        requests = request_instances.requests_of(nova_context.get_admin_context(), consumers)
    except databases.OUTAGES as error:
        LOG.debug("All claims move: %s", databases.api_problem(error))
        return True
    mine = {requests[uuid] for uuid in own if uuid in requests}
    for (provider, name), amount in excess.items():
        by_request: Counter[str] = Counter()
        for uuid, held in found.get(provider, {}).items():
            if uuid in requests:
                by_request[requests[uuid]] += held.get(name, 0)
        latest = sorted(by_request, reverse=True)
        freed = accumulate((by_request[one] for one in latest), initial=0)
        moving = [one for one, before in zip(latest, freed, strict=False) if before < amount]
        if not mine.isdisjoint(moving) or by_request.total() < amount:
            return True
    return False
