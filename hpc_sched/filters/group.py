"""HPCGroupFilter: all or nothing."""

from __future__ import annotations

from dataclasses import replace

from nova import exception, objects
from oslo_log import log as logging

from hpc_sched import exceptions
from hpc_sched.core.plan.result import Rejection
from hpc_sched.filters.base import GroupFilter, States, check_members, refused, select
from hpc_sched.nova_glue import served_requests
from hpc_sched.nova_glue.claim import gang_claiming
from hpc_sched.nova_glue.decide import final_size
from hpc_sched.nova_glue.decide.group_state import GroupState
from hpc_sched.nova_glue.read import request_spec
from hpc_sched.nova_glue.read.instances import group_members
from hpc_sched.nova_glue.record import decision_record

LOG = logging.getLogger(__name__)


class HPCGroupFilter(GroupFilter):
    """Refuses a group that does not fit before anything is claimed for it.

    Checks the ``hpc:`` values of the request, then plans the group. It raises NoValidHost, with
    the reason in counts and levels, if there is no plan for the VMs of this request, or with
    ``hpc:require`` for ``hpc:group_size`` VMs. It keeps the hosts on which the group keeps
    ``hpc:require``, ``hpc:max_leaves`` and its island, whichever of them it takes.

    Without a plan, a move without such constraints is not refused, nor is a group whose members
    are on several islands.

    It checks and plans for the first VM of a request only, and never raises once a VM is placed.
    For the others it puts first, on each host, the allocation candidate that a VM shall claim:
    weighers could, but Nova calls none where one host is left.

    With ``gang_claims`` it claims the plan before Nova claims the first VM. If places are taken
    meanwhile, the group is planned again; it is refused only if there is no plan any more.
    """

    run_filter_once_per_request = False

    def _keep(self, states: States, spec: objects.RequestSpec) -> States:
        if not served_requests.begin_check(spec):
            _check_claim(states, spec)
            return states
        state = served_requests.get_state(spec, states)
        if state is None:
            _check_without_group(spec)
            return states
        _check(state)
        positions = state.positions(states)
        group = state.group_request(positions)
        answer = state.decide(group)
        if isinstance(answer, Rejection) and state.finds_more_room(group):
            group = state.group_request(positions)
            answer = state.decide(group)
        answer = gang_claiming.claim(state, spec, positions, answer)
        group = state.group_request(positions)
        if isinstance(answer, Rejection):
            if not group.is_refused(answer, is_move=state.group.is_move):
                gang_claiming.fence(state)
                decision_record.log(state, answer)
                return states
            refusal = group.refusal(answer)
            if state.group.is_move:
                lifted = "; [hpc_sched] relax_moves can lift the guarantees of moves"
                refusal = replace(refusal, operator=refusal.operator + lifted)
            raise refused(refusal)
        kept = select(states, group.permitted(answer)[positions])
        state.count_removed(
            "outside the required switch, the leaves allowed or the island", len(states) - len(kept)
        )
        state.arrange_candidates(kept)
        if len(kept) == 1:
            # With one host Nova calls no weigher, which would log the decision otherwise.
            decision_record.log(state, answer)
        return kept

    def _needs_proof(self, spec: objects.RequestSpec) -> bool:
        # The hosts kept for the first VM keep the guarantee.
        return not served_requests.count_placed(spec) and super()._needs_proof(spec)

    def _refuse(
        self, states: States, spec: objects.RequestSpec, refusal: exceptions.RefusedError
    ) -> States:
        nothing = super()._refuse(states, spec, refusal)
        if served_requests.count_placed(spec):
            return nothing
        raise exception.NoValidHost(reason=refusal.tenant)


def _check_claim(states: States, spec: objects.RequestSpec) -> None:
    """Keep the claims on hosts that are still candidates; arrange the allocation candidates."""
    state = served_requests.find_state(spec)
    # To look at the claims of all hosts takes a while, and most hosts have one candidate.
    if state is None or not (state.rooms.has_choices or state.gang):
        return
    state = served_requests.get_state(spec, states)
    if state is None:
        return
    place = state.claimed_place
    if place is not None:
        positions = state.positions(states)
        if not state.rooms.offers(place.position, place.candidate) or (
            place.position not in positions
        ):
            gang_claiming.reclaim(state, positions)
    state.arrange_candidates(states)


def _check(state: GroupState) -> None:
    """Check the ``hpc:`` values of a group, and its members if it has a guarantee."""
    hpc_specs = state.request.hpc_specs
    # An invalid preference does not refuse a move.
    if hpc_specs.faults and (hpc_specs.is_unclear or not state.group.is_move):
        raise exceptions.RefusedError("; ".join(hpc_specs.faults))
    state.warn_of_faults()
    final_size.check(state)
    if hpc_specs.needs_proof:
        check_members(state)


def _check_without_group(spec: objects.RequestSpec) -> None:
    """Check that a request without a group has no invalid values, and no constraints of a group."""
    hpc_specs = served_requests.get_hpc_specs(spec)
    is_plain = not hpc_specs.faults and not hpc_specs.group_keys
    # A flavor must not block a VM that runs; to find out takes one query.
    is_accepted = (
        is_plain or request_spec.is_move(spec) or group_members.is_placed(spec.instance_uuid)
    )
    ignored = list(hpc_specs.ignored)
    if is_accepted:
        ignored += hpc_specs.faults
        if hpc_specs.group_keys and not request_spec.is_group(spec):
            ignored.append(f"{', '.join(hpc_specs.group_keys)}: the VM belongs to no group")
    if ignored:
        LOG.warning("Ignored for instance %s: %s", spec.instance_uuid, "; ".join(ignored))
    if is_accepted:
        return
    if hpc_specs.faults:
        raise exceptions.RefusedError("; ".join(hpc_specs.faults))
    if fault := request_spec.group_fault(spec, hpc_specs):
        raise exceptions.RefusedError(fault)
