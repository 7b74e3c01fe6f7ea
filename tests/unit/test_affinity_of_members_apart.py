"""A group with policy affinity whose members have moved apart grows where its plan costs least.

::

              core
           /        \\
        leaf1      leaf2
       /     \\    /     \\
      h1     h2  h3     h4
      1      1   1              VMs that each takes
      1      2   1      1       members
"""

from dataclasses import replace

import numpy as np

from hpc_sched.core.group_request import GroupRequest
from hpc_sched.core.plan.result import Plan
from hpc_sched.topology import Topology
from tests.unit.recorded_groups import Group, random_group

TREE = {"core": {"leaf1": ["h1", "h2"], "leaf2": ["h3", "h4"]}}
ROOM = {"h1": 1, "h2": 1, "h3": 1}
MEMBERS = {"h1": 1, "h2": 2, "h3": 1, "h4": 1}


def best_on_one_host(request: GroupRequest) -> tuple[int, float] | None:
    """Return VMs (negative) and cost of the best plan on one host, each host planned alone."""
    plans = []
    for host in np.flatnonzero(request.room):
        room = np.zeros_like(request.room)
        room[host] = request.room[host]
        plan = replace(request, room=room).decide()
        if isinstance(plan, Plan):
            plans.append((-plan.count, plan.hop_bytes))
    return min(plans, default=None)


def test_one_vm_more_takes_the_members_host_nearest_to_the_others():
    """The plan of two VMs breaks the policy, and no host takes two: one host takes one."""
    group = Group(
        topology=Topology.from_tree(TREE),
        places=[(host, host) for host in ROOM],
        room=list(ROOM.values()),
        free=list(ROOM.values()),
        members={(host, host): count for host, count in MEMBERS.items()},
        left=1,
        awaiting=2,
        policy="affinity",
    )
    plan = group.request().decide()
    assert isinstance(plan, Plan)
    assert plan.hosts == {"h2": 1}


def test_the_plan_is_the_best_of_those_on_each_single_host():
    compared = 0
    for seed in range(6000):
        group = random_group(seed)
        if group.policy != "affinity" or len(group.members) < 2 or group.shunned or group.packing:
            continue
        request = group.request()
        if request.hard_policy is None or not request.hard_policy.has_single_nodes:
            continue
        plan = request.decide()
        expected = best_on_one_host(request)
        assert ((-plan.count, plan.hop_bytes) if isinstance(plan, Plan) else None) == expected, seed
        compared += 1
    assert compared > 100
