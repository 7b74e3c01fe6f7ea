"""What one live migration gains for a group that is apart, against all moves that there are."""

import random
from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import combinations

import numpy as np
import pytest

from hpc_sched.core.constraints import Constraints
from hpc_sched.core.counterfactual.best_move import Move, best_move, is_apart, level_name
from hpc_sched.core.group_request import GroupRequest
from hpc_sched.core.hpc_specs import HPCSpecs
from hpc_sched.topology.model import Topology

LEVELS = ("leaf", "pod", "core")
Room = Mapping[str, int]


def request_of(
    topology: Topology, room: Room, vms: Sequence[str], constraints: Constraints, policy: str | None
) -> GroupRequest:
    """Return the request for one VM of a group. ``vms``: the hosts of its members."""
    return GroupRequest.of(
        topology,
        HPCSpecs("sync", constraints, "false", (), ()),
        group_id="group",
        policy=policy,
        max_per_host=1 if policy == "anti-affinity" else None,
        places=[(host, host) for host in topology.hosts],
        names=list(topology.hosts),
        room=np.array([room.get(host, 0) for host in topology.hosts]),
        members=Counter((host, host) for host in vms),
        left=1,
        awaiting=1,
    )


def found(
    topology: Topology, room: Room, vms: Sequence[str], constraints: Constraints, policy: str | None
) -> Move | None:
    def moved_from(source: str) -> GroupRequest:
        return request_of(topology, room, without(vms, source), constraints, policy)

    group = request_of(topology, room, vms, constraints, policy)
    return best_move(group, sorted(set(vms)), moved_from)


def without(vms: Sequence[str], host: str) -> list[str]:
    others = list(vms)
    others.remove(host)
    return others


def cost_of(topology: Topology, vms: Sequence[str]) -> float:
    return sum(topology.hops(one, other) for one, other in combinations(vms, 2))


def under(topology: Topology, vms: Sequence[str], level: str) -> int:
    """Return how many switches of a level some hosts are under."""
    number = topology.request_levels.index(level)
    # A switch above all others of its branch counts as one of the levels above, too.
    return len({int(topology.groups[number, topology.index_of(host)]) for host in vms})


def keeps(
    topology: Topology, others: Sequence[str], target: str, wishes: Mapping, policy: str | None
) -> bool:
    """True if a VM on a host keeps the constraints and the policy next to the others."""
    vms = [*others, target]
    if "require" in wishes and under(topology, vms, wishes["require"]) > 1:
        return False
    leaves = {topology.leaf_of(host) for host in others}
    new = topology.leaf_of(target) not in leaves
    if "max_leaves" in wishes and len(leaves) + new > wishes["max_leaves"]:
        return False
    if "min_leaves" in wishes and len(leaves) < wishes["min_leaves"] and not new:
        return False
    return policy != "anti-affinity" or target not in others


def brute_force(
    topology: Topology, room: Room, vms: Sequence[str], wishes: Mapping, policy: str | None
) -> tuple[bool, float] | None:
    """Return whether the best move brings the group together, and the cost then; None for none."""
    level = wishes.get("prefer") or wishes.get("require") or "leaf"
    now = cost_of(topology, vms)
    ways = []
    for source in set(vms):
        others = without(vms, source)
        for target in topology.hosts:
            if target == source or not room[target]:
                continue
            if keeps(topology, others, target, wishes, policy):
                then = [*others, target]
                cost = cost_of(topology, then)
                if cost < now:
                    ways.append((under(topology, then, level) > 1, cost))
    return min(ways, default=None)


def drawn_fabric(draw: random.Random) -> Topology:
    tree: dict[str, dict[str, list[str]]] = {}
    number = 0
    for pod in range(draw.randint(1, 3)):
        tree[f"pod{pod}"] = {}
        for leaf in range(draw.randint(1, 3)):
            hosts = [f"h{number + i}" for i in range(draw.randint(1, 4))]
            tree[f"pod{pod}"][f"leaf{pod}{leaf}"] = hosts
            number += len(hosts)
    if draw.random() < 0.2 and len(tree) > 1:
        # Islands
        return Topology.from_tree(tree, levels=LEVELS[:2])
    return Topology.from_tree({"core": tree}, levels=LEVELS)


