"""Hosts that hold more than they have, after claims that were made at the same moment.

If another transaction has changed a provider while Placement works on one, it writes that again, up
to ``[placement] allocation_conflict_retry_count`` times. It does so within one transaction of its
database, whose view of what is in use is as old as the first attempt: both are made, and the
provider may hold more than it has (Placement 16.0.0). The clients see no conflict. With 1 it leaves
the repetition to them, and this does not happen.

Each request looks after its claim, so that of two the one that is made last sees both. Those that
claim at the same moment judge alike which instances stay: those with the earlier uuids.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

import numpy as np
from nova import context as nova_context
from oslo_log import log as logging

from hpc_sched import clock
from hpc_sched.core.decision_entry import TURNS
from hpc_sched.core.room.providers import Amounts
from hpc_sched.nova_glue.claim.gang_claim import GangClaim
from hpc_sched.nova_glue.instances import request_instances
from hpc_sched.nova_glue.io import databases, placement, request_deadline
from hpc_sched.nova_glue.request.group_state import GroupState

LOG = logging.getLogger(__name__)

# Seconds for the reads of all hosts of a claim: 64 hosts take some 0.5 s.
BUDGET = 1.0
# Looks until those with later uuids have moved, and seconds between two, doubled each time.
MAX_LOOKS, FIRST_PAUSE = 4, 0.05


def has_company(own: Collection[str]) -> bool:
    """True if instances of other requests are being placed; False if that is not known.

    Never for a request of one instance: its claim is as Nova's own. One query in the API database.

    :param own: the instances of this request
    """
    if len(own) < 2:
        return False
    try:
        return request_instances.are_others_placed(nova_context.get_admin_context(), own)
    except databases.OUTAGES as error:
        LOG.debug("Hosts are not read after a claim: %s", databases.api_problem(error))
        return False


def must_move(state: GroupState, gang: GangClaim, *, had_company: bool) -> bool:
    """Return whether the request must plan again, as hosts of its claim hold more than they have.

    The rooms of these hosts are then what Placement has left there. A request whose claim stays
    waits until the others have moved; if they do not, as Nova's own claims, it moves itself.

    Without company one query in the API database. With it two calls to Placement for each host of
    the claim, those with the least room first, as far as :data:`BUDGET` goes; one for each provider
    that holds too much, with a query for all.

    :param had_company: what :func:`has_company` said before the claim
    """
    places = gang.places
    if not had_company and not has_company(places):
        return False
    held = state.held()
    positions = np.flatnonzero(held)
    left = (state.rooms.left - held)[positions]
    look_at: Sequence[int] = positions[np.argsort(left, kind="stable")].tolist()
    for look in range(MAX_LOOKS):
        if look and not _pause(look):
            break
        excess = state.rooms.overbooked(look_at, BUDGET)
        if not excess:
            return False
        look_at = sorted(excess)
        too_much = {key: amount for found in excess.values() for key, amount in found.items()}
        if _is_last(places, too_much):
            break
    LOG.info(
        "Group %s is claimed again: more is claimed on %s than there is. Placement does not let "
        "that happen with allocation_conflict_retry_count = 1",
        state.request.group_id,
        ", ".join(state.name_of(i) for i in look_at),
    )
    return True


def _is_last(own: Collection[str], excess: Amounts) -> bool:
    """True if instances of the request are to move, or it is not known which ones are.

    Of those that are being placed, the latest uuids move, until no provider holds too much.
    """
    found = placement.read_consumers({provider for provider, _ in excess})
    consumers = {uuid for held in found.values() for uuid in held}
    try:
        context = nova_context.get_admin_context()
        moving = request_instances.placed_now(context, sorted(consumers - set(own)))
    except databases.OUTAGES as error:
        LOG.debug("All claims move: %s", databases.api_problem(error))
        return True
    for (provider, name), amount in excess.items():
        held = found.get(provider, {})
        for uuid in sorted(held.keys() & (moving | set(own)), reverse=True):
            if amount <= 0:
                break
            amount -= held[uuid].get(name, 0)
            if uuid in own:
                return True
        if amount > 0:
            return True
    return False


def _pause(look: int) -> bool:
    """Wait between two looks; False if the request has no time left."""
    with request_deadline.charged(TURNS):
        clock.current.sleep(FIRST_PAUSE * 2 ** (look - 1))
    return request_deadline.remaining() > 0
