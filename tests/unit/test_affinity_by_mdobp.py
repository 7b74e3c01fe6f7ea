"""A group with policy affinity whose hosts MDOBP chooses goes where all of it has room.

::

        leaf
    /   |   |   \\
   n1  n2  n3   n4
   1   4   4    4     VMs that each takes
"""

import numpy as np

from hpc_sched.core.constraints.server_group_policy import hard_policy
from hpc_sched.core.group_request import GroupRequest
from hpc_sched.core.plan.result import Plan
from hpc_sched.core.plan.tie_order import TieOrder
from hpc_sched.core.sharing.mdobp import MDOBPInput
from hpc_sched.topology import Topology

HOSTS = ["n1", "n2", "n3", "n4"]
ROOM = np.array([1, 4, 4, 4])
VCPUS, MEMORY_MB = 4.0, 1024.0


def test_the_first_of_an_affinity_group_goes_to_a_host_with_room_for_all_of_it():
    topology = Topology.from_tree({"leaf": HOSTS})
    index = np.arange(len(HOSTS))
    group = GroupRequest(
        topology=topology,
        tie=TieOrder(topology, "group"),
        host_index=index,
        room=ROOM,
        members=np.zeros(len(HOSTS), dtype=np.int64),
        left=1,
        awaiting=1,
        missing=4,
        server_group_policy="affinity",
        hard_policy=hard_policy(
            "affinity", None, {}, [(host, host) for host in HOSTS], topology.leaf_index[index]
        ),
        pack_hosts=False,
        # The VM has another shape than the hosts: MDOBP takes a new host for each VM.
        packing=MDOBPInput(
            demand=np.array([VCPUS, MEMORY_MB]),
            free=np.stack([VCPUS * ROOM, np.full(len(HOSTS), 65536.0)], axis=1),
            usable=np.tile([16.0, 65536.0], (len(HOSTS), 1)),
        ),
    )
    plan = group.decide()
    assert isinstance(plan, Plan)
    assert plan.count == 4
    assert len(plan.hosts) == 1
