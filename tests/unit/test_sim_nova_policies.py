"""Stock Nova's rules and the plain ones, and what is true of every policy."""

import random
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hpc_sched.core.plan.result import Rejection
from hpc_sched.sim.policies import (
    host_order,
    kueue,
    nova_default,
    slurm_tree,
)
from hpc_sched.sim.policies.placement_policy import Policy
from hpc_sched.topology import Topology
from tests.unit import fabrics
from tests.unit.placing import per_host, placed, request

SPREAD, SOFT_AFFINITY = nova_default.DEFAULT, nova_default.SOFT_AFFINITY
RANDOM = host_order.RANDOM
LEAST_FREE = host_order.LEAST_FREE_PE
# All of these may use every host; Slurm keeps a job on one island.
ANYWHERE = (
    host_order.FIRST_FIT,
    kueue.BEST_FIT,
    kueue.LEAST_FREE,
    nova_default.DEFAULT,
    nova_default.SOFT_AFFINITY,
    host_order.RANDOM,
    host_order.LEAST_FREE_PE,
)
EVERY = (*ANYWHERE, slurm_tree.POLICY)

every_policy = pytest.mark.parametrize("policy", EVERY, ids=lambda policy: policy.name)


def four_hosts() -> Topology:
    """Return hosts that are alike as far as the network goes.

    ::

            leaf
        /   |  |   \\
        a   b  c   d
    """
    return Topology.from_tree({"leaf": ["d", "c", "b", "a"]})


def test_the_policies_have_the_names_by_which_they_are_asked_for():
    assert [policy.name for policy in EVERY] == [
        "first-fit",
        "kueue-best-fit",
        "kueue-least-free",
        "nova-default",
        "nova-soft-affinity",
        "random",
        "least-free-pe",
        "slurm-tree",
    ]


def test_stock_nova_spreads_equal_vms_over_equal_hosts_by_name():
    room = dict.fromkeys("abcd", 4)
    assert placed(SPREAD, four_hosts(), room, 3) == {"a": 1, "b": 1, "c": 1}
    assert placed(SPREAD, four_hosts(), room, 10) == {"a": 3, "b": 3, "c": 2, "d": 2}


def test_new_vms_count_as_io_operations_and_cancel_soft_affinity():
    """Add a point for the group's VMs, and take one off for VMs that are being built.

    ::

        VMs on a, b    a                        b
        1, 0           0.75 + 0.75 + 1 - 1      1 + 1 + 0 - 0      b is better
        1, 1           1    + 1    + 0 - 1      the same           by name
        2, 1           0.67 + 0.67 + 1 - 1      1 + 1 + 0 - 0.5    b is better
    """
    fabric = four_hosts()
    made = request(fabric, dict.fromkeys("abcd", 4), 8)
    places = SOFT_AFFINITY.place(made)
    assert "".join(fabric.hosts[host] for host in places) == "abcdabcd"


def test_nova_weighs_shares_of_the_most_not_of_the_span():
    """RAMWeigher and CPUWeigher begin their scale at 0.

    ::

        host   processors   memory     shares          of the span
        a      10           9000       1.0   + 0.9     1 + 0.0
        b      8            10000      0.8   + 1.0     0 + 1.0
        c      9            9600       0.9   + 0.96    0.5 + 0.6
    """
    fabric = Topology.from_tree({"leaf": ["a", "b", "c"]})
    free = {"a": (10.0, 9000.0), "b": (8.0, 10000.0), "c": (9.0, 9600.0)}
    room = dict.fromkeys("abc", 1)
    assert list(placed(SPREAD, fabric, room, 3, free=free)) == ["a", "c", "b"]


def test_a_full_host_no_longer_sets_the_scale():
    fabric = Topology.from_tree({"leaf": ["a", "b", "c"]})
    # a has most of both but takes a single VM; then b leads c by processors.
    free = {"a": (64.0, 65536.0), "b": (8.0, 4096.0), "c": (4.0, 6144.0)}
    room = {"a": 1, "b": 1, "c": 1}
    assert list(placed(SPREAD, fabric, room, 3, free=free)) == ["a", "b", "c"]


def test_hosts_that_are_overcommitted_weigh_nothing():
    fabric = Topology.from_tree({"leaf": ["a", "b"]})
    free = {"a": (-4.0, -4096.0), "b": (-8.0, -512.0)}
    assert placed(SPREAD, fabric, {"a": 1, "b": 1}, 1, free=free) == {"a": 1}


