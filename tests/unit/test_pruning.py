"""Which hosts stay beside a plan: what the wishes permit, and the leaves that are kept."""

from dataclasses import replace

import numpy as np
from hypothesis import assume, given
from hypothesis import strategies as st

from hpc_sched.core.constraints import NO_CONSTRAINTS, Constraints
from hpc_sched.core.plan.planner import solve_sizes
from hpc_sched.core.plan.problem import Problem
from hpc_sched.core.plan.ranking import Mask, hosts_with_spares, permitted_hosts, spare_order
from hpc_sched.core.plan.result import Plan
from hpc_sched.topology import Topology
from tests.unit import fabrics
from tests.unit.fabrics import planned


def names(problem: Problem, mask: Mask) -> set[str]:
    return {problem.topology.hosts[i] for i in np.flatnonzero(mask)}


def below(topology: Topology, *switches: str) -> set[str]:
    return {host for switch in switches for host in topology.hosts_of(switch)}


@st.composite
def plans(draw: st.DrawFn) -> tuple[Problem, Plan]:
    """Draw a group with wishes that has a plan."""
    problem = draw(fabrics.groups(max_awaiting=6)).problem()
    level = st.sampled_from([None, *problem.topology.levels])
    constraints = Constraints(
        require=draw(level),
        prefer=draw(level),
        max_leaves=draw(st.none() | st.integers(1, 4)),
    )
    problem = replace(problem, constraints=constraints)
    return problem, fabrics.only_plans(solve_sizes(problem, [problem.awaiting]))


# Of the fabric that most tests here use:
#
#                core
#             /        \
#         pod1          pod2
#        /    \        /    \
#     leaf1  leaf2  leaf3  leaf4
#     a1 a2  b1 b2  c1 c2  d1 d2


def test_without_wishes_every_host_is_permitted():
    problem, plan = planned(fabrics.two_pods(), 3)
    assert permitted_hosts(problem, plan).all()


def test_what_requires_a_switch_permits_all_of_its_hosts_and_no_other():
    fabric = fabrics.two_pods()
    capacity = dict.fromkeys(["a1", "b1", "c1", "c2", "d1"], 1)
    problem, plan = planned(fabric, 3, Constraints(require="pod"), capacity)
    assert names(problem, permitted_hosts(problem, plan)) == below(fabric, "pod2")


def test_without_wishes_no_host_of_another_island_is_permitted_or_kept():
    fabric = fabrics.islands()
    for constraints in (NO_CONSTRAINTS, Constraints(max_leaves=3)):
        problem, plan = planned(fabric, 3, constraints)
        assert plan.switch == "west"
        assert names(problem, permitted_hosts(problem, plan)) == below(fabric, "west")
        assert names(problem, hosts_with_spares(problem, plan, places=99, hosts=99)) == below(
            fabric, "west"
        )


def test_members_alone_tie_a_group_to_its_island():
    fabric = fabrics.islands()
    problem, plan = planned(fabric, 0, members={"e1": 1})
    assert names(problem, permitted_hosts(problem, plan)) == below(fabric, "east")
    assert names(problem, hosts_with_spares(problem, plan, places=9, hosts=9)) == below(
        fabric, "east"
    )


def test_members_alone_tie_a_group_to_its_switch():
    fabric = fabrics.two_pods()
    constraints = Constraints(require="pod")
    problem, plan = planned(fabric, 0, constraints, members={"c1": 1})
    assert names(problem, permitted_hosts(problem, plan)) == below(fabric, "pod2")


def test_a_preferred_switch_leaves_the_spares_of_the_required_one():
    fabric = fabrics.two_pods()
    problem, plan = planned(fabric, 2, Constraints(prefer="leaf", require="pod"))
    pod = "pod1" if plan.switch in ("leaf1", "leaf2") else "pod2"
    assert plan.switch in fabric.leaves
    assert names(problem, permitted_hosts(problem, plan)) == below(fabric, pod)


def test_a_preference_alone_forbids_nothing():
    problem, plan = planned(fabrics.two_pods(), 2, Constraints(prefer="leaf"))
    assert permitted_hosts(problem, plan).all()


def test_a_branch_too_short_for_the_required_level_is_a_switch_of_its_own():
    fabric = fabrics.lopsided()
    capacity = dict.fromkeys(["c1", "c2", "d1"], 1)
    problem, plan = planned(fabric, 2, Constraints(require="pod"), capacity)
    assert names(problem, permitted_hosts(problem, plan)) == {"c1", "c2"}


