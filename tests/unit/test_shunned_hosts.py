"""A plan avoids shunned hosts while the group fits without them, and uses them before a refusal.

::

               core
          /      |      \\
       leaf1   leaf2   leaf3
       a1..a3  b1..b3  c1..c3     each host takes one VM
"""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hpc_sched.core.constraints import NO_CONSTRAINTS, Constraints
from hpc_sched.core.constraints.server_group_policy import hard_policy
from hpc_sched.core.group_request import GroupRequest
from hpc_sched.core.plan.result import Plan, Refusal, Rejection
from hpc_sched.core.plan.tie_order import TieOrder
from hpc_sched.core.processor_choice import ProcessorChoice, choose_processor
from hpc_sched.core.processors.group_processors import HostProcessors
from hpc_sched.core.processors.processor_ranking import ProcessorRanking
from hpc_sched.topology import Topology
from tests.unit import fabrics
from tests.unit.fabrics import only_plans

FABRIC = Topology.from_tree(
    {"core": {f"leaf{n}": [f"{x}1", f"{x}2", f"{x}3"] for n, x in enumerate("abc", 1)}}
)


def group(
    count: int,
    shunned: str = "",
    constraints: Constraints = NO_CONSTRAINTS,
    room: int = 1,
    **fields: object,
) -> GroupRequest:
    """Return a group; the names of the shunned hosts are separated by blanks."""
    mask = np.isin(FABRIC.hosts, shunned.split())
    made = GroupRequest(
        topology=FABRIC,
        tie=TieOrder(FABRIC, ""),
        host_index=None,
        room=np.full(len(FABRIC.hosts), room),
        members=np.zeros(len(FABRIC.hosts), dtype=np.int64),
        left=count,
        awaiting=count,
        constraints=constraints,
        shunned=mask if shunned else None,
    )
    return replace(made, **fields)


def types(**hosts: str) -> HostProcessors:
    """Return processor types, best first, of hosts whose names are separated by blanks."""
    masks = {name: np.isin(FABRIC.hosts, text.split()) for name, text in hosts.items()}
    return HostProcessors(masks, dict.fromkeys(hosts, 1), {}, ProcessorRanking(list(hosts)))


def refusal(request: GroupRequest) -> str:
    answer = request.decide()
    assert isinstance(answer, Rejection)
    return request.refusal(answer).operator


def test_a_group_goes_to_the_leaf_that_holds_it_without_shunned_hosts():
    plan = only_plans(group(3, "a2 c1").decide())
    assert plan.leaves == {"leaf2": 3}


def test_a_group_that_fits_in_no_leaf_without_shunned_hosts_is_split_and_not_put_on_them():
    request = group(3, "a1 b1 c1")
    plan = only_plans(request.decide())
    assert sorted(plan.leaves.values()) == [1, 2]
    assert not request.uses_shunned(plan)


@pytest.mark.parametrize(
    "constraints", [Constraints(require="leaf"), Constraints(max_leaves=1)], ids=["leaf", "leaves"]
)
def test_what_a_group_requires_comes_before_hosts_that_are_not_shunned(constraints):
    request = group(3, "a1 b1 c1", constraints)
    plan = only_plans(request.decide())
    assert list(plan.leaves.values()) == [3]
    assert request.uses_shunned(plan)


def test_what_a_group_prefers_does_not():
    plan = only_plans(group(3, "a1 b1 c1", Constraints(prefer="leaf")).decide())
    assert sorted(plan.leaves.values()) == [1, 2]


def test_a_group_that_needs_every_host_uses_the_shunned_ones():
    assert only_plans(group(9, "a1 b2 c3").decide()).count == 9


def test_a_refusal_says_what_it_says_without_shunned_hosts():
    for constraints, count in ((NO_CONSTRAINTS, 10), (Constraints(require="leaf"), 4)):
        assert refusal(group(count, "a1 b1", constraints)) == refusal(group(count, "", constraints))


