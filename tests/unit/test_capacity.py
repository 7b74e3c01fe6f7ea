"""Capacity of hosts and leaves, and the problem that holds them."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hpc_sched.core.capacity import UNBOUNDED, capacities, host_capacity
from hpc_sched.core.plan.problem import Problem, leaf_sums
from hpc_sched.core.plan.tie_order import TieOrder
from tests.unit import fabrics
from tests.unit.fabrics import check

CLASSES = st.sampled_from(["VCPU", "MEMORY_MB", "DISK_GB", "CUSTOM_GPU"])


@pytest.mark.parametrize(
    ("free", "demand", "fits"),
    [
        pytest.param({"VCPU": 64}, {"VCPU": 8}, 8, id="whole VMs"),
        pytest.param({"VCPU": 63}, {"VCPU": 8}, 7, id="the rest of a VM does not count"),
        pytest.param(
            {"VCPU": 64, "MEMORY_MB": 5000}, {"VCPU": 8, "MEMORY_MB": 1024}, 4, id="the minimum"
        ),
        pytest.param({"VCPU": 7}, {"VCPU": 8}, 0, id="too small for one"),
        pytest.param({"VCPU": -16}, {"VCPU": 8}, 0, id="overbooked"),
        pytest.param({"VCPU": 0}, {"VCPU": 8}, 0, id="full"),
        pytest.param({"MEMORY_MB": 2047.9}, {"MEMORY_MB": 1024}, 1, id="a fraction is cut off"),
        pytest.param({"VCPU": 0}, {"VCPU": 0}, UNBOUNDED, id="a demand of nothing does not bound"),
        pytest.param({"VCPU": 64}, {"CUSTOM_GPU": 1}, UNBOUNDED, id="nor a class not told about"),
        pytest.param(
            {"VCPU": 64}, {"CUSTOM_GPU": 1, "VCPU": 32}, 2, id="a known class bounds beside it"
        ),
        pytest.param({}, {}, UNBOUNDED, id="no demand at all"),
        pytest.param({"VCPU": 1 << 40}, {"VCPU": 1}, UNBOUNDED, id="never more than the bound"),
    ],
)
def test_a_host_fits_the_minimum_over_what_is_demanded(
    free: dict[str, float], demand: dict[str, int], fits: int
):
    assert host_capacity(free, demand) == fits


@given(
    st.dictionaries(CLASSES, st.integers(-10, 200)), st.dictionaries(CLASSES, st.integers(0, 20))
)
def test_as_many_vms_fit_and_not_one_more(free: dict[str, float], demand: dict[str, int]):
    fits = host_capacity(free, demand)
    bounding = [name for name, amount in demand.items() if amount and name in free]

    def have_room(vms: int) -> bool:
        return all(vms * demand[name] <= free[name] for name in bounding)

    assert fits == 0 or have_room(fits)
    assert fits == UNBOUNDED or not have_room(fits + 1)


def test_the_capacity_of_a_leaf_is_the_sum_below_it_and_switches_above_have_none():
    problem = Problem.from_counts(
        topology=fabrics.two_leaves(), capacity={"a1": 2, "b2": 3, "b3": 4}, members={}, awaiting=1
    )
    sums = leaf_sums(problem, problem.capacity)
    names = [switch.name for switch in problem.topology.switches]
    assert dict(zip(names, sums.tolist(), strict=True)) == {"core": 0, "leaf1": 2, "leaf2": 7}


@given(fabrics.groups())
def test_the_sums_of_all_leaves_are_the_sum_of_all_hosts(group: fabrics.Group):
    problem = group.problem()
    check(problem.topology)
    assert leaf_sums(problem, problem.capacity).sum() == sum(group.capacity.values())
    assert leaf_sums(problem, problem.members).sum() == sum(group.members.values())


def test_a_problem_counts_hosts_by_name_and_others_as_zero():
    problem = Problem.from_counts(
        topology=fabrics.two_leaves(), capacity={"b3": 2}, members={"a2": 1}, awaiting=4
    )
    assert problem.capacity.tolist() == [0, 0, 0, 0, 2]
    assert problem.members.tolist() == [0, 1, 0, 0, 0]


def test_a_host_that_the_topology_does_not_name_becomes_a_leaf_of_the_problem():
    problem = Problem.from_counts(
        topology=fabrics.two_leaves(), capacity={"x": 2}, members={"w": 1}, awaiting=1
    )
    check(problem.topology)
    assert problem.topology.hosts[-2:] == ("w", "x")
    assert problem.capacity.tolist()[-2:] == [0, 2]
    assert problem.members.tolist()[-2:] == [1, 0]


@pytest.mark.parametrize(
    ("capacity", "members", "awaiting", "error"),
    [
        pytest.param({"b1": -1, "a1": -2}, {}, 1, "capacity of host 'a1'", id="capacity below 0"),
        pytest.param({}, {"a1": -1}, 1, "members of host 'a1' is negative", id="members below 0"),
        pytest.param({}, {}, -1, "awaiting is negative: -1", id="awaiting below 0"),
    ],
)
def test_a_negative_number_is_refused_by_name(
    capacity: dict[str, int], members: dict[str, int], awaiting: int, error: str
):
    with pytest.raises(ValueError, match=error):
        Problem.from_counts(
            topology=fabrics.two_leaves(), capacity=capacity, members=members, awaiting=awaiting
        )


def test_the_tie_order_of_a_group_is_the_same_in_every_process_and_on_every_machine():
    fabric = fabrics.two_pods()
    order = sorted(
        range(len(fabric.switches)), key=TieOrder(fabric, "group-1").ranks.tolist().__getitem__
    )
    # The names, sorted by blake2b of b"group-1\0" and the name.
    assert [fabric.switches[s].name for s in order] == [
        *("core", "pod1", "pod2"),
        *("leaf1", "leaf3", "leaf4", "leaf2"),
    ]


def test_two_groups_start_in_different_leaves():
    fabric = fabrics.row_of_leaves({f"leaf{i:02}": 1 for i in range(16)})
    leaves = [fabric.switch_index(name) for name in fabric.leaves]
    first = {int(TieOrder(fabric, f"group-{g}").ranks[leaves].argmin()) for g in range(32)}
    assert len(first) > 8


@given(fabrics.trees(), st.text(max_size=8))
def test_a_tie_order_gives_every_switch_one_place(tree: dict[str, object], group_id: str):
    fabric = fabrics.Group(tree, {}, {}, 0).topology
    assert sorted(TieOrder(fabric, group_id).ranks) == list(range(len(fabric.switches)))


@given(fabrics.trees(), st.text(max_size=8), st.data())
def test_some_switches_are_in_the_tie_order_of_all(
    tree: dict[str, object], group_id: str, data: st.DataObject
):
    fabric = fabrics.Group(tree, {}, {}, 0).topology
    indices = st.integers(0, len(fabric.switches) - 1)
    some = np.array(data.draw(st.lists(indices, min_size=1, max_size=9)))
    ranks, tie = TieOrder(fabric, group_id).ranks, TieOrder(fabric, group_id)
    among = tie.among(some)
    assert np.array_equal(np.argsort(among, kind="stable"), np.argsort(ranks[some], kind="stable"))
    assert (among[:, None] == among).tolist() == (some[:, None] == some).tolist()
    assert np.array_equal(tie.ranks, ranks)
    assert np.array_equal(tie.among(some), ranks[some])


@pytest.mark.parametrize("amount", [9, 1 << 63, 10**84])
def test_a_host_takes_no_vm_that_wants_more_than_it_has_however_much_that_is(amount: int):
    free = np.array([[4, 8], [1 << 40, 0]], dtype=np.int64)
    assert capacities(free, (0, amount)).tolist() == [0, 0]
    assert capacities(free, (amount, 0)).tolist()[0] == 0