def test_as_many_leaves_are_permitted_as_may_be_used_and_the_best_spare_ones_first():
    fabric = fabrics.two_pods()
    capacity = dict.fromkeys([*["a1", "a2", "b1", "c1", "c2", "d1", "d2"]], 1)
    problem, plan = planned(fabric, 2, Constraints(max_leaves=2), capacity, members={"a1": 1})
    assert set(plan.leaves) == {"leaf1"}
    # leaf2 is the nearest to leaf1.
    assert names(problem, permitted_hosts(problem, plan)) == below(fabric, "leaf1", "leaf2")


def test_the_leaves_of_members_count_among_those_that_may_be_used():
    fabric = fabrics.two_pods()
    capacity = dict.fromkeys(["b1", "b2", "c1", "d1"], 1)
    constraints = Constraints(max_leaves=2)
    problem, plan = planned(fabric, 2, constraints, capacity, members={"a1": 1})
    assert set(plan.leaves) == {"leaf2"}
    assert names(problem, permitted_hosts(problem, plan)) == below(fabric, "leaf1", "leaf2")


def test_a_leaf_without_room_takes_no_place_among_the_permitted_ones():
    fabric = fabrics.two_pods()
    capacity = dict.fromkeys(["a1", "a2", "c1"], 1)
    problem, plan = planned(fabric, 2, Constraints(max_leaves=2), capacity)
    assert names(problem, permitted_hosts(problem, plan)) == below(fabric, "leaf1", "leaf3")


def test_spare_leaves_stand_under_the_required_switch():
    fabric = fabrics.two_pods()
    capacity = dict.fromkeys(["a1", "a2", "c1", "c2"], 1)
    problem, plan = planned(fabric, 2, Constraints(require="pod", max_leaves=2), capacity)
    assert names(problem, permitted_hosts(problem, plan)) == below(fabric, *plan.leaves)


def test_the_leaves_of_the_plan_are_kept_though_nothing_more_is_wanted():
    fabric = fabrics.two_pods()
    problem, plan = planned(fabric, 3)
    assert names(problem, hosts_with_spares(problem, plan, places=0, hosts=0)) == below(
        fabric, *plan.leaves
    )


def test_whole_leaves_are_kept_until_there_are_enough_places_and_hosts():
    fabric = fabrics.row_of_leaves({"two": 2, "three": 3, "four": 4, "five": 5})
    problem, plan = planned(fabric, 2)
    assert set(plan.leaves) == {"two"}

    def leaves(places: int, hosts: int) -> set[str]:
        mask = hosts_with_spares(problem, plan, places=places, hosts=hosts)
        return {fabric.leaf_of(name) for name in names(problem, mask)}

    assert leaves(2, 2) == {"two"}
    assert leaves(3, 0) == leaves(0, 3) == leaves(5, 5) == {"two", "three"}
    assert leaves(6, 0) == {"two", "three", "four"}
    assert leaves(99, 0) == {"two", "three", "four", "five"}


def test_hosts_count_apart_from_places():
    fabric = fabrics.row_of_leaves({"a": 1, "b": 2})
    problem, plan = planned(fabric, 4, capacity={"a-00": 9, "b-00": 1, "b-01": 1})
    assert names(problem, hosts_with_spares(problem, plan, places=9, hosts=1)) == {"a-00"}
    assert names(problem, hosts_with_spares(problem, plan, places=9, hosts=2)) == {
        "a-00",
        "b-00",
        "b-01",
    }


def test_full_hosts_are_not_kept():
    fabric = fabrics.two_leaves()
    problem, plan = planned(fabric, 1, capacity={"b1": 1, "b2": 1})
    assert names(problem, hosts_with_spares(problem, plan, places=9, hosts=9)) == {"b1", "b2"}


def test_the_next_best_leaf_comes_before_those_of_the_other_pod():
    fabric = fabrics.two_pods()
    problem, plan = planned(fabric, 2, members={"c1": 1})
    assert set(plan.leaves) == {"leaf3"}
    assert names(problem, hosts_with_spares(problem, plan, places=3, hosts=3)) == below(
        fabric, "pod2"
    )


