"""The best plan that uses a switch is that of an enumeration of all plans."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from math import comb

import numpy as np
import pytest

from hpc_sched.core.constraints import Constraints, level_of, server_group_policy
from hpc_sched.core.counterfactual import why_not
from hpc_sched.core.counterfactual.open_hosts import OpenHosts, PlannedAgain
from hpc_sched.core.counterfactual.rebuilt_request import rebuilt
from hpc_sched.core.group_request import GroupRequest
from hpc_sched.core.hopbyte import hop_bytes_of_counts
from hpc_sched.core.plan.time_limit import NO_LIMIT
from hpc_sched.topology import Topology
from tests.unit.recorded_groups import Group, random_group

MOST_PLANS = 20_000


def ways(room: list[int], count: int) -> Iterator[list[int]]:
    """Yield all ways to place a number of VMs on hosts."""
    if not room:
        if not count:
            yield []
        return
    for here in range(min(room[0], count) + 1):
        for rest in ways(room[1:], count - here):
            yield [here, *rest]


def number_of_ways(room: list[int], count: int) -> int:
    table = [1] + [0] * count
    for most in room:
        table = [sum(table[max(n - most, 0) : n + 1]) for n in range(count + 1)]
    return table[count]


def keeps(request: GroupRequest, planned: np.ndarray) -> bool:
    """True if planned VMs per hypervisor keep all constraints with the members."""
    topology = request.topology
    everyone = request.members + request.per_host(planned)
    hosts = np.flatnonzero(everyone)
    level = level_of(topology, request.constraints.bounds.level)
    if len(np.unique(topology.groups[level - 1][hosts])) > 1:
        return False
    bounds, leaves = request.constraints.bounds, len(np.unique(topology.leaf_index[hosts]))
    if bounds.most_leaves is not None and leaves > bounds.most_leaves:
        return False
    before = len(np.unique(topology.leaf_index[request.members > 0]))
    if leaves < min(bounds.least_leaves, before + int(planned.sum())):
        return False
    if (
        request.most_per_host is not None
        and (everyone[request.per_host(planned) > 0] > request.most_per_host).any()
    ):
        return False
    return request.hard_policy is None or server_group_policy.keeps(request.hard_policy, planned)


def plans(found: OpenHosts, count: int) -> list[tuple[float, int, np.ndarray]]:
    """Return cost, number of leaves and VMs per hypervisor of all plans."""
    request = found.request
    topology = request.topology
    made = []
    for way in ways(request.room.tolist(), count):
        planned = np.array(way, dtype=np.int64)
        if keeps(request, planned):
            everyone = request.members + request.per_host(planned)
            counts = {topology.hosts[i]: int(everyone[i]) for i in np.flatnonzero(everyone)}
            leaves = len(np.unique(topology.leaf_index[np.flatnonzero(everyone)]))
            cost = hop_bytes_of_counts(topology=topology, counts=counts)
            if not request.pack_hosts:
                cost += sum(comb(count, 2) for count in counts.values())
            made.append((cost, leaves, planned))
    return made


def cases(seeds: range, *, is_spread: bool) -> Iterator[tuple[int, PlannedAgain, list]]:
    """Yield decisions with a plan whose plans are few, with all of these.

    :param is_spread: whether the groups have a bound at least on their leaves
    """
    for seed in seeds:
        group = random_group(seed)
        if is_spread:
            constraints = group.constraints.changed(min_leaves=2 + seed % 4)
            group = replace(group, constraints=constraints)
        entry = group.entry()
        if entry.plan is None:
            continue
        again = PlannedAgain(rebuilt(entry), entry, NO_LIMIT)
        found, count = again.open_hosts, again.plan.count
        if number_of_ways(found.request.room.tolist(), count) <= MOST_PLANS:
            yield seed, again, plans(found, count)


@pytest.mark.parametrize("is_spread", [False, True], ids=["any", "with a bound at least"])
@pytest.mark.parametrize("part", range(4))
def test_the_best_plan_with_a_vm_under_a_switch_is_that_of_an_enumeration(part, is_spread):
    reasons = Counter[str]()
    for seed, again, every in cases(range(part * 80, part * 80 + 80), is_spread=is_spread):
        found, request = again.open_hosts, again.rebuilt.request
        topology = request.topology
        assert min(cost for cost, _, _ in every) == found.cost, seed
        for index, switch in enumerate(topology.switches):
            below = topology.groups[switch.level - 1][request.hosts_of_rows] == index
            answer = why_not.why_not(again, switch.name)
            here = [(cost, leaves) for cost, leaves, planned in every if planned[below].any()]
            inside = [cost for cost, _, planned in every if not planned[~below].any()]
            if answer.vms:
                assert answer.reason.startswith("it is used"), seed
                continue
            where = seed, switch.name, answer
            if not here:
                assert (answer.one is None) == (answer.without is None), where
                reasons[answer.reason.split(":")[0].split("(")[0][:30]] += 1
            else:
                assert answer.one is not None, where
                best = min(here)
                assert (answer.one.hop_bytes, answer.one.leaves) == best, where
                assert answer.one.more == best[0] - found.cost
                if best[0] > found.cost:
                    assert f"costs {best[0] - found.cost:.0f} more" in answer.reason, where
                else:
                    assert "costs the same, but" in answer.reason, where
                    fewest = min(leaves for cost, leaves, _ in every if cost == found.cost)
                    assert ("more leaves" in answer.reason) == (best[1] > fewest), where
                reasons[answer.reason[:40]] += 1
            assert (answer.all_.hop_bytes if answer.all_ else None) == min(inside, default=None), (
                where
            )
    assert len(reasons) > 4


def test_a_group_with_affinity_on_two_hosts_is_not_planned_on_both():
    """Members have moved apart: both have room, but a plan takes one of them."""
    tree = {"core": {"leaf1": ["h1"], "leaf2": ["h2"]}}
    group = Group(
        topology=Topology.from_tree(tree),
        places=[("h1", "h1"), ("h2", "h2")],
        room=[1, 4],
        free=[1, 4],
        members={("h1", "h1"): 1, ("h2", "h2"): 1},
        left=3,
        awaiting=3,
        policy="affinity",
    )
    entry = group.entry()
    answer = why_not.why_not(PlannedAgain(rebuilt(entry), entry, NO_LIMIT), "leaf1")
    assert answer.reason.startswith("the policy leaves no plan with it (policy affinity)")


def test_a_leaf_of_the_group_is_not_used_while_it_must_use_others():
    """Two members on two leaves, two VMs more on other ones, for four leaves are required."""
    tree = {"core": {f"leaf{number}": [f"h{number}", f"g{number}"] for number in range(1, 6)}}
    fabric = Topology.from_tree(tree)
    group = Group(
        topology=fabric,
        places=[(host, host) for host in fabric.hosts],
        room=[0, 1, 0, *[1] * 7],
        free=[0, 1, 0, *[1] * 7],
        members={("h1", "h1"): 1, ("h2", "h2"): 1},
        left=2,
        awaiting=2,
        constraints=Constraints(min_leaves=4),
    )
    entry = group.entry()
    answer = why_not.why_not(PlannedAgain(rebuilt(entry), entry, NO_LIMIT), "leaf1")
    assert answer.reason == (
        "a plan with it uses fewer leaves than required (hpc:min_leaves=4); it has room for 1 of "
        "2 VMs"
    )
    assert answer.one is not None
    # Two pairs below one leaf are 2 hops nearer each than all pairs on leaves of their own.
    assert (answer.one.hop_bytes, answer.one.more) == (14, -4)


def test_the_room_of_a_switch_counts_each_service_once():
    """Two services own two nodes each, one below each leaf."""
    tree = {"core": {"leaf1": ["n1", "n2"], "leaf2": ["n3", "n4"]}}
    group = Group(
        topology=Topology.from_tree(tree),
        places=[("s1", "n1"), ("s2", "n2"), ("s1", "n3"), ("s2", "n4")],
        room=[1] * 4,
        free=[1] * 4,
        members={},
        left=3,
        awaiting=3,
        policy="anti-affinity",
        max_per_host=1,
    )
    entry = group.entry()
    again = PlannedAgain(rebuilt(entry), entry, NO_LIMIT)
    reasons = [why_not.why_not(again, name).reason for name in ("leaf1", "core")]
    assert reasons == ["there is no plan: it has room for 2 of 3 VMs"] * 2
