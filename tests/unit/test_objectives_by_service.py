"""Objectives of groups on bare metal, where hard policies count by services of many nodes.

The fabrics are those of :func:`tests.unit.test_plan_by_service.bare_metal`.
"""

import itertools
import random
from dataclasses import replace

import numpy as np
import pytest

from hpc_sched.core.by_service import objective_plan
from hpc_sched.core.constraints import NO_CONSTRAINTS
from hpc_sched.core.group_request import GroupRequest
from hpc_sched.core.objectives.used_uplinks import used_uplinks
from hpc_sched.core.plan.objective import Isolation, LeastBottleneck
from hpc_sched.core.plan.result import Plan, Rejection
from hpc_sched.topology import Topology
from hpc_sched.topology.capacities import LinkDefaults, capacities
from tests.unit.recorded_groups import Group
from tests.unit.test_plan_by_service import bare_metal, keeps

SEEDS = range(400)


def isolated(group: Group, seed: int) -> GroupRequest:
    """Return the request of a group while others use some uplinks."""
    draw = random.Random(f"uplinks of others {seed}")
    switches = group.topology.switches
    is_used = np.array([draw.random() < 0.4 for _ in switches])
    return replace(group.request(), objective=Isolation(is_used))


def shares(group: Group, request: GroupRequest, nodes: list[str]) -> bool:
    counts = dict.fromkeys([*nodes, *(node for _, node in group.members)], 1)
    return bool((used_uplinks(group.topology, [counts]) & request.objective.is_used).any())


def fits(group: Group, request: GroupRequest) -> bool:
    """True if any nodes keep policy, constraints and isolation."""
    free = [place for place, room in zip(group.places, group.room, strict=True) if room]
    return any(
        keeps(group, group.constraints.bounds.level, nodes)
        and not shares(group, request, [node for _, node in nodes])
        for nodes in itertools.combinations(free, group.left)
    )


@pytest.mark.parametrize("policy", ["affinity", "anti-affinity"])
def test_an_isolated_group_is_placed_exactly_where_it_shares_no_uplink(policy):
    planned = refused = 0
    for seed in SEEDS:
        group = bare_metal(seed, policy)
        group = replace(group, awaiting=group.left)
        request = isolated(group, seed)
        answer = request.decide()
        assert isinstance(answer, Plan) == fits(group, request), (seed, answer)
        if isinstance(answer, Plan):
            planned += 1
            assert request.broken_by(request.per_hypervisor(answer)) is None, seed
            assert not shares(group, request, list(answer.hosts)), seed
        else:
            refused += 1
            assert request.refusal(answer).tenant
    assert min(planned, refused) > 50


def test_a_plan_of_least_bottleneck_by_services_is_the_one_by_hops():
    compared = 0
    for seed in SEEDS[:100]:
        request = bare_metal(seed, "anti-affinity").request()
        if request.hard_policy is None or not request.hard_policy.counts_nodes:
            continue
        compared += 1
        objective = LeastBottleneck(capacities(request.topology, LinkDefaults()))
        answer, by_hops = replace(request, objective=objective).decide(), request.decide()
        assert answer == by_hops or isinstance(answer, Rejection), seed
    assert compared > 20


#              core
#         /           \
#      pod0           pod1
#     /    \         /    \
#  leaf0  leaf1   leaf2  leaf3     4 nodes each
@pytest.mark.parametrize(
    ("service_of", "plans"),
    [(lambda node: f"ironic-{node[2]}", 1), (lambda node: f"ironic-{node[:2]}", 3)],
    ids=["a leaf has a node of each service", "each leaf has one service, which takes one VM"],
)
def test_one_plan_is_made_for_each_level_until_the_group_fits(monkeypatch, service_of, plans):
    fabric = Topology.from_tree(
        {
            "core": {
                f"pod{p}": {f"leaf{i}": [f"n{i}{k}" for k in range(4)] for i in (2 * p, 2 * p + 1)}
                for p in range(2)
            }
        }
    )
    room = [1] * len(fabric.hosts)
    group = Group(
        topology=fabric,
        places=[(service_of(node), node) for node in fabric.hosts],
        room=room,
        free=room,
        members={},
        left=4,
        awaiting=4,
        policy="anti-affinity",
        max_per_host=1,
        constraints=NO_CONSTRAINTS,
    )
    real, made = objective_plan.plan_by_service, []
    monkeypatch.setattr(
        objective_plan,
        "plan_by_service",
        lambda request, *args: made.append(request) or real(request, *args),
    )
    nothing_used = Isolation(np.zeros(len(fabric.switches), dtype=np.bool_))
    answer = replace(group.request(), objective=nothing_used).decide()
    assert len(answer.leaves) == (1 if plans == 1 else 4)
    assert len(made) == plans