@given(plans(), st.integers(0, 12), st.integers(0, 12))
def test_what_is_kept_never_leads_outside_the_wishes(
    drawn: tuple[Problem, Plan], places: int, hosts: int
):
    problem, plan = drawn
    fabric, constraints = problem.topology, problem.constraints
    mask = hosts_with_spares(problem, plan, places=places, hosts=hosts)
    assert not (mask & ~permitted_hosts(problem, plan)).any()
    used = {fabric.hosts[i] for i in np.flatnonzero(problem.members)} | set(plan.hosts)
    takes = names(problem, permitted_hosts(problem, plan) & (problem.capacity > 0))
    if constraints.bounds.level is not None and used:
        row = fabric.groups[fabric.levels.index(constraints.bounds.level)]
        assert len({int(row[fabric.index_of(host)]) for host in used | takes}) == 1
    if constraints.bounds.most_leaves is not None:
        assert (
            len({fabric.leaf_of(host) for host in used | takes}) <= constraints.bounds.most_leaves
        )


@given(plans(), st.integers(0, 12), st.integers(0, 12))
def test_what_is_permitted_or_kept_is_on_the_island_of_the_group(
    drawn: tuple[Problem, Plan], places: int, hosts: int
):
    problem, plan = drawn
    fabric = problem.topology
    used = {fabric.hosts[i] for i in np.flatnonzero(problem.members)} | set(plan.hosts)
    assume(used)
    mask = permitted_hosts(problem, plan) | hosts_with_spares(
        problem, plan, places=places, hosts=hosts
    )
    assert len({fabric.ancestors(host)[-1] for host in used | names(problem, mask)}) == 1


@given(plans(), st.integers(0, 12), st.integers(0, 12))
def test_the_leaves_of_the_plan_are_kept_whole_and_so_are_the_spare_ones(
    drawn: tuple[Problem, Plan], places: int, hosts: int
):
    problem, plan = drawn
    fabric = problem.topology
    found = names(problem, hosts_with_spares(problem, plan, places=places, hosts=hosts))
    takes = names(problem, permitted_hosts(problem, plan) & (problem.capacity > 0))
    assert set(plan.hosts) <= found
    leaves = {fabric.leaf_of(host) for host in found}
    assert set(plan.leaves) <= leaves
    assert found == {host for host in takes if fabric.leaf_of(host) in leaves}


@given(plans(), st.integers(0, 12), st.integers(0, 12), st.data())
def test_enough_is_kept_and_not_one_leaf_more(
    drawn: tuple[Problem, Plan], places: int, hosts: int, data: st.DataObject
):
    problem, plan = drawn
    fabric = problem.topology
    # Hosts that the request uses have room, but are not counted as hosts.
    used = data.draw(st.none() | st.sets(st.sampled_from(fabric.hosts)))
    is_used = None if used is None else np.isin(fabric.hosts, sorted(used))
    mask = hosts_with_spares(problem, plan, used=is_used, places=places, hosts=hosts)

    def is_enough(some: set[str]) -> bool:
        room = sum(int(problem.capacity[fabric.index_of(host)]) for host in some)
        return room >= places and len(some - (used or set())) >= hosts

    found = names(problem, mask)
    takes = names(problem, permitted_hosts(problem, plan) & (problem.capacity > 0))
    assert is_enough(found) or found == takes
    order = [fabric.leaf_of(fabric.hosts[i]) for i in spare_order(problem, plan)]
    spares = [leaf for leaf in dict.fromkeys(order) if leaf not in plan.leaves]
    chosen = {fabric.leaf_of(host) for host in found} - set(plan.leaves)
    if chosen:
        # The last of the spare leaves was needed, and better ones are there too.
        last = max(chosen, key=spares.index)
        assert not is_enough({host for host in found if fabric.leaf_of(host) != last})
        better = spares[: spares.index(last)]
        assert chosen >= {leaf for leaf in better if below(fabric, leaf) & takes}


@given(plans(), st.data())
def test_the_order_of_the_description_changes_nothing(
    drawn: tuple[Problem, Plan], data: st.DataObject
):
    problem, plan = drawn
    fabric = problem.topology

    def nested(switch: str) -> object:
        children = fabric.children_of(switch)
        return {child: nested(child) for child in children} or list(fabric.hosts_of(switch))

    tree = fabrics.shuffled(data.draw, {root: nested(root) for root in fabric.roots})
    by_name = dict(zip(fabric.hosts, range(len(fabric.hosts)), strict=True))
    turned = Problem.from_counts(
        topology=Topology.from_tree(tree),
        capacity={host: int(problem.capacity[i]) for host, i in by_name.items()},
        members={host: int(problem.members[i]) for host, i in by_name.items()},
        awaiting=problem.awaiting,
    )
    other = replace(turned, constraints=problem.constraints)
    for places in (0, 3, 9):
        assert names(other, hosts_with_spares(other, plan, places=places, hosts=1)) == names(
            problem, hosts_with_spares(problem, plan, places=places, hosts=1)
        )
