"""Anti-affinity on services with nodes under several pods finds the pod that holds the group.

::

             core
          /        \\
       pod1        pod2
      /    \\      /    \\
    la      lb   lc      ld
    n1      n2   n3      n4
    s1      s1   s1      s2     the service of each node, one VM a service
"""

import numpy as np
import pytest

from hpc_sched.core.constraints import Constraints
from hpc_sched.core.constraints.server_group_policy import hard_policy
from hpc_sched.core.group_request import GroupRequest
from hpc_sched.core.plan.result import Plan
from hpc_sched.core.plan.tie_order import TieOrder
from hpc_sched.topology import Topology

PLACES = [("s1", "n1"), ("s1", "n2"), ("s1", "n3"), ("s2", "n4")]


@pytest.mark.parametrize("group_id", list("abcdefgh"))
def test_two_vms_that_fit_under_one_pod_are_not_refused(group_id):
    topology = Topology.from_tree(
        {"core": {"pod1": {"la": ["n1"], "lb": ["n2"]}, "pod2": {"lc": ["n3"], "ld": ["n4"]}}}
    )
    index = np.array([topology.index_of(node) for _, node in PLACES])
    group = GroupRequest(
        topology=topology,
        tie=TieOrder(topology, group_id),
        host_index=index,
        room=np.ones(4, dtype=np.int64),
        members=np.zeros(4, dtype=np.int64),
        left=2,
        awaiting=2,
        constraints=Constraints(require="pod"),
        server_group_policy="anti-affinity",
        hard_policy=hard_policy("anti-affinity", 1, {}, PLACES, topology.leaf_index[index]),
    )
    plan = group.decide()
    assert isinstance(plan, Plan), str(plan)
    assert set(plan.hosts) == {"n3", "n4"}
