"""The record of a decision has all that the planner was given."""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import replace
from math import comb

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hpc_sched.core.arrays import Array, Mask
from hpc_sched.core.constraints import Constraints
from hpc_sched.core.counterfactual import costs
from hpc_sched.core.counterfactual.costs import decided
from hpc_sched.core.counterfactual.host_classes import (
    NONE,
    NOT_A_CANDIDATE,
    HostClass,
    classes_in,
)
from hpc_sched.core.counterfactual.rebuilt_request import of_size, rebuilt
from hpc_sched.core.group_request import GroupRequest
from hpc_sched.core.logged.decision_entry import DecisionEntry
from hpc_sched.core.plan.result import Plan
from hpc_sched.core.plan.time_limit import NO_LIMIT
from hpc_sched.topology import Topology
from tests.unit.recorded_groups import Group, random_group

# The last ones are plans on services with nodes below several leaves.
SEEDS = [*range(540), 50019, 50614, 52633, 52880]


def counterfactuals(entry: DecisionEntry) -> list[costs.Counterfactual]:
    """Return what a decision would have cost without each of its constraints."""
    request = rebuilt(entry)
    plan = costs.planned_again(request, entry, NO_LIMIT)
    return costs.counterfactuals(request, entry, plan, NO_LIMIT)


def without(group: Group, what: str) -> GroupRequest:
    """Return the request of the scheduler if one constraint had not been there."""
    kind, _, value = what.partition(": ")
    if what.startswith("hpc:homogeneous"):
        return replace(group, types=[], homogeneous="false").request()
    if what.startswith("hpc:"):
        name = what.removeprefix("hpc:").partition("=")[0]
        return replace(group, constraints=group.constraints.changed(**{name: None})).request()
    if what.startswith("policy "):
        return replace(group, policy=None).request()
    if kind == "shunned hosts":
        others = {why: mask for why, mask in group.shunned.items() if why != value}
        return replace(group, shunned=others).request()
    if value == "the VMs of others":
        return replace(group, room=group.free).request()
    assert kind == "filter"
    return group.request(with_removed=value)


@pytest.mark.parametrize("part", range(6))
def test_costs_without_each_constraint_are_those_of_the_scheduler_without_it(part):
    compared = 0
    for seed in SEEDS[part::6]:
        group = random_group(seed)
        entry = group.entry()
        found = counterfactuals(entry)
        for one in found:
            assert one.unknown is None, (seed, one)
            if one.without == costs.EVERYTHING:
                continue
            live = without(group, one.without)
            compared += 1
            if entry.plan is not None:
                count = sum(entry.plan.hosts.values())
                if "group_size" in one.without:
                    count = min(group.awaiting, count)
                live = of_size_of(live, count)
            answer = decided(live, NO_LIMIT)
            if one.hop_bytes is None:
                assert not isinstance(answer, Plan), (seed, one, answer)
                continue
            assert isinstance(answer, Plan), (seed, one, answer)
            assert cost_of(live, answer) == one.hop_bytes, (seed, one, answer, entry)
            assert answer.count == one.vms
            assert costs.leaves_of(live, answer.places) == one.leaves, (seed, one, answer)
    assert compared > 100


def cost_of(live: GroupRequest, plan: Plan) -> float:
    """Return the cost of a plan; with MDOBP VMs on one host count as VMs of one leaf."""
    if live.packing is None:
        return plan.hop_bytes
    counts = live.members.copy()
    for host, count in plan.hosts.items():
        counts[live.topology.index_of(host)] += count
    return plan.hop_bytes + sum(comb(count, 2) for count in counts.tolist())


def of_size_of(live: GroupRequest, count: int) -> GroupRequest:
    """Return the live request for a number of VMs: a preferred level as far as it holds."""
    if count < live.active:
        constraints = live.constraints.changed(prefer=None)
        live = replace(live, constraints=constraints)
    return replace(live, left=count, awaiting=count, orphans=0, missing=0)


@pytest.mark.parametrize("part", range(6))
def test_a_decision_is_planned_again_at_the_same_cost_or_refused_again(part):
    for seed in SEEDS[part::6]:
        group = random_group(seed)
        entry: DecisionEntry = group.entry()
        request = rebuilt(entry)
        answer = decided(request.request, NO_LIMIT)
        live = decided(group.request(), NO_LIMIT)
        assert type(answer) is type(live), seed
        if isinstance(live, Plan) and isinstance(answer, Plan):
            if group.packing is None:
                assert answer.hop_bytes == live.hop_bytes, seed
            if not entry.input or not entry.input.services:
                # A service of many nodes shares its allowance out by their names.
                assert dict(answer.leaves) == dict(live.leaves), seed
            fixed = decided(of_size(request.request, live.count), NO_LIMIT)
            assert isinstance(fixed, Plan), seed
            assert costs.cost_of(request, fixed.places) == costs.cost_of(request, answer.places), (
                seed
            )


def rows_of(
    request: GroupRequest, rows: Iterable[int], free: Array, shunned: Mapping[str, Mask]
) -> Counter[tuple[object, ...]]:
    """Return hypervisors by all that a record has of them but their names."""
    topology, hosts = request.topology, request.hosts_of_rows
    types = request.processors.hypervisors if request.processors is not None else {}
    return Counter(
        (
            topology.switches[int(topology.leaf_index[hosts[i]])].name,
            int(request.room[i]),
            max(int(free[i]), int(request.room[i])),
            int(request.members[hosts[i]]),
            tuple(why for why, mask in sorted(shunned.items()) if mask[i]),
            tuple(name for name, mask in types.items() if mask[i]),
        )
        for i in rows
    )


