"""Where the next VM of a group starts that is apart, with the option ``gather_groups``."""

import random
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from hpc_sched.core.constraints import NO_CONSTRAINTS, Constraints
from hpc_sched.core.group_request import GroupRequest
from hpc_sched.core.hpc_specs import HPCSpecs
from hpc_sched.core.plan.gathering import Gathering
from hpc_sched.core.plan.result import Plan, Rejection
from hpc_sched.topology.model import Topology

# ::
#
#              core
#           /        \
#        pod1        pod2
#       /    \      /    \
#      a      b    c      d
#    a1-a3  b1-b3  c1-c4  d1-d2
PODS = Topology.from_tree(
    {
        "core": {
            "pod1": {"a": ["a1", "a2", "a3"], "b": ["b1", "b2", "b3"]},
            "pod2": {"c": ["c1", "c2", "c3", "c4"], "d": ["d1", "d2"]},
        }
    }
)
PREFER_LEAF = Constraints(prefer="leaf")
Room = dict[str, int]


def request_of(
    topology: Topology,
    room: Room,
    vms: Sequence[str],
    constraints: Constraints = NO_CONSTRAINTS,
    *,
    count: int = 1,
    is_move: bool = False,
    policy: str | None = None,
) -> GroupRequest:
    """Return the request of VMs of a group.

    :param room: VMs that hosts take; others take none
    :param vms: the members' hosts, the oldest first
    """
    return GroupRequest.of(
        topology,
        HPCSpecs("sync", constraints, "false", (), ()),
        group_id="group",
        policy=policy,
        max_per_host=None,
        places=[(host, host) for host in topology.hosts],
        names=list(topology.hosts),
        room=np.array([room.get(host, 0) for host in topology.hosts]),
        members=Counter((host, host) for host in vms),
        left=count,
        awaiting=count,
        is_move=is_move,
    )


def gathered(request: GroupRequest, youngest: str | None, *, is_move: bool = False) -> GroupRequest:
    gathering = Gathering.of(request.problem(), youngest, is_move=is_move)
    return replace(request, gathering=gathering)


def without_option(request: GroupRequest, vms: Sequence[str]) -> Plan | Rejection:
    return request.decide()


def with_option(
    request: GroupRequest, vms: Sequence[str], *, is_move: bool = False
) -> Plan | Rejection:
    return gathered(request, vms[-1] if vms else None, is_move=is_move).decide()


def leaves_of(topology: Topology, hosts: Sequence[str]) -> list[str]:
    return sorted({topology.leaf_of(host) for host in hosts})


def replaced(
    topology: Topology,
    room: Room,
    vms: Sequence[str],
    constraints: Constraints,
    decide: Callable[[GroupRequest, Sequence[str]], Plan | Rejection],
) -> list[str] | None:
    """Return the hosts of a group once each VM was replaced, one new VM before the oldest goes."""
    left, now = dict(room), list(vms)
    for _ in vms:
        answer = decide(request_of(topology, left, now, constraints), now)
        if isinstance(answer, Rejection):
            return None
        [new] = answer.places
        left[new] -= 1
        now.append(new)
        left[now.pop(0)] += 1
    return now


@pytest.mark.parametrize("constraints", [PREFER_LEAF, NO_CONSTRAINTS], ids=["prefer", "none"])
def test_rolling_replacement_ends_on_the_other_leaf_that_holds_the_group(constraints):
    # The leaf a is full of the group, b has room for as many.
    vms, room = ["a1", "a2", "a3"], dict.fromkeys(("a1", "a2", "a3"), 0)
    room |= dict.fromkeys(("b1", "b2", "b3"), 1)
    after = replaced(PODS, room, vms, constraints, with_option)
    assert after is not None
    assert leaves_of(PODS, after) == ["b"]
    today = replaced(PODS, room, vms, constraints, without_option)
    assert today is not None
    assert leaves_of(PODS, today) == ["a", "b"]


def first_of(answer: Plan | Rejection) -> str:
    """Return the one host that a plan has, or the first for VMs without a request."""
    assert isinstance(answer, Plan)
    return answer.places[0]


def test_a_leaf_that_can_hold_the_whole_group_comes_before_that_of_the_youngest_member():
    room = {"a3": 1, "b3": 1, "c1": 1, "c2": 1, "c3": 1, "c4": 1}
    vms = ["a1", "a2", "b1"]
    request = request_of(PODS, room, vms, PREFER_LEAF)
    assert PODS.leaf_of(first_of(without_option(request, vms))) == "a"
    assert PODS.leaf_of(first_of(with_option(request, vms))) == "c"


