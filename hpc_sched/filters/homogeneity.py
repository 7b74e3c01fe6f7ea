"""HPCHomogeneityFilter: all VMs of a group on one processor type (Gupta2012)."""

from __future__ import annotations

from dataclasses import replace

from nova import objects

from hpc_sched.core.plan.result import Refusal
from hpc_sched.core.processor_choice import choose_processor
from hpc_sched.filters.base import GroupFilter, States, check_members, refused, select
from hpc_sched.nova_glue import configured_plugins, served_requests
from hpc_sched.nova_glue.read.room import host_processors


class HPCHomogeneityFilter(GroupFilter):
    """Keeps the hosts of one processor type, or puts them first.

    With ``hpc:homogeneous=true`` other hosts are removed. With ``prefer`` they stay, for others
    may take places of the type meanwhile: plans and weighers use them only if the type cannot
    hold the group. Without a topology weigher nothing would prefer the type, and they are removed.

    The type is the type of the group's members. Without members it is the best type that holds all
    VMs of this request and, if any type does, those of other requests and of
    ``hpc:group_size`` too. If no type holds the group, none is preferred; with ``true`` the
    request is refused. ``true`` also refuses new VMs of a group whose members' type is not known.
    """

    def _keep(self, states: States, spec: objects.RequestSpec) -> States:
        state = served_requests.get_state(spec, states)
        if state is None or state.request.hpc_specs.homogeneous == "false":
            return states
        is_required = state.request.hpc_specs.homogeneous == "true"
        if is_required:
            check_members(state)
        elif state.gang is not None:
            # HPCGroupFilter, which should come later, has claimed a plan.
            return states
        positions = state.positions(states)
        group = state.group_request(positions)
        processors = host_processors.of(
            state.candidates, positions, state.group.members, state.group.cells, state.fabric
        )
        if is_required and state.group.is_move and None in processors.members:
            # No move is refused because something could not be read.
            is_required = False
        homogeneous = "true" if is_required else "prefer"
        group = replace(group, processors=processors, homogeneous=homogeneous)
        state.processors, state.homogeneous = processors, homogeneous
        choice = choose_processor(group, state.decide, lambda plan: plan.count)
        if isinstance(choice, Refusal) and state.finds_more_room(group):
            group = replace(
                state.group_request(positions), processors=processors, homogeneous=homogeneous
            )
            choice = choose_processor(group, state.decide, lambda plan: plan.count)
        if isinstance(choice, Refusal):
            raise refused(choice)
        if choice is None:
            return states
        keep = choice.hypervisors[positions]
        removed = len(states) - int(keep.sum())
        state.count_removed(f"processor type other than {choice.name}", removed)
        if is_required or not configured_plugins.enabled().has_topology_weigher:
            return select(states, keep)
        state.prefer(choice.hypervisors, group, choice.answer)
        return states
