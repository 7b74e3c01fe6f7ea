"""HPCRackCapacityFilter: only the leaves that the plan uses, and spares (Gupta2012's racks)."""

from __future__ import annotations

import nova.conf
from nova import objects

from hpc_sched.core.answers import Rejection
from hpc_sched.core.pruning import kept
from hpc_sched.filters.base import GroupFilter, States, check_members, select
from hpc_sched.nova_glue import record, registry

CONF = nova.conf.CONF


class HPCRackCapacityFilter(GroupFilter):
    """Keeps the hosts of the leaves that the plan uses, and spares from the next best leaves.

    Nova filters and weighs what is left for every further VM of the request, so those cost
    next to nothing, and a claim that is lost falls on a spare: as many places again as the
    group needs, and hosts for all retries. Spares are never outside ``hpc:require`` and
    ``hpc:max_leaves``. A group that has no plan passes as it came, except with these wishes,
    which refuse it.

    Name it last in ``enabled_filters``: what it removes no later filter sees.
    """

    def _keep(self, states: States, spec: objects.RequestSpec) -> States:
        state = registry.state_of(spec, states)
        if state is None:
            return states
        if state.request.asked.needs_place:
            check_members(state)
        positions = state.positions(states)
        answer = state.planning.plan(positions)
        if isinstance(answer, Rejection) and state.request.asked.needs_place:
            raise state.rejection(answer, positions)
        if isinstance(answer, Rejection) or state.is_flat:
            record.tell(state, answer)
            return states
        wanted = max(answer.count, state.left)
        retries = CONF.scheduler.max_attempts - 1
        mask = kept(
            state.problem(positions),
            answer,
            state.open_hosts(positions),
            places=2 * wanted + retries,
            hosts=wanted + retries,
        )
        keep = mask[state.host_index[positions]]
        state.record.count_removed(
            "outside the plan's leaves and spares", int((~keep).sum()), bounds_plan=False
        )
        record.tell(state, answer)
        return select(states, keep)
