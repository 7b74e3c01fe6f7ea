"""HPCRackCapacityFilter: only the leaves that the plan uses, and spares (Gupta2012's racks)."""

from __future__ import annotations

import nova.conf
from nova import objects

from hpc_sched.core.plan.pruning import hosts_with_spares
from hpc_sched.core.plan.result import Rejection
from hpc_sched.filters.base import GroupFilter, States, check_members, select
from hpc_sched.nova_glue.request import decision_record, served_requests
from hpc_sched.nova_glue.request.group_state import refused

CONF = nova.conf.CONF

# VMs of a request between two runs, and the spares that are left for the last of them: others
# may have taken a leaf since the request began, and alternates are chosen at its end.
VMS_A_RUN = 64


class HPCRackCapacityFilter(GroupFilter):
    """Keeps the hosts of the leaves that the plan uses, and spares from the next best leaves.

    Nova filters and weighs what is left for every further VM of the request, so those cost
    next to nothing, and a claim that is lost falls on a spare: as many places again as the
    group needs, and hosts for all retries. Spares are never outside ``hpc:require`` and
    ``hpc:max_leaves``; of a group of class ``async``, which is not placed by leaves, all hosts
    that these wishes permit are kept. A group that has no plan passes as it came, except with
    these wishes, which refuse it.

    It runs again after every 64 VMs of a request and removes spare leaves that are not needed
    any more, as long as all VMs have gone where they were planned: as many spares as VMs that
    are still to be placed are enough then, but not fewer than 64, on hosts that have none of
    the request. Nothing is refused at that time, for places have been claimed.

    Name it last in ``enabled_filters``: what it removes no later filter sees.
    """

    def run_filter_for_index(self, index: int) -> bool:
        """Tell whether it runs for a VM of a request, by the number of those before it."""
        return index % VMS_A_RUN == 0

    def _keep(self, states: States, spec: objects.RequestSpec) -> States:
        state = served_requests.state_of(spec, states)
        if state is None or not state.left:
            return states
        if state.request.hpc_specs.needs_place:
            check_members(state)
        positions = state.positions(states)
        group = state.group_request(positions)
        answer = state.plan(group)
        if state.planning.revised:
            return states
        if isinstance(answer, Rejection) and state.request.hpc_specs.needs_place:
            raise refused(group.refusal(answer))
        if isinstance(answer, Rejection) or state.is_flat:
            decision_record.log(state, answer)
            return states
        if not state.request.hpc_specs.by_topology:
            # MDOBP chooses their hosts, and no plan of leaves: they keep what they ask for.
            decision_record.log(state, answer)
            return select(states, group.permitted(answer)[positions])
        wanted = max(answer.count, state.left)
        spares = max(wanted, VMS_A_RUN) if state.claims.number else wanted
        retries = CONF.scheduler.max_attempts - 1
        mask = hosts_with_spares(
            group.problem(),
            answer,
            group.open_hosts(),
            group.per_host(state.claims.placed) > 0,
            places=wanted + spares + retries,
            hosts=spares + retries,
        )
        keep = mask[state.host_index[positions]]
        state.count_removed(
            "outside the plan's leaves and spares", int((~keep).sum()), bounds_plan=False
        )
        decision_record.log(state, answer)
        return select(states, keep)

    def _needs_proof(self, spec: objects.RequestSpec) -> bool:
        # What is left by the first run keeps the guarantee.
        return not served_requests.placed(spec) and super()._needs_proof(spec)
