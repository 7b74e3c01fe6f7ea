"""Bounds on leaves on fabrics of dozens: the whole table of VMs by leaves, and what is left out.

::

                       core
             /      |    ..     \\
           pod     pod          pod
         / | .. \\
      leaf leaf  leaf           1 to 8 hosts each
"""

import math
import random
from typing import Any

import numpy as np
import pytest

from hpc_sched.core.arrays import Array
from hpc_sched.core.constraints import Bounds
from hpc_sched.core.plan.exact.bound import near_sums
from hpc_sched.core.plan.exact.group_tree import GroupTree
from hpc_sched.core.plan.exact.leaves.open_leaves import OpenLeaves
from hpc_sched.core.plan.exact.order import Greatest
from hpc_sched.core.plan.exact.pruning import branches
from hpc_sched.core.plan.exact.pruning.branches import BranchSearch
from hpc_sched.core.plan.exact.search import Search, tops_of
from hpc_sched.core.plan.planner import plan
from hpc_sched.core.plan.problem import Problem
from hpc_sched.core.plan.result import Plan
from hpc_sched.core.plan.switch_rooms import switches_with_room
from hpc_sched.core.plan.time_limit import NO_LIMIT, Effort
from hpc_sched.topology import Topology

LOW = -(1 << 40)
ROOMS = [(1, 1), (0, 4), (1, 9), (0, 30)]
Pods = list[list[list[int]]]  # the capacity of hosts by leaf by pod


def pods_of(seed: int) -> tuple[Pods, int]:
    """Return the room of some pods, and VMs for a part of it."""
    draw = random.Random(seed)
    low, high = draw.choice(ROOMS)
    hosts = draw.choice([1, 2, 4, 8])
    pods = [
        [
            [draw.randint(low, high) for _ in range(draw.randint(1, hosts))]
            for _ in range(draw.randint(2, 9))
        ]
        for _ in range(draw.randint(2, 6))
    ]
    room = sum(sum(sum(leaf) for leaf in pod) for pod in pods)
    return pods, min(max(int(room * draw.uniform(0.1, 0.8)), 1), 120)


def fabric_of(pods: Pods) -> tuple[Topology, dict[str, int]]:
    """Return the fabric, and the capacity of its hosts."""
    room: dict[str, int] = {}
    tree: dict[str, Any] = {}
    for p, leaves in enumerate(pods):
        tree[f"pod{p}"] = {}
        for n, hosts in enumerate(leaves):
            names = [f"h{p}-{n}-{i}" for i in range(len(hosts))]
            tree[f"pod{p}"][f"leaf{p}-{n}"] = names
            room.update(zip(names, hosts, strict=True))
    return Topology.from_tree({"core": tree}), room


def joined(left: Array, right: Array) -> Array:
    """Return the most of all sums of two tables, by VMs and leaves."""
    shape = left.shape[0] + right.shape[0] - 1, left.shape[1] + right.shape[1] - 1
    both = np.full(shape, LOW)
    for (vms, leaves), saved in np.ndenumerate(right):
        part = both[vms : vms + left.shape[0], leaves : leaves + left.shape[1]]
        np.maximum(part, left + saved, out=part)
    return both


def least_costs(pods: Pods, count: int) -> dict[int, int]:
    """Return the least Hop-Byte cost on at most each number of leaves, from the whole table."""
    everywhere = np.zeros((1, 1), dtype=np.int64)
    for leaves in pods:
        below = np.zeros((1, 1), dtype=np.int64)
        for hosts in leaves:
            own = np.full((sum(hosts) + 1, 2), LOW)
            own[0, 0] = 0
            for vms in range(1, sum(hosts) + 1):
                pairs, rest = 0, vms
                for room in sorted(hosts, reverse=True):
                    pairs += math.comb(min(room, rest), 2)
                    rest -= min(room, rest)
                own[vms, 1] = pairs + vms * (vms - 1)
            below = joined(below, own)[: count + 1]
        vms = np.arange(len(below))[:, None]
        everywhere = joined(everywhere, below + vms * (vms - 1))[: count + 1]
    saved = np.maximum.accumulate(everywhere[count])
    return {
        leaves: 5 * math.comb(count, 2) - int(most)
        for leaves, most in enumerate(saved)
        if most > LOW // 2
    }


