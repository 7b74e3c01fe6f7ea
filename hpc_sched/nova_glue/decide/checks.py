"""The checks of a request before its group is planned; each raises RefusedError."""

from nova import objects
from oslo_log import log as logging

from hpc_sched import exceptions
from hpc_sched.core.fragmentation.price import empty_hosts
from hpc_sched.core.hpc_specs import HPCSpecs
from hpc_sched.core.plan.objective import LeastBottleneck
from hpc_sched.core.plan.result import Refusal
from hpc_sched.nova_glue.decide.group_placement import GroupPlacement
from hpc_sched.nova_glue.read import request_spec
from hpc_sched.nova_glue.read.inputs import Inputs
from hpc_sched.nova_glue.read.instances import group_members
from hpc_sched.nova_glue.read.room import host_state_room

LOG = logging.getLogger(__name__)


def refused(refusal: Refusal) -> exceptions.RefusedError:
    """Return the exception with which a filter refuses a request."""
    return exceptions.RefusedError(refusal.operator, refusal.tenant)


def check_values(group: GroupPlacement) -> None:
    """Check the values, the final size and the members of a group."""
    inputs, hpc_specs = group.inputs, group.inputs.request.hpc_specs
    # An invalid preference does not refuse a move.
    if hpc_specs.faults and (hpc_specs.is_unclear or not inputs.membership.is_move):
        raise exceptions.RefusedError("; ".join(hpc_specs.faults))
    warn_of_faults(group)
    if not inputs.membership.is_move and (fault := group.request().policy_fault):
        raise exceptions.RefusedError(fault)
    _check_final_size(group)
    if hpc_specs.needs_proof:
        check_members(inputs)
        check_isolation(inputs)


def warn_of_faults(group: GroupPlacement) -> None:
    """Log ignored constraints once per request."""
    if group.is_warned:
        return
    group.is_warned = True
    request = group.inputs.request
    ignored = request.hpc_specs.faults + request.hpc_specs.ignored
    if isinstance(group.inputs.first.objective, LeastBottleneck):
        from hpc_sched.nova_glue.read import objective

        ignored += objective.ignored(group.inputs.first)
    if ignored:
        LOG.warning("Ignored for instance %s: %s", request.instance_uuid, "; ".join(ignored))


def check_members(inputs: Inputs) -> None:
    """Check that the known members suffice to keep the guarantees of a group with a new VM.

    :raises exceptions.RefusedError: if a cell or Placement has not answered
    """
    found = inputs.membership
    if found.is_partial and not found.is_move and not inputs.has_known_members:
        raise exceptions.RefusedError(
            f"where the members of the group are is not known: {'; '.join(found.problems)}",
            "where the members of the group are is not known at the moment; try again later",
        )


def check_isolation(inputs: Inputs) -> None:
    """Check that the uplinks that other isolated groups use are known, if a new one asks for that.

    :raises exceptions.RefusedError: if a database or Placement has not answered
    """
    why = getattr(inputs.first.objective, "unverified", None)
    if why is not None and not inputs.membership.is_move:
        what = "which uplinks other isolated groups use is not known"
        raise exceptions.RefusedError(f"{what}: {why}", f"{what} at the moment; try again later")


def check_without_group(spec: objects.RequestSpec, hpc_specs: HPCSpecs) -> None:
    """Check that a request without a group has no invalid values, and no constraints of a group.

    One query for a request that would be refused, unless it says that it is a move.
    """
    is_plain = not hpc_specs.faults and not hpc_specs.group_keys
    # A flavor must not block a VM that runs.
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


def _check_final_size(group: GroupPlacement) -> None:
    """Check that the group's final size fits its constraints on an empty cloud.

    Reads the sizes of all hosts before a request is refused, nothing else.
    """
    inputs = group.inputs
    hpc_specs, demand = inputs.request.hpc_specs, inputs.request.demand
    is_bound = hpc_specs.constraints.bound_final_size
    if inputs.membership.is_move or hpc_specs.is_flat or not is_bound:
        return
    now = group.request()
    own = host_state_room.empty_of_states(inputs.states, demand)
    capacity = empty_hosts(inputs.topology, inputs.host_index, own)
    if now.contradiction(capacity) is None:
        return
    # Those that are full now may be larger than all candidates.
    sizes = host_state_room.empty_capacities(demand)
    if sizes is None:
        return
    capacity[:] = 0
    for (host, node), size in sizes.items():
        name = inputs.fabric.name_of(host, node)
        if name in inputs.topology:
            capacity[inputs.topology.index_of(name)] = size
    capacity[inputs.host_index] = own
    if found := now.contradiction(capacity):
        raise exceptions.RefusedError(found)
