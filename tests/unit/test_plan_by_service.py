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

from hpc_sched.core import largest_gangs
from hpc_sched.core.by_service import plan_by_service
from hpc_sched.core.constraints import Constraints
from hpc_sched.core.hopbyte import hop_bytes_of_counts
from hpc_sched.core.plan.result import Plan, Rejection
from hpc_sched.core.plan.time_limit import NO_LIMIT, TimeLimit
from hpc_sched.topology import Topology
from tests.unit.recorded_groups import Group, Links

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
    awaiting = left + draw.choice([0, 0, 1])
    max_per_host = draw.choice([1, 1, 2])
    require, prefer = (draw.choice([None, None, "leaf", "pod"]) for _ in range(2))
    max_leaves = draw.choice([None, None, None, 2, 3])
    min_leaves = draw.choice([None, None, 2, 3])
    if require == "leaf" or (max_leaves or 3) < (min_leaves or 1):
        min_leaves = None
    return Group(
        topology=fabric,
        places=places,
        room=room,
        free=room,
        members=members,
        left=left,
        awaiting=awaiting,
        policy=policy,
        max_per_host=max_per_host,
        constraints=Constraints(
            require=require, prefer=prefer, max_leaves=max_leaves, min_leaves=min_leaves
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
    bounds = group.constraints.bounds
    most, before = bounds.most_leaves, {fabric.leaf_of(node) for _, node in group.members}
    missing = bounds.missing_leaves(len(before), len(nodes))
    taken = {service for service, _ in nodes}
    with_members = {service for service, _ in group.members}
    if group.policy == "affinity":
        keeps_policy = len(taken) == 1 and taken <= (with_members or taken)
    else:
        keeps_policy = all(of_service[service] <= (group.max_per_host or 0) for service in taken)
    return (
        keeps_policy
        and len(leaves - before) >= missing
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
        # Whether the group fits depends neither on the limit nor on the number of plans.
        assert isinstance(plan, Plan), (seed, plan)
        planned += 1
        proven += plan.is_proven
        assert request.broken_by(request.per_hypervisor(plan)) is None, seed
        found = Best(plan.count, plan.hop_bytes)
        assert plan.count == best.vms, (seed, plan, best)
        assert plan.hop_bytes >= best.hop_bytes, (seed, plan, best)
        if plan.is_proven:
            assert found == best, (seed, plan, best)
    assert planned > 100
    assert (proven == planned) is is_best


def test_no_answer_on_services_of_many_nodes_depends_on_the_clock():
    compared = 0
    for seed in SEEDS:
        request = bare_metal(seed, "anti-affinity").request()
        if request.hard_policy is not None and request.hard_policy.counts_nodes:
            compared += 1
            assert request.decide(OVER) == request.decide(NO_LIMIT), seed
    assert compared > 200


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
                most = size if group.policy == "affinity" else group.max_per_host or 0
                is_kept = keeps(alone, constraints.bounds.level, nodes) and all(
                    taken[service] <= most for service, _ in nodes
                )
            if is_kept:
                return size
    return 0


def on_two_leaves(vms: int) -> Group:
    """Return a group on two of 20 leaves, each with a node of six of seven services."""
    services = [f"ironic{number}" for number in range(7)]
    leaves = {f"l{leaf:02}": [f"n{leaf:02}{node}" for node in range(6)] for leaf in range(20)}
    places = [
        (services[(node + leaf) % 7], host)
        for leaf, hosts in enumerate(leaves.values())
        for node, host in enumerate(hosts)
    ]
    return Group(
        topology=Topology.from_tree({"core": leaves}),
        places=places,
        room=[1] * len(places),
        free=[1] * len(places),
        members={},
        left=vms,
        awaiting=vms,
        policy="anti-affinity",
        max_per_host=1,
        constraints=Constraints(max_leaves=2),
    )


def test_no_plan_is_made_of_a_group_that_does_not_fit(monkeypatch):
    def solve(*_):
        raise AssertionError("a plan was made")

    with monkeypatch.context() as patch:
        patch.setattr(plan_by_service, "solve", solve)
        answer = on_two_leaves(8).request().decide()
    assert isinstance(answer, Rejection)
    assert str(answer).startswith(
        "group of 8 needs at most 2 leaf switches: largest gang that fits in 2 leaf switches: 7 on"
    )
    assert isinstance(on_two_leaves(7).request().decide(OVER), Plan)


@pytest.mark.parametrize("policy", ["affinity", "anti-affinity"])
def test_a_refusal_on_bare_metal_names_the_largest_gangs_that_fit(policy):
    refused = 0
    for seed in range(400):
        group = bare_metal(seed, policy)
        answer = group.request().decide()
        if isinstance(answer, Plan) or answer.conflict or group.constraints.bounds.preferred:
            continue
        if len({service for service, _ in group.places}) == len(group.places):
            continue
        refused += 1
        assert answer.best is not None
        assert answer.best.vms == largest(group, group.constraints) < group.left, seed
        # Affinity binds new VMs to the members' services.
        for gang in answer.gangs if policy == "anti-affinity" or not group.members else ():
            there = Constraints(require=gang.level)
            assert gang.vms == largest(group, there, members=False), (seed, gang)
    assert refused > 50


@pytest.mark.parametrize("policy", ["affinity", "anti-affinity"])
def test_the_largest_group_of_each_level_is_the_largest_that_fits(policy):
    for seed in range(0, 300, 3):
        group = bare_metal(seed, policy)
        for gang in largest_gangs.gangs(group.request()):
            there = group.constraints.changed(require=gang.level)
            assert gang.vms == largest(group, there), (seed, gang)


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


def test_an_isolated_group_on_services_of_many_nodes_is_refused_or_keeps_both():
    answers = Counter[str]()
    for seed in range(200):
        group = bare_metal(seed, "anti-affinity")
        draw = random.Random(f"used uplinks {seed}")
        switches = [switch.name for switch in group.topology.switches]
        used = tuple(name for name in switches if draw.random() < 0.4)
        request = replace(group, links=Links(used=used)).request()
        answer = request.decide(NO_LIMIT)
        if isinstance(answer, Rejection):
            answers["refused for uplinks" if answer.is_isolated else "refused"] += 1
            continue
        answers["planned"] += 1
        everyone = Counter(answer.hosts)
        for (_, host), count in group.members.items():
            everyone[host] += count
        for name in used:
            below = sum(everyone[host] for host in request.topology.hosts_of(name))
            assert below in (0, everyone.total()), (seed, name)
    assert min(answers.values()) > 5
    assert len(answers) == 3


def test_a_group_by_bottleneck_on_services_of_many_nodes_is_planned_where_one_by_hops_is():
    for seed in range(100):
        group = bare_metal(seed, "anti-affinity")
        names = [switch.name for switch in group.topology.switches]
        by_bottleneck = replace(group, links=Links(None, dict.fromkeys(names, 100)))
        answer, by_hops = (each.request().decide(NO_LIMIT) for each in (by_bottleneck, group))
        assert type(answer) is type(by_hops), seed