def test_of_leaves_that_can_hold_as_many_the_one_of_the_youngest_member_is_chosen():
    room = {"a3": 1, "b2": 1, "b3": 1}
    for vms, leaf in ((["a1", "a2", "b1"], "b"), (["b1", "a1", "a2"], "a")):
        request = request_of(PODS, room, vms, PREFER_LEAF)
        assert PODS.leaf_of(first_of(with_option(request, vms))) == leaf


def test_of_others_the_nearest_to_the_members_is_chosen():
    room = {"b1": 1, "b2": 1, "b3": 1, "c1": 1, "c2": 1, "c3": 1}
    vms = ["a1", "a2", "a3"]
    request = request_of(PODS, room, vms, PREFER_LEAF)
    assert PODS.leaf_of(first_of(with_option(request, vms))) == "b"


def test_with_a_final_size_a_leaf_must_hold_that():
    room = {"a3": 1, "b1": 1, "b2": 1, "c1": 1, "c2": 1, "c3": 1, "c4": 1}
    vms = ["a1", "a2"]
    request = request_of(PODS, room, vms, PREFER_LEAF.changed(group_size=4))
    assert PODS.leaf_of(first_of(with_option(request, vms))) == "c"


def test_a_vm_that_moves_brings_the_group_together():
    # Two of four are on c, which has room for the others; least Hop-Byte is c with a, too.
    room = {"a2": 1, "a3": 1, "c3": 1, "c4": 1}
    vms = ["a1", "c1", "c2"]
    request = request_of(PODS, room, vms, PREFER_LEAF, is_move=True)
    assert PODS.leaf_of(first_of(with_option(request, vms, is_move=True))) == "c"
    # Of four VMs none of these leaves can hold all: as without the option.
    room = {"a2": 1, "b1": 1, "b2": 1, "b3": 1}
    vms = ["a1", "a3", "d1"]
    request = request_of(PODS, room, vms, PREFER_LEAF, is_move=True)
    assert PODS.leaf_of(first_of(with_option(request, vms, is_move=True))) == "a"


def test_several_vms_of_one_request_start_together_or_as_without_the_option():
    room = {"a3": 1, "c1": 1, "c2": 1, "c3": 1, "c4": 1, "b1": 1, "b2": 1}
    vms = ["a1", "a2"]
    answer = with_option(request_of(PODS, room, vms, PREFER_LEAF, count=2), vms)
    assert isinstance(answer, Plan)
    assert answer.leaves == {"c": 2}
    less = {host: room[host] for host in ("a3", "b1", "c1")}
    request = request_of(PODS, less, vms, PREFER_LEAF, count=2)
    answer, before = with_option(request, vms), without_option(request, vms)
    assert isinstance(answer, Plan)
    assert answer == before


@pytest.mark.parametrize(
    ("constraints", "vms", "leaf"),
    [
        ({"require": "leaf"}, ["a1", "a2"], "a"),
        ({"require": "pod"}, ["a1", "a2"], "b"),
        ({"max_leaves": 1}, ["a1", "a2"], "a"),
        ({"min_leaves": 2}, ["a1", "a2"], "b"),
    ],
)
def test_constraints_hold(constraints, vms, leaf):
    room = {"a3": 1, "b1": 1, "b2": 1, "c1": 1, "c2": 1, "c3": 1, "c4": 1}
    wanted = Constraints(group_size=2, **constraints)
    if constraints == {"require": "pod"}:
        del room["a3"]
    request = request_of(PODS, room, vms, wanted)
    assert PODS.leaf_of(first_of(with_option(request, vms))) == leaf


@pytest.mark.parametrize("vms", [[], ["a1"], ["a1", "a2"]], ids=str)
def test_a_group_that_can_be_together_is_placed_as_without_the_option(vms):
    room = {"a3": 1, "b1": 1, "c1": 1, "c2": 1, "c3": 1, "c4": 1}
    request = request_of(PODS, room, vms, PREFER_LEAF)
    assert with_option(request, vms) == without_option(request, vms)


def test_a_vm_placed_by_the_request_is_the_youngest():
    vms = ["b1", "b2", "a1"]
    request = gathered(request_of(PODS, {"a2": 1, "a3": 1, "b3": 1}, vms, count=2), "a1")
    placed = np.zeros(len(request.room), dtype=np.int64)
    placed[PODS.index_of("b3")] = 1
    after = request.after(placed)
    assert after.gathering is not None
    assert after.gathering.youngest == PODS.switch_index("b")
    assert request.after(np.zeros_like(placed)).gathering == request.gathering


