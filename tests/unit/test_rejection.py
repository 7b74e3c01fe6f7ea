"""What a group is told that has no plan: texts, counts per level, conflicts."""

from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from hpc_sched.core.constraints import Bounds
from hpc_sched.core.plan.planner import plan
from hpc_sched.core.plan.result import Gang, Plan, Rejection
from hpc_sched.topology import Topology
from tests.unit import fabrics


def three_racks() -> Topology:
    """Return three leaves, of 8, 12 and 6 hosts, in two pods.

    ::

                  spine
                 /     \\
              row1     row2
             /    \\      |
          sw05   sw07   sw09
          8      12     6 hosts
    """
    sizes = {"sw05": 8, "sw07": 12, "sw09": 6}
    hosts = {leaf: [f"{leaf}-n{i:02}" for i in range(size)] for leaf, size in sizes.items()}
    return Topology.from_tree(
        {
            "spine": {
                "row1": {"sw05": hosts["sw05"], "sw07": hosts["sw07"]},
                "row2": {"sw09": hosts["sw09"]},
            }
        }
    )


def refused(
    count: int,
    members: dict[str, int] | None = None,
    topology: Topology | None = None,
    capacity: dict[str, int] | None = None,
    **constraints: Any,
) -> Rejection:
    fabric = topology or three_racks()
    answer = plan(
        topology=fabric,
        capacity=dict.fromkeys(fabric.hosts, 1) if capacity is None else capacity,
        members=members or {},
        count=count,
        **constraints,
    )
    assert isinstance(answer, Rejection)
    return answer


def test_the_operator_reads_how_large_a_gang_fits_and_under_which_switch():
    answer = refused(16, require="leaf")
    assert answer.operator == (
        "group of 16 needs one leaf: largest gang that fits under one leaf: 12 on sw07"
        " (without these wishes: 20 under one pod on row1, 26 under one core on spine)"
    )
    assert str(answer) == answer.operator


def test_the_tenant_reads_how_many_fit_without_a_name_and_nothing_of_larger_groups():
    assert refused(16, require="leaf").tenant == (
        "group of 16 needs one leaf: largest gang that fits under one leaf: 12"
    )


def test_the_counts_stand_in_fields_too():
    answer = refused(21, require="pod", max_leaves=5)
    assert (answer.count, answer.members, answer.bounds) == (21, 0, Bounds("pod", None, 5))
    assert answer.best == Gang("pod", 20, "row1")
    assert answer.gangs == (
        Gang("leaf", 12, "sw07"),
        Gang("pod", 20, "row1"),
        Gang("core", 26, "spine"),
    )
    assert answer.conflict is None


@pytest.mark.parametrize(
    ("answer", "text"),
    [
        pytest.param(
            refused(27),
            "group of 27 does not fit: largest gang that fits: 26 on spine",
            id="a group larger than the fabric",
        ),
        pytest.param(
            refused(21, max_leaves=2),
            "group of 21 needs at most 2 leaf switches: largest gang that fits"
            " in 2 leaf switches: 20 on spine (without these wishes: 12 under one leaf on sw07,"
            " 20 under one pod on row1, 26 under one core on spine)",
            id="more leaves than it may use",
        ),
        pytest.param(
            refused(13, max_leaves=3, require="leaf"),
            "group of 13 needs one leaf and at most 3 leaf switches: largest gang that fits"
            " under one leaf in 3 leaf switches: 12 on sw07"
            " (without these wishes: 20 under one pod on row1, 26 under one core on spine)",
            id="two wishes",
        ),
        pytest.param(
            refused(7, {"sw09-n00": 2, "sw09-n01": 1}, require="pod"),
            "7 more of a group with 3 members needs one pod: largest gang that fits under one pod"
            " beside its members: 6 on row2",
            id="members that hold the group in a small pod",
        ),
        pytest.param(
            refused(19, {"sw09-n00": 2}, max_leaves=2),
            "19 more of a group with 2 members needs at most 2 leaf switches: largest gang that"
            " fits in 2 leaf switches beside its members: 18 on spine",
            id="a member whose small leaf is one of two",
        ),
        pytest.param(
            refused(1, capacity={}),
            "group of 1 does not fit: no room",
            id="no room at all",
        ),
        pytest.param(
            refused(1, {"sw09-n00": 2}, capacity={"sw05-n00": 1}, require="leaf"),
            "1 more of a group with 2 members needs one leaf: no room beside its members",
            id="room, but not beside the members",
        ),
    ],
)
def test_a_refusal_is_a_sentence_with_counts(answer: Rejection, text: str):
    assert answer.operator == text