def test_least_free_takes_the_host_with_the_fewest_processors_that_still_takes_a_vm():
    free = {"a": (8.0, 8192.0), "b": (4.0, 8192.0), "c": (2.0, 512.0), "d": (4.0, 4096.0)}
    room = {"a": 4, "b": 2, "c": 0, "d": 2}
    assert placed(LEAST_FREE, four_hosts(), room, 5, free=free) == {"b": 2, "d": 2, "a": 1}


def test_random_places_are_repeated_with_the_same_seed_and_differ_with_another():
    fabric = fabrics.row_of_leaves({"leaf1": 20, "leaf2": 20})
    room = dict.fromkeys(fabric.hosts, 2)
    one, again, other = (placed(RANDOM, fabric, room, 12, seed=seed) for seed in (1, 1, 2))
    assert one == again
    assert one != other


def test_random_takes_hosts_with_little_and_much_room_equally_often():
    room = {"a": 1, "b": 1, "c": 100, "d": 0}
    taken = Counter[str]()
    for seed in range(3000):
        taken.update(placed(RANDOM, four_hosts(), room, 1, seed=seed))
    assert taken.keys() == {"a", "b", "c"}
    assert all(900 < count < 1100 for count in taken.values())


@every_policy
def test_a_group_of_nobody_has_its_places(policy: Policy):
    assert placed(policy, four_hosts(), dict.fromkeys("abcd", 1), 0) == {}


@every_policy
def test_a_group_that_does_not_fit_is_refused_with_counts(policy: Policy):
    made = request(four_hosts(), {"a": 2, "c": 1}, 4)
    assert str(policy.place(made)) == "group of 4 does not fit: largest gang that fits: 3 on leaf"


@every_policy
@given(group=fabrics.groups(max_members=0, max_awaiting=16))
def test_no_host_takes_more_than_it_can(policy: Policy, group: fabrics.Group):
    made = request(group.topology, group.capacity, group.awaiting)
    answer = policy.place(made)
    if not isinstance(answer, Rejection):
        assert len(answer) == group.awaiting
        for host, count in per_host(made, answer).items():
            assert count <= group.capacity[host]


@every_policy
@given(group=fabrics.groups(max_members=0, max_awaiting=16))
def test_only_a_group_that_is_larger_than_all_room_is_refused(policy: Policy, group: fabrics.Group):
    made = request(group.topology, group.capacity, group.awaiting)
    fabric = group.topology
    rooms = [sum(group.capacity.get(host, 0) for host in fabric.hosts)]
    if policy is slurm_tree.POLICY:
        rooms = [
            sum(group.capacity.get(host, 0) for host in fabric.hosts_of(root))
            for root in fabric.roots
        ]
    assert isinstance(policy.place(made), Rejection) == (max(rooms) < group.awaiting)


@st.composite
def resources(draw: st.DrawFn, group: fabrics.Group) -> dict[str, tuple[float, float]]:
    """Draw what hosts have free, with many equal ones."""
    amounts = st.sampled_from([1.0, 2.0, 3.0, 7.0])
    return {host: (draw(amounts), 512 * draw(amounts)) for host in group.topology.hosts}


# Slurm's choice follows the order of its file.
@pytest.mark.parametrize("policy", ANYWHERE, ids=lambda policy: policy.name)
@given(group=fabrics.groups(max_members=0, max_awaiting=16), data=st.data())
def test_the_order_of_the_description_changes_nothing(
    policy: Policy, group: fabrics.Group, data: st.DataObject
):
    free = data.draw(resources(group))
    answers = []
    for tree in (group.tree, fabrics.shuffled(data.draw, group.tree)):
        fabric = Topology.from_tree(tree)
        made = request(fabric, group.capacity, group.awaiting, free=free, demand=(1, 512))
        answer = policy.place(made)
        refused = isinstance(answer, Rejection)
        answers.append(None if refused else [fabric.hosts[host] for host in answer])
    assert answers[0] == answers[1]


def test_the_only_chance_is_the_requests_own():
    state = random.getstate()
    for policy in EVERY:
        placed(policy, four_hosts(), dict.fromkeys("abcd", 2), 5)
    assert random.getstate() == state
