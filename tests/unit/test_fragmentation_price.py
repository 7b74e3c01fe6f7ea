"""What plans pay for the free slots that they leave on leaves and pods with VMs.

::

                     core
               /              \\
             pod1             pod2
           /      \\         /      \\
        leaf1    leaf2    leaf3    leaf4
        4 hosts  4 hosts  4 hosts  4 hosts, of one slot each
"""

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from hpc_sched import exceptions
from hpc_sched.core.arrays import Array
from hpc_sched.core.capacity import UNBOUNDED
from hpc_sched.core.constraints import NO_CONSTRAINTS, server_group_policy
from hpc_sched.core.counterfactual import costs
from hpc_sched.core.counterfactual.rebuilt_request import RecordError, rebuilt
from hpc_sched.core.fragmentation import rates
from hpc_sched.core.fragmentation.broken import broken_slots
from hpc_sched.core.fragmentation.price import (
    FragmentationPrice,
    empty_hosts,
    fragmentation_price,
)
from hpc_sched.core.fragmentation.required_price import where_required
from hpc_sched.core.group_request import GroupRequest
from hpc_sched.core.hpc_specs import HPCSpecs
from hpc_sched.core.plan.planner import solve
from hpc_sched.core.plan.problem import Problem
from hpc_sched.core.plan.result import Plan
from hpc_sched.core.plan.time_limit import NO_LIMIT
from hpc_sched.snapshot.log.logged_decisions import entry_of
from hpc_sched.topology import Topology
from tests.unit.recorded_groups import random_group

LEAVES = {f"leaf{number}": [f"n{number}{i}" for i in range(4)] for number in range(1, 5)}
FABRIC = Topology.from_tree(
    {
        "core": {
            "pod1": {name: LEAVES[name] for name in ("leaf1", "leaf2")},
            "pod2": {name: LEAVES[name] for name in ("leaf3", "leaf4")},
        }
    }
)
PRICE = FragmentationPrice(rates.DEFAULT, 4, 8)


def room(full: dict[str, int]) -> dict[str, int]:
    """Return what hosts take where the first ones of leaves are full, by their number."""
    return {
        host: int(i >= full.get(leaf, 0))
        for leaf, below in LEAVES.items()
        for i, host in enumerate(below)
    }


def planned(full: dict[str, int], count: int, price: FragmentationPrice | None = PRICE) -> Plan:
    """Return the plan of some VMs where the first hosts of leaves are full, by their number."""
    capacity = room(full)
    problem = Problem.from_counts(
        topology=FABRIC, capacity=capacity, members={}, awaiting=count, group_id="job"
    )
    answer = solve(replace(problem, price=price), count)
    assert isinstance(answer, Plan)
    return answer


def group_request(
    room: Array,
    left: int,
    empty: Array | None = None,
    policy: str | None = None,
    max_per_host: int | None = None,
    require: str | None = None,
) -> GroupRequest:
    """Return a new group, with the price as delivered; by default on hosts of one slot."""
    return GroupRequest.of(
        FABRIC,
        HPCSpecs("sync", NO_CONSTRAINTS.changed(require=require), "false", (), ()),
        group_id="job",
        policy=policy,
        max_per_host=max_per_host,
        places=[(host, host) for host in FABRIC.hosts],
        names=FABRIC.hosts,
        room=room,
        members={},
        left=left,
        awaiting=left,
        rates=rates.DEFAULT,
        empty=np.ones(16, dtype=np.int64) if empty is None else empty,
    )


def test_a_vm_goes_to_the_broken_leaf_of_the_broken_pod():
    assert planned({"leaf3": 3}, 1).leaves == {"leaf3": 1}
    # One slot less on its leaf, but four more in its pod: 8 * 2 + 6 against 8 * 1 + 5.
    assert planned({"leaf1": 2, "leaf3": 3}, 1).leaves == {"leaf3": 1}


def test_a_group_of_a_leaf_and_more_leaves_the_empty_pod_whole():
    # Six VMs cost 7 + 8 * 3 hops on 4 + 2, 6 + 9 * 3 on 3 + 3: the empty pod has the least.
    broken = {"leaf1": 1, "leaf2": 1}
    assert dict(planned(broken, 6, None).leaves).keys() == {"leaf3", "leaf4"}
    assert planned(broken, 6).leaves == {"leaf1": 3, "leaf2": 3}
    # Nothing breaks up where the price is too small to matter.
    tiny = FragmentationPrice(rates.rates_of(0.001, 0.001), 4, 8)
    assert dict(planned(broken, 6, tiny).leaves).keys() == {"leaf3", "leaf4"}


