"""Isolated groups commit one after the other, so that no two of them take the same uplinks.

A request reads the turn of the holds (see :mod:`hpc_sched.nova_glue.claim.holds`), then where the
instances of other isolated groups are, and plans. Once its places are claimed it *commits*: a
transaction that raises the turn, if the turn is still the one that it has read. If it is not, the
request reads turn and instances again, with its claim in place. Either its claim keeps away from
the uplinks of the others, then it commits again, or it plans again.

Of two groups that commit, the second one has read the turn after the first one's commit, and so
after its claim, which is in Placement: it has seen the first one, and the first one's instances do
not leave the leaves of its plan. A request that dies before it commits leaves claims that are
released as all abandoned ones are; one that is deleted leaves nothing. A commit without an answer
is repeated, and one that is made late changes nothing but the turn: others read once more.

Moves that hold a place raise the turn too, and are seen by it: see :mod:`follower_holds`. A group
is refused if it cannot commit; not if all its VMs are below one leaf switch, where it uses no
uplink, whatever others do.
"""

from dataclasses import replace
from functools import partial

import numpy as np

from hpc_sched import exceptions
from hpc_sched.core.arrays import Array, Mask
from hpc_sched.core.group_request import GroupRequest
from hpc_sched.core.objectives.used_uplinks import used_uplinks
from hpc_sched.core.plan.objective import Isolation
from hpc_sched.core.plan.problem import host_counts
from hpc_sched.core.plan.result import Plan
from hpc_sched.nova_glue.claim import claim_conditions, claim_conflict, follower_holds
from hpc_sched.nova_glue.claim.doubt import Doubt
from hpc_sched.nova_glue.claim.holds import store
from hpc_sched.nova_glue.claim.request_claims import RequestClaims
from hpc_sched.nova_glue.decide.group_placement import GroupPlacement
from hpc_sched.nova_glue.io.allocations import Answer
from hpc_sched.nova_glue.read.input_reader import read_again

# Commits until one is made: each time another isolated group, or a move, was faster.
MAX_COMMITS = 32


def commit(claims: RequestClaims) -> Doubt | None:
    """Commit the claim of an isolated group; return what is in doubt if it must plan again.

    If nothing is in doubt and it is not committed, see :func:`check`, there was no time. One call
    to Placement; for each commit that another one has preceded one more, and what
    :func:`input_reader.read_again` says.
    """
    for attempt in range(MAX_COMMITS):
        # Where the others are may have been read again since it was checked.
        if _unverified(claims) is not None or (attempt and not claim_conflict.pause(attempt)):
            break
        written = store.write(claims.group.inputs.holds, ())
        if written.answer is Answer.DONE:
            _note_committed(claims.group)
            return None
        if written.answer is Answer.FAILED or not _read_again(claims):
            break
        request = claims.group.request()
        objective, planned = request.objective, request.per_host(claims.group.held())
        if not isinstance(objective, Isolation) or _unverified(claims) is not None:
            break
        if (_used(request, planned) & objective.is_used).any():
            return Doubt([])
    return None


def check(claims: RequestClaims, plan: Plan) -> None:
    """Check that an isolated group is committed, or uses no uplink.

    :raises exceptions.RefusedError: if neither is so
    """
    group = claims.group
    if group.inputs.isolated is not None and group.inputs.isolated.is_committed:
        return
    request, specs = group.request(), group.inputs.request.hpc_specs
    if not _used(request, host_counts(request.topology, plan.hosts)).any():
        return
    why = claim_conditions.obstacle() or _unverified(claims)
    if why is None and not specs.by_topology:
        why = f"the VMs of class {specs.app_class} do not follow a plan"
    what = "whether the group shares uplinks with another isolated one is not certain"
    raise exceptions.RefusedError(
        f"{what}: {why or 'its plan could not be claimed in time'}", f"{what}; try again later"
    )


def _unverified(claims: RequestClaims) -> str | None:
    """Return why other isolated groups may use more uplinks than is known, or None."""
    isolated = claims.group.inputs.isolated
    return isolated.unverified if isolated is not None else None


def _note_committed(group: GroupPlacement) -> None:
    if group.inputs.isolated is not None:
        isolated = replace(group.inputs.isolated, is_committed=True)
        group.inputs = replace(group.inputs, isolated=isolated)


def _used(request: GroupRequest, planned: Array) -> Mask:
    """Return whether members and planned VMs use the uplinks of each switch. Shape (switches,).

    :param planned: VMs on each host of the topology
    """
    hosts, everyone = request.topology.hosts, request.members + planned
    group = {hosts[i]: int(everyone[i]) for i in np.flatnonzero(everyone).tolist()}
    return used_uplinks(request.topology, [group])


def _read_again(claims: RequestClaims) -> bool:
    """Read the holds with the turn, then members and other groups; False if that is impossible."""
    group = claims.group
    look_up = partial(claims.turn.look_up, anew=True)
    found = read_again(group.inputs, [], look_up, group.held_places(), follower_holds.read)
    if found is None:
        return False
    group.use(found.with_members(claims.turn.with_claims(found.membership)))
    return True
