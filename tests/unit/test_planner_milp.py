"""The exact plan of up to 40 VMs on 50 to 300 hosts against integer programs."""

import functools
import random
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pytest

from hpc_sched.core.constraints import Bounds, level_of
from hpc_sched.core.constraints.parts.group_parts import Parts
from hpc_sched.core.fragmentation.price import FragmentationPrice
from hpc_sched.core.fragmentation.rates import rates_of
from hpc_sched.core.plan.problem import Problem
from hpc_sched.core.plan.rejection import largest_gang
from hpc_sched.core.plan.result import Plan
from tests.unit.fabrics import Case
from tests.unit.plan_milp import Price, Program
from tests.unit.plan_oracle import Oracle, pair_by_pair

SEEDS = 200
SIZES = [
    pytest.param(28, marks=pytest.mark.ci),
    pytest.param(
        SEEDS, marks=pytest.mark.nightly("planner", "200 groups, some seven integer programs each")
    ),
]
# In segments, evenly spread, with a price: fewer programs are solved at once.
SIZES_IN_PARTS = [
    pytest.param(10, marks=pytest.mark.ci),
    pytest.param(SEEDS, marks=pytest.mark.nightly("planner", "200 groups in parts")),
]
FEWER = 12  # VMs by which the most that fit are fewer than all at most, if they are compared
KINDS_IN_PARTS = [
    *("segments", "balanced", "balanced segments", "segments of pods", "balanced pods"),
    *("priced segments", "priced balance", "segments in few leaves", "most segments"),
]
KINDS = ["no constraints", "require", "max_leaves", "members", "spread", "islands", "min_leaves"]

# Cost, leaves, and the excess capacity of each level.
Values = tuple[int, ...]


def random_pods(draw: random.Random, kind: str) -> list[list[int]]:
    """Return the hosts of the leaves of each pod.

    For a bound on leaves that binds: pods of small leaves, and pods of one larger leaf.
    """
    if kind == "max_leaves":
        dense = [[draw.randint(6, 8)] for _ in range(draw.randint(3, 5))]
        return [[draw.randint(2, 3) for _ in range(draw.randint(5, 7))] for _ in range(2)] + dense
    most = 3 if kind == "islands" else 5
    return [
        [draw.randint(4, 12) for _ in range(draw.randint(2, most))]
        for _ in range(draw.randint(3, most))
    ]


def random_island(
    draw: random.Random, names: Iterator[int], levels: int, pods: list[list[int]]
) -> dict[str, Any]:
    """Return what is below a root: leaves, or pods, or switches above two or three parts each.

    Some parts have a leaf as a neighbour.

    ::

                     root
                /      |      \\
            switch   switch   (leaf)
            /    \\     |
          pod    pod   pod
         / .. \\  ..    ..
      leaf .. leaf
    """

    def leaf(hosts: int) -> dict[str, Any]:
        return {f"s{next(names)}": [f"h{next(names)}" for _ in range(hosts)]}

    def merged(parts: Iterable[dict[str, Any]]) -> dict[str, Any]:
        return {name: below for part in parts for name, below in part.items()}

    parts = [merged(map(leaf, pod)) for pod in pods]
    for _ in range(levels - 2):
        parts = [{f"s{next(names)}": part} for part in parts]
        draw.shuffle(parts)
        for part in parts:
            if draw.random() < 0.2:
                part |= leaf(draw.randint(4, 12))
        size = draw.randint(2, 3)
        parts = [merged(parts[i : i + size]) for i in range(0, len(parts), size)]
    return merged(parts)


