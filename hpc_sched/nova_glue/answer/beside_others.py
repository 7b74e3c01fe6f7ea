"""The hosts that the filters of shared hosts keep."""

from __future__ import annotations

from nova.scheduler import host_manager

from hpc_sched.nova_glue.read.instances.colocated_instances import ColocatedInstances

States = list[host_manager.HostState]


def with_room(colocated: ColocatedInstances, rules: str, why: str, states: States) -> States:
    """Return the hosts with room for a VM of the request beside the VMs that they have.

    :param rules: the filter whose rules count
    :param why: reason of removed hosts in the decision log
    """
    passes = (colocated.room(rules, states) > 0).tolist()
    kept = [state for state, has_room in zip(states, passes, strict=True) if has_room]
    if kept and not colocated.placed:
        removed = [state for state, has_room in zip(states, passes, strict=True) if not has_room]
        colocated.note_removed(why, removed)
    return kept
