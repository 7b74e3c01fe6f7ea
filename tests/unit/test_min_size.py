"""``hpc:min_size``: the plan is for the most VMs of the final size that fit, and for enough."""

import random
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from hpc_sched.core.constraints import Bounds, Constraints, level_of
from hpc_sched.core.group_request import GroupRequest
from hpc_sched.core.hpc_specs import HPCSpecs
from hpc_sched.core.plan.objective import Isolation
from hpc_sched.core.plan.problem import Problem
from hpc_sched.core.plan.rejection import conflict_of, largest_gang
from hpc_sched.core.plan.result import Plan, Rejection
from hpc_sched.topology import Topology
from tests.unit import small_cases
from tests.unit.fabrics import Case
from tests.unit.plan_oracle import Oracle

SEEDS = 20_000
NIGHTLY = pytest.mark.nightly("planner", "exhaustive searches by size")
IN_PARTS = [small_cases.case_in_parts, small_cases.full_case_in_parts]
# How cases are drawn, and their number.
DRAWN_IN_PARTS = [(case_of, SEEDS // 320) for case_of in IN_PARTS]
DRAWN = [(small_cases.random_case, SEEDS // 40), *DRAWN_IN_PARTS]


def request_of(case: Case, least: int) -> GroupRequest:
    """Return the request for the first VM of a group that grows to the VMs of a case."""
    fabric = case.fabric
    hosts = [*fabric.hosts]
    whole = case.count + sum(case.members.values())
    parts = {}
    if case.parts is not None:
        balance = "true" if case.parts.is_balanced else None
        parts = {"segment": case.parts.size, "segment_level": case.parts.level, "balance": balance}
    wanted = Constraints(
        require=case.require, max_leaves=case.max_leaves, group_size=whole, min_size=least, **parts
    )
    return GroupRequest.of(
        fabric,
        HPCSpecs("sync", wanted, "false", (), ()),
        group_id=case.group_id,
        policy=None,
        max_per_host=None,
        places=[(host, host) for host in hosts],
        names=hosts,
        room=np.array([case.capacity.get(host, 0) for host in hosts], dtype=np.int64),
        members={(host, host): vms for host, vms in case.members.items()},
        left=1,
        awaiting=1,
    )


def most_of(case: Case, sizes: Iterable[int]) -> int | None:
    """Return the first number of VMs with a plan, or None."""
    oracle = Oracle(case)
    for size in sizes:
        oracle.case = replace(case, count=size)
        if len(oracle.feasible()):
            return size
    return None


def nightly(drawn: Sequence[tuple[Callable[[int], Case], int]]) -> list[Any]:
    """Return the same, and all seeds in the nightly tier."""
    return [*drawn, *(pytest.param(case_of, SEEDS, marks=NIGHTLY) for case_of, _ in drawn)]


@pytest.mark.parametrize(("case_of", "number"), nightly(DRAWN))
def test_the_plan_is_the_best_of_the_most_vms_that_fit_if_these_are_enough(
    case_of: Callable[[int], Case], number: int
):
    kinds = Counter[str]()
    for seed in range(0, SEEDS, SEEDS // number):
        case, draw = case_of(seed), random.Random(f"min_size {seed}")
        case = replace(case, min_leaves=0, pack_hosts=True, packing=None, price=None)
        if case.count < 2:
            continue
        least = draw.randint(1, case.count + sum(case.members.values()))
        needed = max(least - sum(case.members.values()), 1)
        size = most_of(case, range(case.count, needed - 1, -1))
        answer = request_of(case, least).decide()
        if size is None:
            assert isinstance(answer, Rejection), seed
            assert answer.count == needed, seed
            kinds["fewer fit"] += 1
            continue
        found = Oracle(replace(case, count=size)).best()
        assert found is not None
        assert isinstance(answer, Plan), (seed, answer)
        assert (answer.count, dict(answer.leaves), answer.hop_bytes) == (
            *(size, found.leaves),
            found.cost,
        ), seed
        kinds["all fit" if size == case.count else "some fit"] += 1
    assert min(kinds[kind] for kind in ("fewer fit", "some fit", "all fit")) >= 0.02 * number, kinds


@pytest.mark.parametrize(("case_of", "number"), nightly(DRAWN_IN_PARTS))
def test_the_largest_gang_in_parts_is_the_most_vms_up_to_a_number_that_have_a_plan(
    case_of: Callable[[int], Case], number: int
):
    kinds = Counter[str]()
    for seed in range(0, SEEDS, SEEDS // number):
        case = replace(case_of(seed), price=None, pack_hosts=True, packing=None)
        problem = Problem.from_counts(
            topology=case.described,
            capacity=case.capacity,
            members=case.members,
            awaiting=case.count,
        )
        bounds = Bounds(case.require, None, case.max_leaves, 0, case.parts)
        if conflict_of(problem, bounds) is not None:
            continue
        level = level_of(problem.topology, bounds.level)
        gang = largest_gang(problem, level, bounds, with_members=True, most=case.count)
        assert gang is not None
        most = most_of(case, range(case.count, 0, -1)) or 0
        assert min(gang.vms, case.count) == most, seed
        kinds["with members"] += bool(case.members)
        kinds["none" if not most else "all" if most == case.count else "some"] += 1
    assert min(kinds[kind] for kind in ("some", "all", "with members")) >= 0.02 * number, kinds


def test_a_refusal_says_how_many_were_needed_and_what_would_fit():
    """::

             core
            /    \\
        leaf1    leaf2
        3 hosts  2 hosts, of one slot each
    """
    tree = {"core": {"leaf1": ["a", "b", "c"], "leaf2": ["d", "e"]}}
    fabric = Topology.from_tree(tree)
    case = Case(tree, dict.fromkeys(fabric.hosts, 1), {}, 8)
    answer = request_of(case, 6).decide()
    assert isinstance(answer, Rejection)
    refusal = request_of(case, 6).refusal(answer)
    assert refusal.operator == (
        "group of 6 does not fit: largest gang that fits: 5 on core (hpc:min_size=6)"
    )
    assert refusal.tenant == "group of 6 does not fit (hpc:min_size=6)"
    planned = request_of(case, 5).decide()
    assert isinstance(planned, Plan)
    assert planned.count == 5


def grown(room: list[int], **said: Any) -> GroupRequest:
    """Return the request for one more VM of a group on six hosts, two under each leaf."""
    leaves = {f"leaf{i}": [f"n{2 * i}", f"n{2 * i + 1}"] for i in range(3)}
    fabric = Topology.from_tree({"core": leaves})
    members, policy = said.pop("members", {}), said.pop("policy", None)
    wanted = Constraints(group_size=said.pop("group_size"), min_size=said.pop("min_size"))
    places = [(host, host) for host in fabric.hosts]
    return GroupRequest.of(
        fabric,
        HPCSpecs("sync", wanted, "false", (), ()),
        group_id="group",
        policy=policy,
        max_per_host=None,
        places=places,
        names=list(fabric.hosts),
        room=np.array(room, dtype=np.int64),
        members={(host, host): vms for host, vms in members.items()},
        left=1,
        awaiting=said.pop("awaiting", 1),
        **said,
    )


def test_followers_refuse_no_request():
    # Four run and four are shelved: with them there are enough.
    group = {"members": {"n0": 4}, "followers": 4, "awaiting": 5, "group_size": 10, "min_size": 8}
    answer = grown([1, 0, 0, 0, 0, 0], **group).decide()
    assert isinstance(answer, Plan)
    assert answer.hosts == {"n0": 1}


def test_with_affinity_the_most_are_those_on_one_host():
    answer = grown([2, 0, 0, 0, 4, 0], policy="affinity", group_size=6, min_size=2).decide()
    assert isinstance(answer, Plan)
    assert answer.hosts == {"n4": 4}


def test_an_isolated_group_goes_where_the_most_have_places():
    request = grown([3, 0, 2, 0, 1, 0], group_size=6, min_size=1)
    names = [switch.name for switch in request.topology.switches]
    used = Isolation(np.array([name in ("leaf0", "leaf1") for name in names]))
    answer = replace(request, objective=used).decide()
    assert isinstance(answer, Plan)
    assert answer.hosts == {"n0": 3}


def test_a_group_that_runs_is_refused_while_too_few_fit():
    group = {"members": {"n0": 1}, "group_size": 10, "min_size": 8}
    answer = grown([1, 0, 0, 0, 0, 0], **group).decide()
    assert isinstance(answer, Rejection)
    assert answer.count == 7


def test_a_move_ignores_the_least_size_and_one_without_a_final_size_is_ignored():
    tree = {"core": {"leaf1": ["a", "b", "c"], "leaf2": ["d", "e"]}}
    case = Case(tree, dict.fromkeys("abcde", 1), {}, 8)
    request = request_of(case, 6)
    assert request.least_size == 6
    assert replace(request, is_move=True).least_size is None
    alone = replace(request, constraints=Constraints(min_size=6), missing=0)
    assert alone.least_size is None
    assert isinstance(alone.decide(), Plan)


def test_more_at_least_than_at_the_end_is_a_contradiction():
    wanted = Constraints(group_size=4, min_size=5)
    assert list(wanted.contradictions.values()) == [
        "hpc:min_size=5 and hpc:group_size=4 contradict each other"
    ]