def searched(pods: Pods, count: int, is_trimmed: bool = False) -> Search:
    """Return the search without a price, with all leaves or without those of no good plan."""
    topology, room = fabric_of(pods)
    problem = Problem.from_counts(topology=topology, capacity=room, members={}, awaiting=count)
    leaves = OpenLeaves.of(problem, count)
    tops = switches_with_room(problem, count, topology.depth, Bounds())
    search = BranchSearch.of(leaves, topology.depth, tops, NO_LIMIT) if is_trimmed else None
    used = None if search is None else search.used()
    tree = GroupTree.of(leaves, Effort(), used)
    bounds = Greatest(5 * math.comb(count, 2), count, int(problem.capacity.sum()))
    return Search(tree, tops_of(tree, tops), bounds.weights())


@pytest.mark.parametrize("few", [None, 0], ids=["at once", "in blocks"])
def test_the_plan_on_each_number_of_leaves_is_that_of_the_whole_table(few, monkeypatch):
    if few is not None:
        monkeypatch.setattr(near_sums, "_FEW", few)
        monkeypatch.setattr(near_sums, "_BLOCK", 16)
    bound, proven = 0, 0
    for seed in range(120):
        pods, count = pods_of(seed)
        topology, room = fabric_of(pods)
        costs = least_costs(pods, count)
        for leaves, cost in costs.items():
            if leaves == 0 or leaves > min(costs) + 12:
                continue
            answer = plan(
                topology=topology, capacity=room, members={}, count=count, max_leaves=leaves
            )
            assert isinstance(answer, Plan)
            assert len(answer.leaves) <= leaves
            assert answer.hop_bytes == cost or not answer.is_proven, (seed, leaves)
            bound += cost > min(costs.values())
            proven += answer.is_proven and cost > min(costs.values())
    assert bound > 100
    assert proven == bound


def test_plans_near_the_best_are_the_same_without_what_they_do_not_use():
    """By listing those within some hops of the best, with and without the rest of the fabric."""
    left_out = 0
    for seed in range(60):
        pods, count = pods_of(seed)
        search = searched(pods, count)
        weights = search.weights
        for hops in (0, 5, 50):
            spare = hops * weights.saving + weights.unit - 1
            trimmed = search.at(weights, search.best - spare)
            assert sorted(trimmed.near(spare)) == sorted(search.near(spare))
            assert trimmed.plan(search.best) == search.plan(search.best)
            parts = [sum(map(len, each.tree.leaves.values())) for each in (trimmed, search)]
            left_out += parts[0] < parts[1]
    assert left_out > 30


@pytest.mark.parametrize("most", [1 << 16, 300], ids=["all bounds", "few bounds"])
def test_no_best_plan_uses_what_is_left_out_before_tables_are_joined(most, monkeypatch):
    monkeypatch.setattr(branches, "_MOST", most)
    monkeypatch.setattr(branches, "_FEW", 0)
    monkeypatch.setattr(branches, "_FEW_BELOW", 0)
    left_out = 0
    for seed in range(60):
        pods, most = pods_of(seed)
        largest = max(sum(hosts) for leaves in pods for hosts in leaves)
        for count in {1, largest // 2, largest, most} - {0}:
            whole, trimmed = searched(pods, count), searched(pods, count, is_trimmed=True)
            assert trimmed.plan(trimmed.best) == whole.plan(whole.best)
            left_out += sum(map(len, trimmed.tree.leaves.values())) < sum(
                map(len, whole.tree.leaves.values())
            )
    assert left_out > 30