@pytest.mark.parametrize("part", range(6))
def test_the_request_that_is_read_from_a_record_is_the_one_that_was_written(part):
    for seed in SEEDS[part::6]:
        group = random_group(seed)
        live, entry = group.request(), group.entry()
        again = rebuilt(entry)
        request = again.request
        for name in (
            *("left", "awaiting", "orphans", "missing", "constraints", "server_group_policy"),
            *("pack_hosts", "homogeneous"),
        ):
            assert getattr(request, name) == getattr(live, name), (seed, name)
        assert request.topology.levels == live.topology.levels
        assert (request.hard_policy is None) == (live.hard_policy is None)
        if request.hard_policy is not None and live.hard_policy is not None:
            assert request.hard_policy.policy == live.hard_policy.policy
            if group.policy == "anti-affinity":
                assert request.hard_policy.max_per_service == live.hard_policy.max_per_service
        if live.processors is not None:
            assert request.processors is not None
            assert request.processors.best_first() == live.processors.best_first()
            assert request.processors.members == live.processors.members
        removed = [mask for mask in again.removed.values() if mask.any()]
        is_left_out = np.logical_or.reduce([again.is_member_host, *removed])
        own = np.flatnonzero(~is_left_out).tolist()
        shunned = {why: np.array(mask) for why, mask in group.shunned.items()}
        before = rows_of(live, range(len(live.room)), np.array(group.free), shunned)
        assert rows_of(request, own, again.free, again.shunned) == before, seed
        assert request.members.sum() == live.members.sum()
        left_out = {why: sorted(room for _, room in hosts) for why, hosts in group.removed.items()}
        for why, rooms in left_out.items():
            assert sorted(again.free[again.removed[why]].tolist()) == rooms, seed


NUMBERS = st.integers(0, 999)
CLASSES = st.builds(
    HostClass,
    room=st.integers(NOT_A_CANDIDATE, 9_999_999),
    free=NUMBERS,
    members=NUMBERS,
    shunned=st.lists(NUMBERS, max_size=3).map(tuple),
    removed=st.integers(NONE, 999),
    type_=st.integers(NONE, 9999),
    service=st.integers(NONE, 9_999_999),
    host=st.integers(NONE, 9_999_999),
    link=st.integers(NONE, 999_999),
)


@given(st.lists(st.tuples(st.integers(1, 9_999_999), CLASSES)))
def test_classes_of_hosts_are_read_as_they_were_written(written):
    text = " ".join(f"{hosts}{of_hosts}" for hosts, of_hosts in written)
    assert list(classes_in(text)) == written


def test_without_the_final_size_the_preferred_level_still_holds():
    """The preference is for a pod; two hosts in two others would cost less.

    ::

                       core
            /           |           \\
          pod1         pod2        pod3
        6 leaves       leaf7       leaf8
         1 free       3 free      1 free
    """
    pods = {
        "pod1": {f"leaf{number}": [f"h{number}"] for number in range(1, 7)},
        "pod2": {"leaf7": ["h7"]},
        "pod3": {"leaf8": ["h8"]},
    }
    fabric = Topology.from_tree({"core": pods})
    room = [1, 1, 1, 1, 1, 1, 3, 1]
    group = Group(
        topology=fabric,
        places=[(host, host) for host in fabric.hosts],
        room=room,
        free=room,
        members={},
        left=4,
        awaiting=4,
        constraints=Constraints(prefer="pod", group_size=6),
    )
    entry = group.entry()
    [found] = [one for one in counterfactuals(entry) if "group_size" in one.without]
    live = without(group, found.without).decide()
    assert isinstance(live, Plan)
    assert (found.hop_bytes, found.less) == (live.hop_bytes, 0) == (18, 0)


def test_the_first_vms_of_a_final_size_cost_what_they_do_where_each_is_on_a_leaf_of_its_own():
    leaves = {f"leaf{number}": [f"h{number}-{i}" for i in range(4)] for number in range(4)}
    fabric = Topology.from_tree({"core": leaves})
    group = Group(
        topology=fabric,
        places=[(host, host) for host in fabric.hosts],
        room=[1] * 16,
        free=[1] * 16,
        members={},
        left=2,
        awaiting=2,
        constraints=Constraints(min_leaves=3, group_size=6),
        policy="anti-affinity",
        max_per_host=1,
    )
    [found] = [one for one in counterfactuals(group.entry()) if "group_size" in one.without]
    assert (found.hop_bytes, found.less) == (3, 0)


@pytest.mark.parametrize("services", [["h1", "h2", "h3"], ["one", "one", "two"]])
def test_the_host_of_the_members_that_a_filter_removed_has_them_without_the_filter(services):
    tree = {"core": {"leaf1": ["h1", "h2"], "leaf2": ["h3"]}}
    group = Group(
        topology=Topology.from_tree(tree),
        places=list(zip(services, ["h1", "h2", "h3"], strict=True)),
        room=[2, 2, 2],
        free=[2, 2, 2],
        members={("interference 0", "interference 0"): 1},
        left=2,
        awaiting=2,
        policy="affinity",
        removed={"interference": [("leaf2", 2)]},
    )
    entry = group.entry()
    assert entry.decision == "refused"
    found = {one.without: one for one in counterfactuals(entry)}
    assert found["filter: interference"].hop_bytes == 0
    free = replace(group, policy=None).entry()
    found = {one.without: one for one in counterfactuals(free)}
    assert found["filter: interference"].hop_bytes == 0