@pytest.mark.parametrize(
    ("answer", "text"),
    [
        pytest.param(
            refused(1, {"a1": 1, "e1": 1}, fabrics.islands()),
            "1 more of a group with 2 members: its members stand on 2 islands,"
            " and no group is spread over islands",
            id="on two islands",
        ),
        pytest.param(
            refused(1, {"sw05-n00": 1, "sw09-n00": 1}, require="pod"),
            "1 more of a group with 2 members: its members stand under 2 switches of level pod,"
            " one is required",
            id="under two switches of the required level",
        ),
        pytest.param(
            refused(1, {"sw05-n00": 1, "sw07-n00": 2, "sw09-n00": 1}, max_leaves=2),
            "1 more of a group with 4 members: its members use 3 leaf switches,"
            " at most 2 are allowed",
            id="on more leaves than allowed",
        ),
    ],
)
def test_members_that_break_a_wish_themselves_are_the_reason(answer: Rejection, text: str):
    assert answer.conflict is not None
    assert answer.conflict in text
    assert answer.operator == answer.tenant == text
    assert answer.best is None


def test_members_on_two_leaves_leave_no_gang_that_keeps_one_leaf():
    """No gang, not even a smaller one, can join them::

            core
           /    \\
          l1     l2
          h1     h2      h1: room for 5; one member on each
    """
    fabric = Topology.from_tree({"core": {"l1": ["h1"], "l2": ["h2"]}})
    members, free = {"h1": 1, "h2": 1}, {"h1": 5}
    for constraints in ({"require": "leaf"}, {"max_leaves": 1}):
        answer = refused(1, members, fabric, free, **constraints)
        assert answer.best is None
        assert answer.gangs == (Gang("leaf", 5, "l1"), Gang("pod", 5, "core"))


def test_of_equal_switches_the_same_group_always_reads_the_same_one():
    named = {refused(3, topology=fabrics.two_pods(), require="leaf").operator for _ in range(3)}
    assert len(named) == 1
    others = {
        refused(3, topology=fabrics.two_pods(), require="leaf", group_id=str(group)).operator
        for group in range(20)
    }
    assert len(others) > 1


def test_a_host_that_the_topology_does_not_name_is_a_leaf_that_can_be_named():
    answer = refused(4, topology=fabrics.two_pods(), capacity={"x": 3, "a1": 1}, require="leaf")
    assert answer.best == Gang("leaf", 3, "x")


@st.composite
def distinctive(draw: st.DrawFn) -> tuple[fabrics.Group, dict[str, Any]]:
    """Draw a group on switches and hosts that no sentence names by chance, and its wishes."""
    group = draw(fabrics.groups(max_members=0))
    # Members on few hosts, or hardly a group could keep its wishes.
    with_members = draw(st.lists(st.sampled_from(group.topology.hosts), max_size=3))

    def renamed(tree: Any) -> Any:
        if isinstance(tree, dict):
            return {f"Zz{name}": renamed(below) for name, below in tree.items()}
        return [f"Zz{name}" for name in tree]

    group = fabrics.Group(
        renamed(group.tree),
        {f"Zz{host}": count for host, count in group.capacity.items()},
        {f"Zz{host}": 1 for host in with_members},
        group.awaiting,
    )
    constraints = {
        "require": draw(st.sampled_from([None, *group.topology.levels])),
        "max_leaves": draw(st.one_of(st.none(), st.integers(1, 3))),
    }
    return group, constraints


def answer_to(group: fabrics.Group, count: int, constraints: dict[str, Any]) -> Plan | Rejection:
    return plan(
        topology=group.topology,
        capacity=group.capacity,
        members=group.members,
        count=count,
        **constraints,
    )


@given(distinctive(), st.integers(0, 40))
def test_no_tenant_ever_reads_the_name_of_a_switch_or_host(
    drawn: tuple[fabrics.Group, dict[str, Any]], count: int
):
    answer = answer_to(drawn[0], count, drawn[1])
    assume(isinstance(answer, Rejection))
    assert isinstance(answer, Rejection)
    assert "Zz" not in answer.tenant
    if not answer.conflict and answer.best is not None and answer.best.vms:
        assert f" on {answer.best.switch}" in answer.operator
        assert "Zz" in answer.operator


@given(distinctive())
def test_the_largest_gang_is_the_largest_count_that_has_a_plan(
    drawn: tuple[fabrics.Group, dict[str, Any]],
):
    group, constraints = drawn
    too_many = sum(group.capacity.values()) + 1
    answer = answer_to(group, too_many, constraints)
    assert isinstance(answer, Rejection)
    assert (answer.best is None) == (answer.conflict is not None)
    if answer.best is None:
        assert all(isinstance(answer_to(group, n, constraints), Rejection) for n in range(too_many))
        return
    for count in range(too_many):
        has_plan = isinstance(answer_to(group, count, constraints), Plan)
        assert has_plan == (count <= answer.best.vms)


@given(distinctive())
def test_the_gang_of_a_level_is_the_fullest_switch_of_it(
    drawn: tuple[fabrics.Group, dict[str, Any]],
):
    group, constraints = drawn
    fabric = group.topology
    answer = answer_to(group, sum(group.capacity.values()) + 1, constraints)
    assert isinstance(answer, Rejection)
    assert [gang.level for gang in answer.gangs] == list(fabric.levels)
    for number, gang in enumerate(answer.gangs, start=1):
        rooms = {
            switch.name: sum(group.capacity.get(h, 0) for h in fabric.hosts_of(switch.name))
            for switch in fabric.switches
            if switch.level <= number
        }
        assert gang.vms == rooms[gang.switch] == max(rooms.values())
