"""HPCHomogeneityFilter: all VMs of a group on one processor type (Gupta2012)."""

from __future__ import annotations

from dataclasses import replace

from nova import objects

from hpc_sched.core.plan.result import Refusal
from hpc_sched.filters.base import GroupFilter, States, check_members, select
from hpc_sched.nova_glue.request import served_requests
from hpc_sched.nova_glue.request.group_state import refused
from hpc_sched.nova_glue.room import host_processors


class HPCHomogeneityFilter(GroupFilter):
    """Keeps the hosts of one processor type.

    The type that the group's members run on; where there are none, the best of the types that
    hold most of the group: this request's VMs at least, and where one can, those of other
    requests and of ``hpc:group_size``. Where no single type can, all hosts pass with
    ``hpc:homogeneous=prefer``; with ``true`` the request is refused, as it is where the type
    of a member is not known. HPCGroupFilter, where it is enabled behind this one, tells the
    user why.
    """

    def _keep(self, states: States, spec: objects.RequestSpec) -> States:
        state = served_requests.state_of(spec, states)
        if state is None or state.request.hpc_specs.homogeneous == "false":
            return states
        if state.request.hpc_specs.homogeneous == "true":
            check_members(state)
        positions = state.positions(states)
        group = state.group_request(positions)
        processors = host_processors.of(state, positions)
        choice = replace(group, processors=processors).choose_processor(
            state.plan, lambda plan: plan.count
        )
        if isinstance(choice, Refusal):
            raise refused(choice)
        if choice is None:
            return states
        keep = choice.hypervisors[positions]
        removed = len(states) - int(keep.sum())
        state.count_removed(f"processor type other than {choice.name}", removed)
        return select(states, keep)
