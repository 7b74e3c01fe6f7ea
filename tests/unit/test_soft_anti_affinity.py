"""Soft anti-affinity: one VM a host wherever the group fits so; only then compactness.

::

                  core
             /            \\
          pod1            pod2
        /      \\        /      \\
     leaf1    leaf2   leaf3    leaf4
     a1..a4   b1..b4  c1..c4   d1..d4      each host takes four VMs
"""

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest

from hpc_sched.core.constraints import NO_CONSTRAINTS, Constraints
from hpc_sched.core.group_request import GroupRequest
from hpc_sched.core.plan.ranking import hosts_with_spares
from hpc_sched.core.plan.result import Plan, Rejection
from hpc_sched.core.plan.tie_order import TieOrder
from hpc_sched.topology import Topology
from tests.unit import small_cases
from tests.unit.fabrics import Case, only_plans
from tests.unit.plan_oracle import Oracle

FABRIC = Topology.from_tree(
    {
        "core": {
            "pod1": {"leaf1": ["a1", "a2", "a3", "a4"], "leaf2": ["b1", "b2", "b3", "b4"]},
            "pod2": {"leaf3": ["c1", "c2", "c3", "c4"], "leaf4": ["d1", "d2", "d3", "d4"]},
        }
    }
)
CASES = range(0, 6000, 4)


def group(case: Case, constraints: Constraints = NO_CONSTRAINTS, **fields: object) -> GroupRequest:
    """Return a group with policy soft-anti-affinity; a hypervisor is a host of the fabric."""
    fabric = case.fabric
    made = GroupRequest(
        topology=fabric,
        tie=TieOrder(fabric, ""),
        host_index=None,
        room=np.array([case.capacity.get(host, 0) for host in fabric.hosts]),
        members=np.array([case.members.get(host, 0) for host in fabric.hosts]),
        left=case.count,
        awaiting=case.count,
        constraints=constraints,
        server_group_policy="soft-anti-affinity",
        pack_hosts=False,
        packing=case.packing,
    )
    return replace(made, **fields)


def on_fabric(
    count: int,
    constraints: Constraints = NO_CONSTRAINTS,
    members: dict[str, int] | None = None,
    **fields: object,
) -> GroupRequest:
    case = Case(FABRIC.to_tree(), dict.fromkeys(FABRIC.hosts, 4), members or {}, count)
    return group(case, constraints, **fields)


def bounded(case: Case, bound: int) -> Case:
    """Return a case whose hosts have at most so many VMs of the group, members included."""
    capacity = {
        host: min(room, max(bound - case.members.get(host, 0), 0))
        for host, room in case.capacity.items()
    }
    return replace(case, capacity=capacity, pack_hosts=False)


@pytest.mark.parametrize("first", range(4), ids="from {}".format)
def test_the_plan_is_the_best_one_under_the_smallest_bound_that_has_any(first):
    kinds: Counter[str] = Counter()
    for seed in CASES[first::4]:
        case = replace(small_cases.random_case(seed), min_leaves=0)
        if not case.count:
            continue
        answer = group(case, Constraints(require=case.require, max_leaves=case.max_leaves)).decide()
        most = max(case.members.values(), default=0) + case.count
        for bound in range(1, most + 1):
            best = Oracle(bounded(case, bound)).best()
            if best is not None:
                break
        if best is None:
            assert isinstance(answer, Rejection), seed
            kinds["refused"] += 1
            continue
        assert isinstance(answer, Plan), seed
        together = case.together(answer.hosts)
        assert max(together[host] for host in answer.hosts) <= bound, seed
        assert sum(answer.leaves.values()) == case.count, seed
        cost = sum(best.leaves.values()) and Oracle(bounded(case, bound)).costs(
            np.array([[answer.leaves.get(leaf, 0) for leaf in case.fabric.leaves]])
        )
        assert cost == best.cost, seed
        kinds[f"bound {min(bound, 3)}"] += 1
    assert all(kinds[kind] > 10 for kind in ("refused", "bound 1", "bound 2", "bound 3")), kinds


def test_sixteen_vms_have_a_host_each_though_four_hosts_would_take_them():
    plan = only_plans(on_fabric(16).decide())
    assert plan.hosts == dict.fromkeys(FABRIC.hosts, 1)


def test_what_is_required_comes_before_a_host_for_each():
    plan = only_plans(on_fabric(7, Constraints(require="leaf")).decide())
    assert sorted(plan.hosts.values()) == [1, 2, 2, 2]
    plan = only_plans(on_fabric(7, Constraints(require="pod")).decide())
    assert set(plan.hosts.values()) == {1}


def test_a_host_for_each_comes_before_what_is_preferred():
    plan = only_plans(on_fabric(5, Constraints(prefer="leaf")).decide())
    assert set(plan.hosts.values()) == {1}
    assert plan.switch == "core"
    assert len(plan.leaves) == 2


def test_members_count_so_that_a_group_that_grows_takes_other_hosts():
    plan = only_plans(on_fabric(6, members={"a1": 1, "a2": 1}).decide())
    assert set(plan.hosts) == {"a3", "a4", "b1", "b2", "b3", "b4"}


def test_the_bound_is_of_the_whole_group_and_not_of_one_request_of_many():
    """Twenty single creates sent in parallel: two VMs on some hosts, as in one request for all."""
    plan = only_plans(on_fabric(1, awaiting=20).decide())
    assert plan.count == 20
    assert max(plan.hosts.values()) == 2


def test_orphaned_build_requests_put_no_two_vms_on_one_host():
    plan = only_plans(on_fabric(8, awaiting=60, orphans=52).decide())
    assert set(plan.hosts.values()) == {1}


def test_a_group_that_fits_under_no_bound_is_refused_as_without_one():
    request = on_fabric(17, Constraints(require="leaf"))
    refused = request.decide()
    assert isinstance(refused, Rejection)
    free = replace(request, server_group_policy=None).decide()
    assert isinstance(free, Rejection)
    assert refused.operator == free.operator
    assert refused.gangs == free.gangs


def test_other_policies_have_no_bound():
    for policy in (None, "soft-affinity"):
        plan = only_plans(on_fabric(16, server_group_policy=policy, pack_hosts=True).decide())
        assert set(plan.hosts.values()) == {4}


def test_after_the_planned_hosts_those_without_vms_of_the_group_come_first():
    request = on_fabric(3, members={"a1": 1})
    order = request.host_order(request.decide(), 0)
    names = [FABRIC.hosts[i] for i in order]
    assert set(names[:3]) == {"a2", "a3", "a4"}
    assert names[-1] == "a1"


def test_spares_are_hosts_and_not_second_places_on_the_planned_ones():
    request = on_fabric(4)
    plan = only_plans(request.decide())
    problem = request.as_planned(plan).problem()
    kept = hosts_with_spares(problem, plan, places=8, hosts=4)
    assert kept.sum() == 8


def test_mdobp_keeps_the_bound_inside_a_leaf():
    case = Case(FABRIC.to_tree(), dict.fromkeys(FABRIC.hosts, 4), {}, 4)
    for seed in range(20):
        packing = small_cases.packing(small_cases.random.Random(seed), len(FABRIC.hosts))
        plan = only_plans(group(replace(case, packing=replace(packing, members_first=0))).decide())
        assert set(plan.hosts.values()) == {1}
        assert len(plan.leaves) == 1
