"""What is true of every plan, whatever the fabric and the group."""

import itertools
import math
from collections import Counter
from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from hpc_sched.core.plan.planner import plan
from hpc_sched.core.plan.result import Plan, Rejection
from tests.unit import fabrics
from tests.unit.fabrics import Case


@st.composite
def cases(draw: st.DrawFn) -> Case:
    group = draw(fabrics.groups(max_members=0))
    topology = group.topology
    # Members on few hosts, or hardly a case could keep its wishes.
    with_members = draw(st.lists(st.sampled_from(topology.hosts), max_size=2))
    return Case(
        tree=group.tree,
        capacity=group.capacity,
        members={host: draw(st.integers(1, 3)) for host in with_members},
        count=group.awaiting,
        require=draw(st.sampled_from([None, None, *topology.levels])),
        max_leaves=draw(st.one_of(st.none(), st.integers(1, 4))),
        min_leaves=draw(st.sampled_from([0, 0, 2, 3])),
        group_id=draw(st.sampled_from(["", "one", "two", "three"])),
    )


def planned(case: Case) -> Plan:
    """Return the plan of a drawn case; cases without one are drawn again."""
    return fabrics.only_plans(case.answer())


@given(cases())
def test_a_plan_holds_exactly_the_vms_asked_for_and_never_more_than_fit(case: Case):
    answer = planned(case)
    assert sum(answer.hosts.values()) == case.count
    for host, count in answer.hosts.items():
        assert 1 <= count <= case.capacity[host]


@given(cases())
def test_a_plan_says_the_same_thing_by_place_by_host_and_by_leaf(case: Case):
    answer = planned(case)
    fabric = case.fabric
    assert Counter(answer.places) == answer.hosts
    leaf_by_leaf = [fabric.leaf_of(host) for host in answer.places]
    assert Counter(leaf_by_leaf) == answer.leaves
    # One leaf after the other.
    assert [leaf for leaf, _ in itertools.groupby(leaf_by_leaf)] == list(answer.leaves)
    everyone = case.together(answer.hosts)
    assert answer.hop_bytes == fabrics.naive_hop_bytes(fabric, Counter(everyone).elements())


@given(cases())
def test_the_slots_go_branch_by_branch_and_those_with_most_of_the_group_come_first(case: Case):
    answer = planned(case)
    fabric = case.fabric
    everyone = case.together(answer.hosts)

    def size(switch: str) -> int:
        return sum(everyone.get(host, 0) for host in fabric.hosts_of(switch))

    above = {leaf: fabric.ancestors(fabric.hosts_of(leaf)[0]) for leaf in answer.leaves}
    for switch in fabric.switches:
        below = [
            path[path.index(switch.name) - 1]
            for leaf, path in above.items()
            if switch.name in path and switch.name != leaf
        ]
        branches = [branch for branch, _ in itertools.groupby(below)]
        assert len(branches) == len(set(branches))
        sizes = [size(branch) for branch in branches]
        assert sizes == sorted(sizes, reverse=True)


@given(cases())
def test_the_bounds_hold_with_the_members_included(case: Case):
    answer = planned(case)
    fabric = case.fabric
    everyone = case.together(answer.hosts)
    assert everyone.keys() <= set(fabric.hosts_of(answer.switch))
    if case.require is not None:
        level = fabric.switches[fabric.switch_index(answer.switch)].level
        assert level <= fabric.levels.index(case.require) + 1
    if case.max_leaves is not None:
        assert len({fabric.leaf_of(host) for host in everyone}) <= case.max_leaves
    here = {fabric.leaf_of(host) for host, count in case.members.items() if count}
    least = min(case.min_leaves, len(here) + case.count)
    assert len({fabric.leaf_of(host) for host in everyone}) >= least


@given(cases(), st.data())
def test_the_order_of_the_description_and_of_the_dicts_changes_nothing(
    case: Case, data: st.DataObject
):
    def turned(counts: dict[str, int]) -> dict[str, int]:
        return {host: counts[host] for host in data.draw(st.permutations(list(counts)))}

    other = replace(
        case,
        tree=fabrics.shuffled(data.draw, case.tree),
        capacity=turned(case.capacity),
        members=turned(case.members),
    )
    one, two = case.answer(), other.answer()
    assert one == two
    if isinstance(one, Plan) and isinstance(two, Plan):
        assert list(one.hosts.items()) == list(two.hosts.items())
        assert list(one.leaves.items()) == list(two.leaves.items())


@given(cases(), st.data())
def test_more_room_never_costs_more(case: Case, data: st.DataObject):
    answer = planned(case)
    more = Counter(case.capacity)
    more.update(data.draw(st.lists(st.sampled_from(case.described.hosts), min_size=1)))
    roomy = replace(case, capacity=dict(more)).answer()
    assert isinstance(roomy, Plan)
    assert roomy.hop_bytes <= answer.hop_bytes


@given(cases(), st.data())
def test_a_planned_vm_that_has_become_a_member_leaves_the_cost_as_it_was(
    case: Case, data: st.DataObject
):
    answer = planned(replace(case, count=case.count + 1))
    host = data.draw(st.sampled_from(answer.places))
    later = replace(
        case,
        capacity=case.capacity | {host: case.capacity[host] - 1},
        members=case.members | {host: case.members.get(host, 0) + 1},
    ).answer()
    assert isinstance(later, Plan)
    assert later.hop_bytes == answer.hop_bytes


@given(fabrics.groups(), st.data())
def test_any_way_to_fill_the_room_costs_at_least_as_much(group: fabrics.Group, data: st.DataObject):
    room = list(Counter(group.capacity).elements())
    answer = Case(group.tree, group.capacity, group.members, group.awaiting).answer()
    if len(room) < group.awaiting:
        assert isinstance(answer, Rejection)
        return
    counts = Counter(group.members)
    counts.update(data.draw(st.permutations(room))[: group.awaiting])
    cost = fabrics.naive_hop_bytes(group.topology, counts.elements())
    if isinstance(answer, Plan):
        assert answer.hop_bytes <= cost
    else:
        assert cost == math.inf


def test_two_groups_on_an_empty_fabric_mostly_start_in_different_leaves():
    fabric = fabrics.row_of_leaves({f"leaf{i:02}": 4 for i in range(20)})
    chosen = Counter[str]()
    for group in range(100):
        answer = plan(
            topology=fabric,
            capacity=dict.fromkeys(fabric.hosts, 1),
            members={},
            count=4,
            group_id=f"group-{group}",
        )
        assert isinstance(answer, Plan)
        [leaf] = answer.leaves
        chosen[leaf] += 1
    assert len(chosen) >= 15
    assert max(chosen.values()) <= 20


@given(st.integers(1, 60), st.integers(1, 4))
def test_a_group_that_fills_whole_leaves_leaves_nothing_over(leaves: int, each: int):
    fabric = fabrics.row_of_leaves({f"leaf{i:02}": 5 for i in range(60)})
    free = dict.fromkeys(fabric.hosts, each)
    answer = plan(topology=fabric, capacity=free, members={}, count=5 * each * leaves)
    assert isinstance(answer, Plan)
    assert set(answer.leaves.values()) == {5 * each}
    assert len(answer.leaves) == leaves