@pytest.mark.parametrize(
    ("require", "full", "count", "leaves"),
    [
        # Pods with 5 slots, of which one leaf holds the group, and with 4, where none does.
        (None, {"leaf1": 3, "leaf3": 2, "leaf4": 2}, 3, {"leaf2": 3}),
        ("pod", {"leaf1": 3, "leaf3": 2, "leaf4": 2}, 3, {"leaf3": 2, "leaf4": 1}),
        # Leaves with 3 slots in a pod of 3, and with 2 in a pod of 6.
        (None, {"leaf1": 1, "leaf2": 4, "leaf3": 2}, 2, {"leaf1": 2}),
        ("leaf", {"leaf1": 1, "leaf2": 4, "leaf3": 2}, 2, {"leaf3": 2}),
    ],
)
def test_the_fullest_switch_of_the_required_level_holds_a_group(require, full, count, leaves):
    request = group_request(
        room=np.array([room(full)[host] for host in FABRIC.hosts]), left=count, require=require
    )
    # Records have the price of the option.
    assert request.price == PRICE
    answer = request.decide()
    assert isinstance(answer, Plan)
    assert sorted(answer.leaves.values()) == sorted(leaves.values())
    assert answer.leaves.keys() == leaves.keys()


def test_the_rate_of_the_required_level_is_within_those_of_the_option():
    high = FragmentationPrice(rates.rates_of(900, 0.1), 4, 8)
    assert where_required(high, 1).rates == rates.rates_of(1000, 0.1)
    assert where_required(high, 2).rates == rates.rates_of(900, 50)
    assert where_required(high, 3) == high


def test_broken_slots_are_what_stays_free_on_used_leaves_and_pods():
    capacity = dict.fromkeys(FABRIC.hosts, 1)
    problem = Problem.from_counts(topology=FABRIC, capacity=capacity, members={}, awaiting=6)
    answer = solve(problem, 6)
    assert isinstance(answer, Plan)
    found = broken_slots(problem, answer)
    assert (found.leaves, found.pods) == (2, 2)


def test_the_largest_switch_counts_as_if_hosts_that_are_no_candidates_were_the_largest_one():
    candidates = np.array([0, 1, 4])
    empty = empty_hosts(FABRIC, candidates, np.array([2, 3, 1]))
    assert empty.tolist() == [2, 3, 3, 3, 1, *[3] * 11]
    # Several hypervisors of one host of the topology together.
    assert empty_hosts(FABRIC, np.array([0, 0]), np.array([2, 3]))[:2].tolist() == [5, 3]
    room = np.zeros(16, dtype=np.int64)
    assert fragmentation_price(rates.DEFAULT, FABRIC, empty, room, 5, 1) == PRICE


def price_while_free(
    free: int, empty: int = 4, size: int = 5, of_option: rates.FragmentationRates = rates.DEFAULT
) -> FragmentationPrice | None:
    """Return the price of a group while the first host takes all that is free."""
    room = np.array([free, *[0] * 15])
    return fragmentation_price(of_option, FABRIC, np.full(16, empty), room, size)


@pytest.mark.parametrize(
    ("free", "rate"),
    [
        (0, 0.6),
        # 0.6 * (16 of 64 slots in use) ^ 4, to a millionth
        (48, 0.002344),
        (61, 0.000003),
    ],
)
def test_where_hosts_take_several_vms_leaves_cost_by_what_is_in_use_and_pods_are_free(free, rate):
    assert price_while_free(free) == FragmentationPrice(rates.rates_of(rate, 0), 16, 32)


@pytest.mark.parametrize(
    ("free", "size"),
    [
        (63, 5),
        (64, 5),
        # Several hypervisors of one host may take more together than the policy allows the host.
        (65, 5),
        # A host that is empty holds the group.
        (0, 4),
    ],
)
def test_a_group_of_a_host_and_one_in_an_empty_cloud_are_not_charged(free, size):
    assert price_while_free(free, size=size) is None


def test_the_rate_where_hosts_take_several_vms_has_a_most():
    highest = price_while_free(32, of_option=rates.rates_of(1000, 0.2))
    assert highest == FragmentationPrice(rates.rates_of(62.5, 0), 16, 32)
    assert price_while_free(32, of_option=rates.rates_of(0, 0.2)) is None


def test_the_price_where_hosts_take_one_vm_does_not_depend_on_what_is_in_use():
    assert [price_while_free(room, 1, 1) for room in (0, 1)] == [PRICE] * 2


@pytest.mark.parametrize(("in_pod2", "leaf"), [(4, "leaf2"), (0, "leaf1")])
def test_hosts_are_broken_up_to_fill_a_leaf_once_whole_leaves_are_few(in_pod2, leaf):
    # Six VMs have 8 pairs on two hosts of leaf2, and 9 on those of leaf1 that take 3 each.
    of_leaf1, of_leaf2 = [3, 3, 0, 0], [4] * 4
    answer = group_request(
        room=np.array([*of_leaf1, *of_leaf2, *[in_pod2] * 8]), empty=np.full(16, 4), left=6
    ).decide()
    assert isinstance(answer, Plan)
    assert answer.leaves == {leaf: 6}


