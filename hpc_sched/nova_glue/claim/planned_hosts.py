"""The HostStates of a plan's places."""

from collections import defaultdict

from hpc_sched.core.arrays import Array
from hpc_sched.core.group_request import GroupRequest
from hpc_sched.core.plan.result import Plan
from hpc_sched.nova_glue.read.inputs import Inputs


def hosts_of_places(
    inputs: Inputs, request: GroupRequest, positions: Array, plan: Plan
) -> list[int]:
    """Return the HostState of each place of a plan; -1 if its host is no candidate any more."""
    room = request.capacity
    rows: defaultdict[str, list[int]] = defaultdict(list)
    for i in positions.tolist():
        name = inputs.name_of(i)
        if name in plan.hosts:
            rows[name] += [i] * min(int(room[i]), plan.hosts[name])
    taken = {name: found[: plan.hosts[name]] for name, found in rows.items()}
    return [taken[name].pop(0) if taken.get(name) else -1 for name in plan.places]
