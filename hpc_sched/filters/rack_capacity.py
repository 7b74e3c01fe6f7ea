"""HPCRackCapacityFilter: the leaves of the plan, and spares (Gupta2012's racks)."""

from __future__ import annotations

from dataclasses import replace

import nova.conf
import numpy as np
from nova import objects

from hpc_sched.core.plan.pruning import hosts_with_spares
from hpc_sched.core.plan.result import Rejection
from hpc_sched.filters.base import GroupFilter, States, check_members, refused, select
from hpc_sched.nova_glue import served_requests
from hpc_sched.nova_glue.record import decision_record

CONF = nova.conf.CONF

# VMs of a request between two runs, and the fewest spares. Spares are needed up to the last VM:
# other requests take hosts meanwhile, and alternates are chosen at the end.
VMS_A_RUN = 64


class HPCRackCapacityFilter(GroupFilter):
    """Keeps the hosts of the plan's leaves, and spares in the next best leaves.

    Only while the places of the plan are claimed (``gang_claims``). Otherwise other requests
    may take them, and it keeps all hosts within the group's constraints.

    Nova filters and weighs the kept hosts again for every further VM, which is fast for few
    hosts. Spares are for lost claims: places for the whole group once more, and hosts for all
    retries. They keep ``hpc:require`` and ``hpc:max_leaves``. A group without a plan is
    refused if it has these constraints, else it keeps all hosts.

    It runs again after every 64 VMs of a request, and removes spare leaves that are not needed
    any more, unless a VM was placed elsewhere than planned. It then keeps a spare place, on a
    host without VMs of the request, for each VM without a place, but at least 64. It refuses
    nothing at that time, because places have been claimed.

    Name it last in ``enabled_filters``: later filters do not see the hosts that it removes.
    """

    def run_filter_for_index(self, index: int) -> bool:
        """True if it runs for a VM of a request; ``index`` is the number of VMs before it."""
        return index % VMS_A_RUN == 0

    def _keep(self, states: States, spec: objects.RequestSpec) -> States:
        state = served_requests.get_state(spec, states)
        if state is None:
            return states
        positions = state.positions(states)
        group = state.group_request(positions)
        if not group.left:
            return states
        hpc_specs = state.request.hpc_specs
        if hpc_specs.constraints.bind_place:
            check_members(state)
        answer = state.decide(group)
        if state.decisions.revised:
            return states
        if isinstance(answer, Rejection) and hpc_specs.constraints.bind_place:
            if state.finds_more_room(group):
                return self._keep(states, spec)
            raise refused(group.refusal(answer))
        if isinstance(answer, Rejection) or hpc_specs.is_flat:
            decision_record.log(state, answer)
            return states
        if state.gang is None or not state.gang.is_held:
            # Others may take the places of the plan, and what is removed now stays removed.
            decision_record.log(state, answer)
            return select(states, group.permitted(answer)[positions])
        wanted = max(answer.count, group.left)
        spares = max(wanted, VMS_A_RUN) if state.claims.number else wanted
        retries = CONF.scheduler.max_attempts - 1
        places = wanted + spares + retries
        problem = group.as_planned(answer).problem()
        if group.preferred is not None and problem.capacity.sum() < places:
            # Spares of other processors too.
            problem = replace(group, preferred=None).as_planned(answer).problem()
        is_avoided = (problem.capacity <= 0) & (group.problem().capacity > 0)
        mask = hosts_with_spares(
            problem,
            answer,
            group.open_hosts(),
            is_avoided | (group.per_host(state.claims.placed) > 0),
            places=places,
            hosts=spares + retries,
        )
        claimed = [place.position for place in state.gang.places.values()]
        keep = mask[state.host_index[positions]] | np.isin(positions, claimed)
        state.count_removed(
            "outside the plan's leaves and spares", int((~keep).sum()), bounds_plan=False
        )
        decision_record.log(state, answer)
        return select(states, keep)

    def _needs_proof(self, spec: objects.RequestSpec) -> bool:
        # The hosts kept by the first run keep the guarantee.
        return not served_requests.count_placed(spec) and super()._needs_proof(spec)
