"""The planner's input of a decision, for the decision log."""

from collections.abc import Sequence

from nova.scheduler import host_manager

from hpc_sched.core.counterfactual.recording import LeftOut, RemovedHosts, logged_input
from hpc_sched.core.group_request import GroupRequest
from hpc_sched.core.logged.decision_entry import LoggedInput
from hpc_sched.nova_glue.read.inputs import Inputs
from hpc_sched.nova_glue.read.room import compared_hosts, host_state_room


def of(inputs: Inputs, request: GroupRequest) -> LoggedInput | None:
    """Return what a group was planned from; None for class ``async``, or members on hosts down.

    Nothing is read. O(HostStates log HostStates).
    """
    if inputs.request.hpc_specs.is_flat:
        return None
    removed = inputs.colocated.removed_hosts if inputs.colocated is not None else {}
    left_out = LeftOut(
        free=inputs.rooms.left,
        shunned=inputs.shunned,
        removed={why: _removed(inputs, hosts) for why, hosts in removed.items() if hosts},
        processors=inputs.processors,
        homogeneous=inputs.homogeneous,
        by_mdobp=inputs.request.by_mdobp,
    )
    return logged_input(request, left_out)


def _removed(inputs: Inputs, hosts: Sequence[host_manager.HostState]) -> RemovedHosts:
    """Return hosts that a filter removed; their rooms are bounds by the HostStates."""
    topology, demand = inputs.topology, inputs.request.demand
    names, _ = inputs.fabric.names.find_all([(host.host, host.nodename) for host in hosts])
    candidates = set(map(id, inputs.states))
    known = [
        (host, name)
        for host, name in zip(hosts, names, strict=True)
        if name in topology and id(host) not in candidates
    ]
    return RemovedHosts(
        [topology.index_of(name) for _, name in known],
        [
            host_state_room.capacity(host, demand, compared_hosts.excess_of(host))
            for host, _ in known
        ],
    )
