"""The choice of HPCHomogeneityFilter: one processor type for a group (Gupta2012)."""

from dataclasses import replace

from hpc_sched.core.arrays import Mask
from hpc_sched.core.plan.result import Plan, Refusal
from hpc_sched.core.processor_choice import ProcessorChoice, choose_processor
from hpc_sched.core.processors.group_processors import HostProcessors
from hpc_sched.nova_glue import configured_plugins
from hpc_sched.nova_glue.decide import checks
from hpc_sched.nova_glue.decide.group_placement import GroupPlacement, finds_more_room
from hpc_sched.nova_glue.read.room import host_processors


def choose(group: GroupPlacement, *, is_claimed: bool) -> Mask | None:
    """Return which candidates are of the chosen type if the others are to be removed, or None.

    Without a removal the type is preferred from then on. Shape (candidates,).

    :param is_claimed: whether a plan was claimed: HPCGroupFilter should come later
    :raises exceptions.RefusedError: if one type is required, and none holds the group
    """
    wanted = group.inputs.request.hpc_specs.homogeneous
    is_required = wanted == "true"
    if is_required:
        checks.check_members(group.inputs)
    elif wanted == "false" or is_claimed:
        return None
    inputs, positions = group.inputs, group.event.candidates
    processors = host_processors.of(
        inputs.states, positions, inputs.membership.members, inputs.membership.cells, inputs.fabric
    )
    if is_required and inputs.membership.is_move and None in processors.members:
        # No move is refused because something could not be read.
        is_required = False
    how = "true" if is_required else "prefer"
    group.inputs = replace(inputs, processors=processors, homogeneous=how)
    choice = _choice(group, processors)
    if isinstance(choice, Refusal) and finds_more_room(group, group.request(positions)):
        choice = _choice(group, processors)
    if isinstance(choice, Refusal):
        raise checks.refused(choice)
    if choice is None:
        return None
    keep = choice.hypervisors[positions]
    others = len(positions) - int(keep.sum())
    group.removed.count(f"processor type other than {choice.name}", others)
    if is_required or not configured_plugins.enabled().has_topology_weigher:
        # Without a topology weigher nothing would prefer the type.
        return keep
    request = group.request(positions)
    group.inputs = group.inputs.on_type(choice.hypervisors)
    group.decisions.keep(request, choice.answer)
    return None


def _choice(
    group: GroupPlacement, processors: HostProcessors
) -> ProcessorChoice[Plan] | Refusal | None:
    request = replace(
        group.request(group.event.candidates),
        processors=processors,
        homogeneous=group.inputs.homogeneous,
    )
    return choose_processor(request, group.answer, lambda plan: plan.count)
