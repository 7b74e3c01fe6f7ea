"""The plan of a hard policy on bare metal is the best of all that keep the policy.

::

                     core
            /                 \\
          pod0                pod1
       /    |    \\             |
     l00   l01    l02          l10
      a     b    c d (full)   (full too)
      3     1    2 3   3         1       the service of each node, which takes one VM
"""

import itertools
import random
from collections import Counter
from dataclasses import replace
from typing import NamedTuple

import pytest

from hpc_sched.core import plan_by_service
from hpc_sched.core.constraints import Constraints
from hpc_sched.core.hopbyte import hop_bytes_of_counts
from hpc_sched.core.plan.result import Plan
from hpc_sched.core.plan.time_limit import NO_LIMIT, TimeLimit
from hpc_sched.topology import Topology
from tests.unit.recorded_groups import Group

SEEDS = (*range(300), 11624)
OVER = TimeLimit.after(0)


def bare_metal(seed: int, policy: str) -> Group:
    """Return a group with a policy on some services with nodes anywhere."""
    draw = random.Random(f"services of many nodes {seed}")
    fabric = Topology.from_tree(
        {
            "core": {
                f"pod{p}": {
                    f"leaf{p}{i}": [f"n{p}{i}{k}" for k in range(draw.randint(1, 3))]
                    for i in range(draw.randint(1, 3))
                }
                for p in range(draw.randint(1, 3))
            }
        }
    )
    services = draw.randint(2, 4)
    places = [(f"ironic{draw.randint(1, services)}", node) for node in fabric.hosts]
    members = {place: 1 for place in places if draw.random() < 0.1}
    room = [0 if place in members else draw.choice([0, 1, 1]) for place in places]
    left = draw.randint(1, 4)
    return Group(
        topology=fabric,
        places=places,
        room=room,
        free=room,
        members=members,
        left=left,
        awaiting=left + draw.choice([0, 0, 1]),
        policy=policy,
        max_per_host=draw.choice([1, 1, 2]),
        constraints=Constraints(
            require=draw.choice([None, None, "leaf", "pod"]),
            prefer=draw.choice([None, None, "leaf", "pod"]),
            max_leaves=draw.choice([None, None, None, 2, 3]),
        ),
    )


class Best(NamedTuple):
    """The best plan of all."""

    vms: int
    hop_bytes: float


def best_of_all(group: Group) -> Best | None:
    """Return the best plan of all sets of nodes, or None without any."""
    fabric, wanted = group.topology, group.constraints
    request = group.request()
    levels = fabric.levels
    order = [(wanted.bounds.level, size) for size in request.sizes]
    if wanted.bounds.preferred is not None and (
        wanted.bounds.level is None
        or levels.index(wanted.bounds.preferred) < levels.index(wanted.bounds.level)
    ):
        preferred = [
            (wanted.bounds.preferred, size) for size in request.sizes if size >= request.active
        ]
        order = preferred + order
    free = [place for place, room in zip(group.places, group.room, strict=True) if room]
    for level, size in order:
        sets = itertools.combinations(free, size)
        kept = [nodes for nodes in sets if keeps(group, level, nodes)]
        if kept:
            return Best(size, min(cost_of(group, nodes) for nodes in kept))
    return None


def keeps(group: Group, level: str | None, nodes: tuple[tuple[str, str], ...]) -> bool:
    """True if new VMs on some nodes keep the policy and the constraints, members included."""
    fabric = group.topology
    everyone = [*group.members, *nodes]
    of_service = Counter(service for service, _ in everyone)
    leaves = {fabric.leaf_of(node) for _, node in everyone}
    most = group.constraints.bounds.most_leaves
    taken = {service for service, _ in nodes}
    before = {service for service, _ in group.members}
    if group.policy == "affinity":
        keeps_policy = len(taken) == 1 and taken <= (before or taken)
    else:
        keeps_policy = all(of_service[service] <= (group.max_per_host or 0) for service in taken)
    return (
        keeps_policy
        and (most is None or len(leaves) <= most)
        and (level != "leaf" or len(leaves) == 1)
        and (level != "pod" or len({leaf[: len("leaf0")] for leaf in leaves}) == 1)
    )


def cost_of(group: Group, nodes: tuple[tuple[str, str], ...]) -> float:
    counts = Counter(node for _, node in [*group.members, *nodes])
    return hop_bytes_of_counts(topology=group.topology, counts=counts)


@pytest.mark.parametrize(
    ("policy", "limit", "most_plans", "is_best"),
    [
        pytest.param("affinity", NO_LIMIT, 0, True, id="affinity"),
        pytest.param("anti-affinity", NO_LIMIT, plan_by_service.MAX_PLANS, True, id="with time"),
        pytest.param("anti-affinity", NO_LIMIT, 2, False, id="within two plans"),
        pytest.param("anti-affinity", OVER, plan_by_service.MAX_PLANS, False, id="after the limit"),
    ],
)
def test_a_plan_that_is_proven_best_is_the_best_of_all(
    monkeypatch, policy, limit, most_plans, is_best
):
    monkeypatch.setattr(plan_by_service, "MAX_PLANS", most_plans)
    planned = proven = 0
    for seed in SEEDS:
        group = bare_metal(seed, policy)
        request, best = group.request(), best_of_all(group)
        plan = request.decide(limit)
        if best is None:
            assert not isinstance(plan, Plan), seed
            continue
        if not isinstance(plan, Plan):
            # Two plans may not suffice to find any within max_leaves.
            assert group.constraints.bounds.most_leaves, (seed, plan)
            assert most_plans == 2, (seed, plan)
            continue
        planned += 1
        proven += plan.is_proven
        assert request.broken_by(request.per_hypervisor(plan)) is None, seed
        found = Best(plan.count, plan.hop_bytes)
        assert plan.count < best.vms or plan.hop_bytes >= best.hop_bytes, (seed, plan, best)
        if plan.is_proven:
            assert found == best, (seed, plan, best)
    assert planned > 100
    assert (proven == planned) is is_best