def random_case(seed: int) -> Case:
    """Return a group on 50 to 300 hosts: kinds by turns, and 2 to 5 levels by turns."""
    draw = random.Random(f"large case {seed}")
    kind, levels = KINDS[seed % len(KINDS)], 2 + (seed + seed // 12) % 4
    while True:
        names = iter(range(1000))
        # On two levels the cheapest plan has the fewest leaves.
        depths = [max(levels, 3) if kind == "max_leaves" else levels]
        if kind == "islands":
            depths += [draw.randint(2, 4) for _ in range(draw.randint(1, 2))]
        tree = {
            f"s{next(names)}": random_island(draw, names, depth, random_pods(draw, kind))
            for depth in depths
        }
        case = Case(tree, {}, {}, 0, group_id=f"group-{seed}", pack_hosts=kind != "spread")
        if 50 <= len(case.fabric.hosts) <= 300:
            break
    fabric, hosts = case.fabric, case.fabric.hosts
    most = draw.choice([1, 1, 2, 2, 4] if kind != "max_leaves" else [1, 1, 2])
    # Hosts are mostly full, or all empty.
    is_full = kind != "max_leaves" and draw.random() < 0.5
    capacity = {host: max(draw.randint(-most, most), 0) if is_full else most for host in hosts}
    members: dict[str, int] = {}
    if kind == "members" or draw.random() < 0.2:
        near = fabric.hosts_of(draw.choice(fabric.ancestors(draw.choice(hosts))))
        members = {host: draw.randint(1, 3) for host in draw.sample(near, min(len(near), 4))}
    level = draw.randint(1, max(fabric.depth - 1, 1)) if kind == "require" else fabric.depth
    room = Counter[int]()
    for domain, host in zip(fabric.groups[level - 1].tolist(), hosts, strict=True):
        room[domain] += capacity[host]
    # Enough for several leaves, and small enough for the solver.
    largest = min(max(room.values()) + 1, 40 if most == 1 and kind != "islands" else 20)
    count = draw.randint(min(10, largest), largest)
    if kind == "max_leaves":
        count = most * draw.randint(12, 16)
    return replace(
        case,
        capacity=capacity,
        members=members,
        count=count,
        require=fabric.levels[level - 1] if kind == "require" else None,
    )


def case_in_parts(seed: int) -> Case:
    """Return such a group in parts, kinds by turns."""
    case, kind = random_case(seed), KINDS_IN_PARTS[seed % len(KINDS_IN_PARTS)]
    draw, levels = random.Random(f"large parts {seed}"), case.fabric.levels
    is_balanced = "bal" in kind
    size = draw.randint(2, 6)
    if kind in ("balanced", "priced balance", "balanced pods"):
        size = 1
    price = None
    if "priced" in kind:
        rates = rates_of(*draw.choice([(0.1, 0.2), (0.5, 0.0), (2.0, 1.0)]))
        price = FragmentationPrice(rates, draw.randint(4, 12), draw.randint(12, 40))
    level = levels[1] if "pods" in kind and len(levels) > 2 else None
    count = min(case.count, 24) + (draw.randint(0, 10) if kind == "most segments" else 0)
    require = None if kind == "most segments" else case.require
    parts = Parts(size, level, is_balanced)
    return replace(case, count=count, require=require, parts=parts, price=price)


def program_of(case: Case) -> Program:
    """Return the integer program of a case."""
    parts, price = case.parts, None
    if case.price is not None:
        # Parts of a hop: see Oracle.priced_costs.
        of_hop, square = 1 << max(26 - 2 * case.count.bit_length(), 6), case.count**2
        rates = case.price.rates
        slots = {1: case.price.leaf_slots, 2: case.price.pod_slots}
        rate_of = {1: rates.leaf, 2: rates.pod}
        price = Price(
            of_hop,
            {level: round(of_hop * rate_of[level] * square / slots[level]) for level in slots},
            round(of_hop * rates.leaf * square / 20),
        )
    return Program(
        case.tree,
        case.capacity,
        case.members,
        case.count,
        level=case.require and case.fabric.levels.index(case.require) + 1,
        max_leaves=case.max_leaves,
        min_leaves=case.min_leaves,
        pack_hosts=case.pack_hosts,
        parts=parts
        and (
            parts.size,
            1 if parts.level is None else case.fabric.levels.index(parts.level) + 1,
            parts.is_balanced,
        ),
        price=price,
    )


def values_of(case: Case, answer: Plan) -> Values:
    """Return the values of a plan by definition."""
    fabric = case.fabric
    everyone = case.together(answer.hosts)
    cost = pair_by_pair(case, everyone, on_one_host=0 if case.pack_hosts else 1)
    excess = []
    for group in fabric.groups:
        used = {int(group[fabric.index_of(host)]) for host in answer.hosts}
        below = [
            h for h, switch in zip(fabric.hosts, group.tolist(), strict=True) if switch in used
        ]
        excess.append(sum(map(case.capacity.__getitem__, below)) - case.count)
    return (int(cost), len(set(map(fabric.leaf_of, everyone))), *excess)


def broken_by(case: Case, answer: Plan) -> Iterator[str]:
    """Yield what a plan must not do."""
    fabric = case.fabric
    if answer.hosts != Counter(answer.places) or len(answer.places) != case.count:
        yield f"{len(answer.places)} places for {case.count} VMs"
    if any(new > case.capacity[host] for host, new in answer.hosts.items()):
        yield "more VMs on a host than it takes"
    level = fabric.depth if case.require is None else fabric.levels.index(case.require) + 1
    everyone = case.together(answer.hosts)
    if len({int(fabric.groups[level - 1][fabric.index_of(host)]) for host in everyone}) > 1:
        yield f"several switches of level {level}"
    if case.max_leaves is not None and len(set(map(fabric.leaf_of, everyone))) > case.max_leaves:
        yield f"more than {case.max_leaves} leaves"
    here = set(map(fabric.leaf_of, case.members))
    if len(set(map(fabric.leaf_of, everyone))) < min(case.min_leaves, len(here) + case.count):
        yield f"fewer than {case.min_leaves} leaves"


@dataclass
class Comparison:
    """What was compared, and the differences."""

    kinds: Counter[str] = field(default_factory=Counter)
    differences: list[str] = field(default_factory=list)


@functools.cache
def compared(number: int) -> Comparison:
    """Return the comparison of the first seeds."""
    found = Comparison()
    for seed in range(number):
        case = random_case(seed)
        kind = KINDS[seed % len(KINDS)]
        binds = False
        if kind == "max_leaves":
            free = program_of(case).best(keys=2)
            assert free is not None
            # One leaf less than the best plan without a bound.
            case = replace(case, max_leaves=max(free[1] - 1, 1))
            binds = free[1] > 1
        if kind == "min_leaves":
            free = program_of(case).best(keys=2)
            # More leaves than the best plan has without a bound, or a leaf for each VM, which
            # often leaves no plan.
            more = (free[1] if free is not None else 0) + 1 + seed % 3
            case = replace(case, min_leaves=case.count if seed % 2 else more)
        expected = program_of(case).best()
        answer = case.answer()
        found.kinds[kind] += 1
        found.kinds[f"{case.fabric.depth} levels"] += 1
        found.kinds["max_leaves binds"] += binds and expected is not None
        found.kinds["members in all"] += bool(case.members)
        found.kinds["rejected" if expected is None else f"{kind} with a plan"] += 1
        values = values_of(case, answer) if isinstance(answer, Plan) else None
        if values != expected:
            found.differences.append(f"seed {seed}, {kind}: {values}, expected {expected}")
        if isinstance(answer, Plan):
            found.differences += [f"seed {seed}, {kind}: {b}" for b in broken_by(case, answer)]
    return found


@pytest.mark.parametrize("number", SIZES)
def test_an_integer_program_has_the_cost_leaves_and_excess_of_the_plan(number: int):
    found = compared(number).differences
    assert not found, f"{len(found)} differences in {number} groups\n" + "\n".join(found[:10])


def values_in_parts(case: Case, answer: Plan) -> Values:
    """Return the values of a plan in parts by definition."""
    oracle, parts = Oracle(case), case.parts
    assert parts is not None
    leaves = Counter[str]()
    for host, vms in answer.hosts.items():
        leaves[case.fabric.leaf_of(host)] += vms
    way = np.array([[leaves[leaf] for leaf in oracle.leaves]])
    assert oracle.are_in_parts(way)[0]
    keys = [oracle.priced_costs, oracle.numbers_of_leaves]
    if parts.is_balanced:
        keys.append(oracle.fewest_below)
    levels = range(1, case.fabric.depth + 1)
    if case.price is not None and len(levels) > 1:
        keys.append(oracle.weighted_excess)
        levels = levels[2:]
    keys += [functools.partial(oracle.excess, level) for level in levels]
    return tuple(int(key(way)[0]) for key in keys)


def most_in_parts(case: Case) -> int:
    """Return the most VMs up to those of a case, not much fewer, that have a plan; 0: none."""
    for count in range(case.count, max(case.count - FEWER, 0), -1):
        if program_of(replace(case, count=count)).best(keys=1) is not None:
            return count
    return 0


def gang_in_parts(case: Case) -> int:
    """Return the most VMs up to those of a case that the planner says fit with the members."""
    problem = Problem.from_counts(
        topology=case.described, capacity=case.capacity, members=case.members, awaiting=case.count
    )
    bounds = Bounds(case.require, None, case.max_leaves, 0, case.parts)
    level = level_of(problem.topology, bounds.level)
    gang = largest_gang(problem, level, bounds, with_members=True, most=case.count)
    assert gang is not None
    return min(gang.vms, case.count)


@functools.cache
def compared_in_parts(number: int) -> Comparison:
    """Return the comparison of the first seeds in parts."""
    found = Comparison()
    for seed in range(number):
        case, kind = case_in_parts(seed), KINDS_IN_PARTS[seed % len(KINDS_IN_PARTS)]
        if kind == "segments in few leaves":
            free = program_of(case).best(keys=2)
            case = replace(case, max_leaves=None if free is None else max(free[1] - 1, 1))
        if kind == "most segments":
            most, gang = most_in_parts(case), gang_in_parts(case)
            if most != gang and (most or gang > case.count - FEWER):
                found.differences.append(f"seed {seed}: {gang} fit, expected {most}")
            found.kinds["some fit"] += 0 < most < case.count
            case = replace(case, count=most or case.count)
        expected, answer = program_of(case).best(), case.answer()
        values = values_in_parts(case, answer) if isinstance(answer, Plan) else None
        if values != expected:
            found.differences.append(f"seed {seed}, {kind}: {values}, expected {expected}")
        if isinstance(answer, Plan):
            found.differences += [f"seed {seed}, {kind}: {b}" for b in broken_by(case, answer)]
            if not answer.is_proven:
                found.kinds["not proven"] += 1
        found.kinds["rejected" if expected is None else kind] += 1
        found.kinds["members"] += bool(case.members) and expected is not None
    return found


@pytest.mark.parametrize("number", SIZES_IN_PARTS)
def test_an_integer_program_has_the_values_of_a_plan_in_parts(number: int):
    found = compared_in_parts(number)
    differences = found.differences
    assert not differences, f"{len(differences)} of {number} groups\n" + "\n".join(differences[:10])
    assert not found.kinds["not proven"], found.kinds
    if number == SEEDS:
        for kind in (*KINDS_IN_PARTS, "rejected", "members"):
            assert found.kinds[kind] >= number / 40, found.kinds
        assert found.kinds["some fit"], found.kinds


@pytest.mark.parametrize("number", SIZES)
def test_large_groups_are_of_every_kind(number: int):
    kinds = compared(number).kinds
    # A bound that binds, and a required level, often leave no plan.
    for kind in [*(f"{kind} with a plan" for kind in KINDS), "max_leaves binds"]:
        assert kinds[kind] >= number / 25, kinds
    for levels in range(2, 6):
        assert kinds[f"{levels} levels"] >= number / 8, kinds
    assert kinds["rejected"] >= number / 25, kinds
    assert kinds["members in all"] >= number / 5, kinds
