"""A plan is on hosts of the preferred processor type while these can hold the group.

::

               core
          /      |      \\
       leaf1   leaf2   leaf3
       a1..a3  b1..b3  c1..c3     each host takes one VM
"""

from dataclasses import replace

import numpy as np
import pytest

from hpc_sched.core.constraints import Constraints
from hpc_sched.core.group_request import GroupRequest
from tests.unit.fabrics import only_plans
from tests.unit.test_shunned_hosts import FABRIC, group


def preferring(count: int, preferred: str, shunned: str = "", **fields: object) -> GroupRequest:
    """Return a group; the names of hosts are separated by blanks."""
    mask = np.isin(FABRIC.hosts, preferred.split())
    return replace(group(count, shunned), preferred=mask, **fields)


def test_two_leaves_of_the_preferred_type_come_before_one_leaf_of_others():
    plan = only_plans(preferring(3, "a1 a2 b1 b2").decide())
    assert sum(plan.hosts[host] for host in plan.hosts if host in "a1 a2 b1 b2") == 3


def test_a_group_that_the_preferred_type_cannot_hold_is_planned_on_all_hosts():
    plan = only_plans(preferring(3, "a1 b1").decide())
    assert list(plan.leaves.values()) == [3]
    required = preferring(3, "a1 a2 b1 b2", constraints=Constraints(require="leaf"))
    assert list(only_plans(required.decide()).leaves.values()) == [3]


@pytest.mark.parametrize(
    ("count", "hosts"),
    [
        pytest.param(2, {"a1", "a2"}, id="of the type and not shunned"),
        pytest.param(3, {"c1", "c2", "c3"}, id="of another type and not shunned"),
        pytest.param(7, None, id="all"),
    ],
)
def test_shunned_hosts_are_avoided_before_the_type_is_kept(count, hosts):
    plan = only_plans(preferring(count, "a1 a2 a3", shunned="a3 b1 b2 b3").decide())
    assert len(plan.hosts) == count
    if hosts is not None:
        assert set(plan.hosts) == hosts


def test_a_type_without_room_is_not_preferred():
    request = preferring(3, "a1")
    room = request.room.copy()
    room[FABRIC.index_of("a1")] = 0
    assert replace(request, room=room).on_preferred() is None
    assert preferring(3, " ".join(FABRIC.hosts)).on_preferred() is None


def test_a_vm_that_needs_another_host_than_planned_tries_those_of_the_type_first():
    request = preferring(2, "a1 b1 c1")
    plan = only_plans(request.decide())
    order = [FABRIC.hosts[i] for i in request.host_order(plan, 0)]
    assert set(order[:3]) == {"a1", "b1", "c1"}
    assert not request.uses(plan, ~request.preferred)
    open_to_all = request.as_planned(only_plans(preferring(4, "a1 b1 c1").decide()))
    assert open_to_all.room.all()