def test_anti_affinity_takes_a_shunned_host_before_a_refusal():
    places = [(host, host) for host in FABRIC.hosts]
    policy = hard_policy("anti-affinity", 1, {}, places, FABRIC.leaf_index)
    fields = {"room": 4, "server_group_policy": "anti-affinity", "hard_policy": policy}
    assert "a1" not in only_plans(group(8, "a1", **fields).decide()).hosts
    assert only_plans(group(9, "a1", **fields).decide()).hosts["a1"] == 1


def test_soft_anti_affinity_puts_two_vms_on_a_host_before_one_on_a_shunned_host():
    """The weigher that shuns the host would send that VM to a host that has one already."""
    plan = only_plans(
        group(3, "a1 b1 c1", room=2, server_group_policy="soft-anti-affinity").decide()
    )
    assert set(plan.hosts.values()) == {1}
    shunned = "a1 a2 b1 b2 c1 c2 c3"
    plan = only_plans(group(3, shunned, room=2, server_group_policy="soft-anti-affinity").decide())
    assert plan.hosts.keys() == {"a3", "b3"}


def test_shunned_hosts_are_the_last_that_a_vm_tries():
    request = group(2, "a1 b1 c1")
    order = request.host_order(request.decide(), 0)
    assert {FABRIC.hosts[i] for i in order[-3:]} == {"a1", "b1", "c1"}


def test_they_are_shunned_after_claims_and_among_fewer_candidates():
    placed = np.isin(FABRIC.hosts, ["a2"]).astype(np.int64)
    rest = group(4, "a1 b1 c1").after(placed)
    assert not rest.uses_shunned(only_plans(rest.decide()))
    among = rest.among(np.isin(FABRIC.hosts, ["a1", "a3", "b1", "b2", "c2"]))
    assert only_plans(among.decide()).hosts.keys() == {"a3", "b2", "c2"}


def choose(request: GroupRequest) -> ProcessorChoice[Plan] | Refusal | None:
    return choose_processor(request, GroupRequest.decide, lambda plan: plan.count)


@pytest.mark.parametrize("homogeneous", ["true", "prefer"])
def test_a_later_processor_type_is_taken_if_the_best_one_needs_shunned_hosts(homogeneous):
    processors = types(best="a1 a2 a3", later="b1 b2 b3 c1")
    choice = choose(group(3, "a1", homogeneous=homogeneous, processors=processors))
    assert isinstance(choice, ProcessorChoice)
    assert choice.name == "later"


def test_only_a_required_type_puts_vms_on_shunned_hosts():
    processors = types(best="a1 a2 a3", later="b1 b2 b3")
    assert choose(group(3, "a1 b1", homogeneous="prefer", processors=processors)) is None
    choice = choose(group(3, "a1 b1", homogeneous="true", processors=processors))
    assert isinstance(choice, ProcessorChoice)
    assert choice.name == "best"


@given(drawn=fabrics.groups(), data=st.data())
def test_shunned_hosts_change_no_refusal_and_are_used_only_where_there_is_no_other_plan(
    drawn, data
):
    problem = drawn.problem()
    hosts = len(problem.topology.hosts)
    request = GroupRequest(
        topology=problem.topology,
        tie=problem.tie,
        host_index=None,
        room=problem.capacity,
        members=problem.members,
        left=problem.awaiting,
        awaiting=problem.awaiting,
        constraints=Constraints(
            require=data.draw(st.sampled_from([None, *problem.topology.levels])),
            max_leaves=data.draw(st.none() | st.integers(1, 3)),
        ),
        shunned=np.array(data.draw(st.lists(st.booleans(), min_size=hosts, max_size=hosts))),
    )
    everywhere = replace(request, shunned=None)
    without, answer = everywhere.among(~request.shunned).decide(), request.decide()
    if isinstance(without, Plan):
        assert answer == without
        assert not request.uses_shunned(answer)
    else:
        assert answer == everywhere.decide()
