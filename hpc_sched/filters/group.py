"""HPCGroupFilter: all or nothing."""

from __future__ import annotations

import nova.conf
from nova import exception, objects

from hpc_sched import exceptions
from hpc_sched.core.plan.result import Rejection
from hpc_sched.filters.base import GroupFilter, States, check_members, select
from hpc_sched.nova_glue.instances import group_members
from hpc_sched.nova_glue.request import decision_record, request_spec, served_requests
from hpc_sched.nova_glue.request.group_state import GroupState, refused

CONF = nova.conf.CONF


class HPCGroupFilter(GroupFilter):
    """Refuses a group that does not fit before anything is claimed for it.

    Checks what the request says of its group, then asks the planner: without a plan for the
    VMs of this request among the candidates, or for the whole ``hpc:group_size`` where it is
    required under one switch, NoValidHost tells the user why, in counts and levels. Only the
    hosts stay that keep ``hpc:require`` and ``hpc:max_leaves``, and the group on one island,
    whichever of them are taken.

    A move without such a wish is not refused for want of a plan, nor is a group that stands
    on several islands already.

    Nova runs it for the first VM of a request only; it never raises once a VM is placed.
    """

    def _keep(self, states: States, spec: objects.RequestSpec) -> States:
        state = served_requests.state_of(spec, states)
        if state is None:
            _check_lonely(spec)
            return states
        _check(state)
        positions = state.positions(states)
        group = state.group_request(positions)
        answer = state.plan(group)
        if isinstance(answer, Rejection):
            if not group.is_refused(answer, is_move=state.group.is_move):
                decision_record.log(state, answer)
                return states
            raise refused(group.refusal(answer))
        kept = select(states, group.permitted(answer)[positions])
        state.count_removed(
            "outside the required switch, the leaves allowed or the island",
            len(states) - len(kept),
        )
        if len(kept) == 1:
            # Nova will not ask a weigher, which would tell otherwise.
            decision_record.log(state, answer)
        return kept

    def _refuse(
        self, states: States, spec: objects.RequestSpec, refusal: exceptions.RefusedError
    ) -> States:
        nothing = super()._refuse(states, spec, refusal)
        if served_requests.placed(spec):
            return nothing
        raise exception.NoValidHost(reason=refusal.tenant)


def _check(state: GroupState) -> None:
    """Check what a request says of its group, and that its members are known if they matter.

    A VM that moves is not held fast by a preference that cannot be read.

    :raises exceptions.RefusedError: with what the user can do
    """
    asked = state.request.hpc_specs
    if asked.faults and (asked.is_unclear or not state.group.is_move):
        raise exceptions.RefusedError("; ".join(asked.faults))
    state.warn_of_faults()
    state.check_final_size()
    if asked.needs_proof:
        check_members(state)


def _check_lonely(spec: objects.RequestSpec) -> None:
    """Refuse wishes that need a group where there is none, and values that cannot be read.

    Not on moves, one more query: a VM that runs must not be held fast by what its flavor
    says.

    :raises exceptions.RefusedError: with what the user can do
    """
    asked = served_requests.hpc_specs_of(spec)
    if not asked.faults and not asked.stated:
        return
    if group_members.is_placed(spec.instance_uuid):
        return
    if asked.faults:
        raise exceptions.RefusedError("; ".join(asked.faults))
    if not request_spec.is_group(spec):
        raise exceptions.RefusedError(
            f"{', '.join(asked.stated)}: only a group can have that; name a server group in the "
            "hint 'group'"
            + (", or create the VMs in one request" if CONF.hpc_sched.implicit_groups else "")
        )