@pytest.mark.parametrize("seed", range(20))
def test_no_other_move_of_one_vm_gains_more(seed):
    gains = 0
    for case in range(50):
        draw = random.Random(f"best move {seed} {case}")
        topology = drawn_fabric(draw)
        policy = draw.choice([None, "anti-affinity"])
        room = {host: draw.choice([0, 0, 1, 2]) for host in topology.hosts}
        hosts = list(topology.hosts)
        number = draw.randint(2, min(5, len(hosts))) if len(hosts) > 1 else 2
        if policy and len(hosts) > 1:
            vms = draw.sample(hosts, number)
        else:
            vms = draw.choices(hosts, k=number)
        level = draw.choice(LEVELS[: topology.depth])
        wishes = draw.choice(
            [{}, {"prefer": level}, {"require": level}, {"max_leaves": 2}, {"min_leaves": 2}]
        )
        constraints = Constraints(**wishes)
        group = request_of(topology, room, vms, constraints, policy)
        if not is_apart(group):
            assert under(topology, vms, level_name(group)) == 1
            continue
        move = found(topology, room, vms, constraints, policy)
        best = brute_force(topology, room, vms, wishes, policy)
        shown = None if move is None else (not move.is_together, move.hop_bytes)
        assert shown == best, (case, wishes, policy, room, vms, move)
        if move is None:
            continue
        gains += 1
        others = without(vms, move.source)
        assert room[move.target]
        assert move.target != move.source
        assert keeps(topology, others, move.target, wishes, policy)
        assert cost_of(topology, [*others, move.target]) == move.hop_bytes
    assert gains


# ::
#
#             core
#          /        \
#        pod1       pod2
#       /    \        |
#      a      b       c
#    a1 a2  b1 b2   c1 c2
PODS = Topology.from_tree(
    {"core": {"pod1": {"a": ["a1", "a2"], "b": ["b1", "b2"]}, "pod2": {"c": ["c1", "c2"]}}}
)
ROOM = dict.fromkeys(PODS.hosts, 1)
NONE = Constraints()


def test_a_move_may_bring_the_group_under_the_level_that_it_prefers():
    vms = ["a1", "a1", "a2", "b1", "c1"]
    room = {"b2": 1, "a2": 1}
    assert found(PODS, room, vms, Constraints(prefer="pod"), None) == Move("c1", "a2", 16, True)
    # Without a preference that is a leaf.
    assert found(PODS, room, vms, NONE, None) == Move("c1", "a2", 16, False)


def test_moves_that_gain_as_much_go_by_the_names_of_hosts():
    move = found(PODS, {"a2": 1, "b2": 1}, ["a1", "b1"], NONE, "anti-affinity")
    assert move == Move("a1", "b2", 1, True)


def test_no_move_where_none_gains():
    assert found(PODS, {"c2": 1}, ["a1", "b1"], NONE, None) is None
    assert found(PODS, dict.fromkeys(PODS.hosts, 0), ["a1", "b1"], NONE, None) is None


def test_few_requests_are_planned():
    asked = []

    def moved_from(source: str) -> GroupRequest:
        asked.append(source)
        return request_of(PODS, ROOM, without(vms, source), NONE, None)

    vms = ["a1", "a2", "a2", "b1", "c1"]
    assert best_move(request_of(PODS, ROOM, vms, NONE, None), set(vms), moved_from) is not None
    assert asked == ["c1"]


def test_a_vm_that_is_alone_on_an_island_joins_the_others():
    islands = Topology.from_tree({"west": ["w1", "w2"], "east": ["e1"]})
    move = found(islands, {"w2": 1}, ["w1", "w1", "e1"], NONE, None)
    assert move == Move("e1", "w2", 2, True)
    assert found(islands, {"w2": 1}, ["w1", "w1", "e1", "e1"], NONE, None) is None
