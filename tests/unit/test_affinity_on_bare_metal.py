"""An affinity group takes the service whose nodes cost least, whatever their names.

::

              core
          /          \\
       pod1          pod2
      /    \\          |
    la      lb       lc
   a1 b1    b2       a2     nodes of the services a and b; a0, under lb, is of b
"""

from collections.abc import Sequence

import numpy as np

from hpc_sched.core.constraints.server_group_policy import hard_policy, keeps
from hpc_sched.core.group_request import GroupRequest
from hpc_sched.core.plan.result import Plan
from hpc_sched.core.plan.tie_order import TieOrder
from hpc_sched.topology import Topology

FABRIC = Topology.from_tree(
    {"core": {"pod1": {"la": ["a1", "b1"], "lb": ["b2", "a0"]}, "pod2": {"lc": ["a2", "b3"]}}}
)


def planned(nodes: Sequence[str], full: Sequence[str] = ()) -> Plan:
    """Return the plan of two VMs on nodes that take one each."""
    places = [("b" if node == "a0" else node[0], node) for node in nodes]
    index = np.array([FABRIC.index_of(node) for node in nodes])
    group = GroupRequest(
        topology=FABRIC,
        tie=TieOrder(FABRIC, "group"),
        host_index=index,
        room=np.array([int(node not in full) for node in nodes]),
        members=np.zeros(len(FABRIC.hosts), dtype=np.int64),
        left=2,
        awaiting=2,
        server_group_policy="affinity",
        hard_policy=hard_policy("affinity", None, {}, places, FABRIC.leaf_index[index]),
    )
    plan = group.decide()
    assert isinstance(plan, Plan), str(plan)
    return plan


def test_the_plan_is_that_of_least_hop_byte():
    assert planned(["a1", "a2", "b1", "b2"]).hosts == {"b1": 1, "b2": 1}


def test_a_full_node_changes_nothing():
    # The scheduler has no full nodes among its candidates, a snapshot has.
    nodes = ["a2", "b1", "b3", "a1"]
    assert planned(["a0", *nodes], full=["a0"]).hosts == planned(nodes).hosts


def test_members_on_two_services_break_no_plan_on_one_of_them():
    """They may have moved there: only new VMs are judged."""
    places = [("a", "a1"), ("b", "b1")]
    index = np.array([FABRIC.index_of(node) for _, node in places])
    on_both = dict.fromkeys(places, 1)
    limit = hard_policy("affinity", None, on_both, places, FABRIC.leaf_index[index])
    assert limit is not None
    assert [keeps(limit, np.array(new)) for new in ([1, 0], [0, 1], [1, 1])] == [True, True, False]