def largest(group: Group, constraints: Constraints, members: bool = True) -> int:
    """Return the most nodes on which new VMs keep the policy and some constraints."""
    wanted = replace(group, constraints=constraints)
    free = [place for place, room in zip(group.places, group.room, strict=True) if room]
    of_service = Counter(service for service, _ in group.members)
    for size in range(len(free), 0, -1):
        for nodes in itertools.combinations(free, size):
            taken = of_service + Counter(service for service, _ in nodes)
            if members:
                is_kept = keeps(wanted, constraints.bounds.level, nodes)
            else:
                alone = replace(wanted, members={}, max_per_host=size)
                is_kept = keeps(alone, constraints.bounds.level, nodes) and all(
                    taken[service] <= (group.max_per_host or 0) for service, _ in nodes
                )
            if is_kept:
                return size
    return 0


def test_the_search_for_a_plan_that_keeps_the_policy_is_bounded_also_after_the_limit(monkeypatch):
    """Each of 20 leaves has a node of six of seven services; the group needs eight on two."""
    services = [f"ironic{number}" for number in range(7)]
    leaves = {f"l{leaf:02}": [f"n{leaf:02}{node}" for node in range(6)] for leaf in range(20)}
    places = [
        (services[(node + leaf) % 7], host)
        for leaf, hosts in enumerate(leaves.values())
        for node, host in enumerate(hosts)
    ]
    group = Group(
        topology=Topology.from_tree({"core": leaves}),
        places=places,
        room=[1] * len(places),
        free=[1] * len(places),
        members={},
        left=8,
        awaiting=8,
        policy="anti-affinity",
        max_per_host=1,
        constraints=Constraints(max_leaves=2),
    )
    made: list[TimeLimit] = []
    real = plan_by_service.solve

    def solve(problem, count, bounds, limit: TimeLimit):
        made.append(limit)
        return real(problem, count, bounds, limit)

    monkeypatch.setattr(plan_by_service, "solve", solve)
    assert not isinstance(group.request().decide(), Plan)
    assert len(made) > plan_by_service.MAX_PLANS
    made.clear()
    assert not isinstance(group.request().decide(OVER), Plan)
    unlimited = sum(limit is NO_LIMIT for limit in made)
    # Those of the last branches are complete.
    assert unlimited < plan_by_service.MAX_LATE_PLANS + len(services)


def test_a_refusal_on_bare_metal_names_the_largest_gangs_that_fit():
    refused = bounded = 0
    for seed in range(600):
        group = bare_metal(seed, "anti-affinity")
        answer = group.request().decide()
        if isinstance(answer, Plan) or answer.conflict or group.constraints.bounds.preferred:
            continue
        refused += 1
        assert answer.best is not None
        most = largest(group, group.constraints)
        if group.constraints.bounds.most_leaves is None:
            assert answer.best.vms == most, seed
        else:
            bounded += answer.best.vms < most
            assert answer.best.vms <= most < group.left, seed
        for gang in answer.gangs:
            there = Constraints(require=gang.level)
            assert gang.vms == largest(group, there, members=False), (seed, gang)
    assert refused > 50
    assert bounded < refused / 20


@pytest.mark.parametrize("numbers", itertools.permutations(range(4)))
def test_the_cost_does_not_depend_on_the_names_of_nodes(numbers):
    a, b, c, d = (f"n{number}" for number in numbers)
    fabric = Topology.from_tree(
        {
            "core": {
                "pod0": {"l00": [a], "l01": [b], "l02": [c, d, "full"]},
                "pod1": {"l10": ["full too"]},
            }
        }
    )
    services = ["3", "1", "2", "3", "3", "1"]
    room = [1, 1, 1, 1, 0, 0]
    group = Group(
        topology=fabric,
        places=list(zip(services, [a, b, c, d, "full", "full too"], strict=True)),
        room=room,
        free=room,
        members={},
        left=3,
        awaiting=3,
        policy="anti-affinity",
        max_per_host=1,
    )
    plan = group.request().decide()
    assert isinstance(plan, Plan)
    assert set(plan.hosts) == {b, c, d}
    assert (plan.hop_bytes, plan.is_proven) == (7, True)


@pytest.mark.parametrize(
    ("max_per_host", "left", "hosts"),
    [
        (1, 1, {"ironic1": 1}),
        (1, 2, {"ironic1": 1, "ironic2": 1}),
        (2, 2, {"ironic1": 2}),
        (2, 3, {"ironic1": 2, "ironic2": 1}),
        (1, 3, None),
    ],
)
def test_a_service_that_the_topology_has_as_one_host_takes_the_vms_that_the_policy_allows(
    max_per_host, left, hosts
):
    """Host aggregates have service hosts: all nodes of one are one host of the topology."""
    names = ["ironic1"] * 4 + ["ironic2"] * 4
    group = Group(
        topology=Topology.from_tree({"core": {"l1": ["ironic1"], "l2": ["ironic2"]}}),
        places=[(name, name) for name in names],
        room=[1] * 8,
        free=[1] * 8,
        members={},
        left=left,
        awaiting=left,
        policy="anti-affinity",
        max_per_host=max_per_host,
    )
    request = group.request()
    plan = request.decide()
    if hosts is None:
        assert not isinstance(plan, Plan)
        return
    assert isinstance(plan, Plan)
    assert sorted(plan.hosts.values()) == sorted(hosts.values())
    assert plan.is_proven
    assert request.broken_by(request.per_hypervisor(plan)) is None