@pytest.mark.parametrize(
    ("policy", "most", "expected"),
    [
        (None, None, UNBOUNDED),
        ("soft-affinity", None, UNBOUNDED),
        ("affinity", None, UNBOUNDED),
        ("anti-affinity", 2, 2),
        ("soft-anti-affinity", None, 1),
    ],
)
def test_a_policy_bounds_the_slots_of_an_empty_host(policy, most, expected):
    assert server_group_policy.most_of(policy, most) == expected


def test_without_rates_or_pods_there_is_no_price():
    empty = np.ones(16, dtype=np.int64)
    assert fragmentation_price(rates.NO_PRICE, FABRIC, empty, empty, 5) is None
    flat = Topology.from_tree({"cloud": list(FABRIC.hosts)})
    assert fragmentation_price(rates.DEFAULT, flat, empty, empty, 5) is None


@pytest.mark.parametrize(
    ("policy", "is_priced"),
    [(None, True), ("soft-anti-affinity", True), ("anti-affinity", True), ("affinity", False)],
)
def test_a_group_on_one_host_has_no_price(policy, is_priced):
    request = group_request(
        room=np.ones(16, dtype=np.int64),
        left=4,
        policy=policy,
        max_per_host=1,
    )
    assert request.price == request.problem().price == (PRICE if is_priced else None)


@pytest.mark.parametrize("text", ["0.1,0.2", " 0.1 , 0.2 ", ".1,2e-1"])
def test_rates_are_two_numbers(text):
    assert rates.read(text) == rates.DEFAULT == rates.read(str(rates.DEFAULT))


def test_no_price_is_zero():
    assert rates.read("0") == rates.read(str(rates.NO_PRICE)) == rates.NO_PRICE
    assert not rates.read("0,0")
    assert rates.read("0,0.5").pod == Fraction(1, 2)


@pytest.mark.parametrize(
    "text", ["", "0.1", "1,2,3", "a,b", "-1,2", "nan,0", "inf,1", "1,1001", "1,"]
)
def test_other_rates_are_an_error_that_says_what_was_expected(text):
    with pytest.raises(exceptions.ConfigError, match="expected LEAF,POD, two numbers from 0 to"):
        rates.read(text)


def test_a_record_has_the_price_and_gives_the_same_plan_and_that_without_it():
    cheaper = 0
    for seed in range(120):
        group = replace(random_group(seed), rates=rates.rates_of(50, 100))
        entry = group.entry()
        again, request = rebuilt(entry), group.request()
        assert again.request.price == request.price
        plan = costs.planned_again(again, entry, NO_LIMIT)
        found = {one.without: one for one in costs.counterfactuals(again, entry, plan, NO_LIMIT)}
        if request.price is None:
            assert not any(name.startswith("fragmentation_price") for name in found)
            continue
        without = found.get(f"fragmentation_price={request.price.rates}")
        # A price refuses nothing.
        assert (without is None) == (plan is None)
        if without is None or without.hop_bytes is None:
            continue
        # The least Hop-Byte of all plans within the constraints.
        assert without.less is not None
        assert without.less >= 0
        assert without.broken is not None
        assert without.kept is not None
        cheaper += without.less > 0
    assert cheaper


def test_a_damaged_price_is_an_error_of_the_record():
    record = replace(random_group(3), rates=rates.DEFAULT).record()
    for price in ({"leaf": -1, "pod": 0}, {"leaf": 1e9, "pod": 0}):
        record["input"]["price"] = price
        with pytest.raises(RecordError, match="damaged: price"):
            rebuilt(entry_of(record))


def test_members_beside_the_zone_of_a_plan_are_no_endless_search():
    """Most of zone 0 is full; the plan is below zone 1, all of it, and members are in zone 0.

    ::

                          core
                     /            \\
                 zone0            zone1
                 / .. \\           / .. \\
               6 pods of 6 leaves of 4 hosts each
    """
    tree = {
        f"zone{z}": {
            f"pod{z}{p}": {
                f"leaf{z}{p}{leaf}": [f"n{z}{p}{leaf}{i}" for i in range(4)] for leaf in range(6)
            }
            for p in range(6)
        }
        for z in range(2)
    }
    fabric = Topology.from_tree({"core": tree})
    room = {host: int(n % 5 < 3) for n, host in enumerate(fabric.hosts_of("zone1"))}
    problem = Problem.from_counts(
        topology=fabric, capacity=room | {"n0001": 1}, members={"n0000": 1}, awaiting=50
    )
    answer = solve(replace(problem, price=FragmentationPrice(rates.DEFAULT, 4, 24)), 50)
    assert isinstance(answer, Plan)
    assert answer.is_proven