def drawn(draw: random.Random) -> tuple[Topology, Room, int, Constraints]:
    """Return a fabric, the room of its hosts, the size of a group and its constraints."""
    tree: dict[str, dict[str, list[str]]] = {}
    number = 0
    for pod in range(draw.randint(1, 3)):
        tree[f"pod{pod}"] = {}
        for leaf in range(draw.randint(1, 3)):
            hosts = [f"h{number + i}" for i in range(draw.randint(1, 4))]
            tree[f"pod{pod}"][f"leaf{pod}{leaf}"] = hosts
            number += len(hosts)
    topology = Topology.from_tree({"core": tree})
    size = draw.randint(2, 5)
    wishes = [{}, {"prefer": "leaf"}, {"prefer": "leaf", "group_size": size}, {"require": "pod"}]
    room = {host: draw.choice([0, 1, 1, 1, 2]) for host in topology.hosts}
    return topology, room, size, Constraints(**draw.choice(wishes))


def could_hold(topology: Topology, room: Room, vms: Sequence[str], leaf: str) -> bool:
    """True if all VMs could be replaced on one leaf, one new VM before the oldest goes."""
    there = topology.hosts_of(leaf)
    free = sum(room[host] for host in there)
    for host in vms:
        if not free:
            return False
        # As many are there again once the oldest is gone, if that was there.
        free += (host in there) - 1
    return True


@pytest.mark.parametrize("seed", range(10))
def test_rolling_replacement_ends_under_one_leaf_wherever_one_can_hold_the_group(seed):
    together, apart_today, tried = 0, 0, 0
    for case in range(40):
        draw = random.Random(f"{seed} {case}")
        topology, room, size, constraints = drawn(draw)
        first = request_of(topology, room, [], constraints, count=size).decide()
        if isinstance(first, Rejection):
            continue
        vms = list(first.places)
        room = {host: room[host] - vms.count(host) for host in room}
        before = replaced(topology, room, vms, constraints, without_option)
        after = replaced(topology, room, vms, constraints, with_option)
        # Nothing is refused for it.
        assert (before is None) == (after is None)
        if after is None or before is None:
            continue
        pods = {topology.ancestors(host)[1] for host in after}
        assert constraints.bounds.level is None or len(pods) == 1
        inside = [
            leaf
            for leaf in topology.leaves
            if constraints.bounds.level is None
            or topology.ancestors(topology.hosts_of(leaf)[0])[1] in pods
        ]
        tried += 1
        if any(could_hold(topology, room, vms, leaf) for leaf in inside):
            together += 1
            assert len(leaves_of(topology, after)) == 1, (case, room, vms, after)
            apart_today += len(leaves_of(topology, before)) > 1
    assert tried > together > apart_today > 0


POLICIES = (None, "affinity", "anti-affinity", "soft-affinity", "soft-anti-affinity")
ANY_WISHES = (
    {},
    {"prefer": "leaf"},
    {"prefer": "pod"},
    {"require": "pod"},
    {"require": "leaf"},
    {"max_leaves": 2},
    {"min_leaves": 2, "prefer": "pod"},
    {"group_size": 6, "require": "pod", "prefer": "leaf"},
)


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("wishes", ANY_WISHES, ids=str)
def test_nothing_is_refused_and_no_constraint_is_broken(policy, wishes):
    differ = 0
    for case in range(30):
        draw = random.Random(f"any {case}")
        topology, room, size, _ = drawn(draw)
        hosts = list(topology.hosts)
        vms = [hosts[0]] * size if policy == "affinity" else draw.choices(hosts, k=size)
        constraints, is_move = Constraints(**wishes), draw.random() < 0.5
        count = 1 if is_move else draw.randint(1, 3)
        request = request_of(
            topology, room, vms, constraints, count=count, is_move=is_move, policy=policy
        )
        before = without_option(request, vms)
        after = with_option(request, vms, is_move=is_move)
        assert isinstance(before, Plan) == isinstance(after, Plan)
        if not isinstance(before, Plan) or not isinstance(after, Plan):
            assert after == before
            continue
        assert after.count >= count
        planned = request.per_hypervisor(after)
        assert planned.sum() == after.count
        assert request.broken_by(planned) is None
        differ += after != before
    assert differ or policy == "affinity" or wishes not in ({}, {"prefer": "leaf"})


def shuffled(node: Any, draw: random.Random) -> Any:
    if isinstance(node, list):
        return draw.sample(node, len(node))
    return {name: shuffled(node[name], draw) for name in draw.sample(list(node), len(node))}


def test_the_order_of_hosts_changes_nothing():
    for case in range(30):
        draw = random.Random(f"order {case}")
        topology, room, size, constraints = drawn(draw)
        vms = [host for host in topology.hosts if draw.random() < 0.3][:size] or ["h0"]
        again = Topology.from_tree(shuffled(topology.to_tree(), draw))
        one, other = (
            with_option(request_of(fabric, room, vms, constraints), vms)
            for fabric in (topology, again)
        )
        places = [answer.places if isinstance(answer, Plan) else () for answer in (one, other)]
        assert places[0] == places[1]
