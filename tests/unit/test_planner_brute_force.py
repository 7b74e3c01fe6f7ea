"""The exact plan against every other way to place a small group."""

import functools
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace

import numpy as np
import pytest

from hpc_sched.core.plan.exact import leaf_searches
from hpc_sched.core.plan.exact.pruning import branches
from hpc_sched.core.plan.result import Plan, Rejection
from tests.unit import fabrics, small_cases
from tests.unit.fabrics import Case
from tests.unit.plan_oracle import Best, Oracle, compositions, pair_by_pair

SEEDS = 20_000
SIZES = [
    SEEDS // 10,
    pytest.param(
        SEEDS, marks=pytest.mark.nightly("planner", "twenty thousand exhaustive searches")
    ),
]
SEEDS_IN_PARTS = 50_000
SIZES_IN_PARTS = [
    SEEDS_IN_PARTS // 60,
    pytest.param(
        SEEDS_IN_PARTS, marks=pytest.mark.nightly("planner", "fifty thousand exhaustive searches")
    ),
]

# The least share of plans, or of rejections, of each kind: what binds, and what decides.
PLANS = {
    **dict.fromkeys(["2 levels", "3 levels", "4 levels", "5 levels"], 0.1),
    **dict.fromkeys(["unbalanced", "islands", "islands of different depth", "members"], 0.1),
    **dict.fromkeys(["capacity 0..1", "capacity 0..4", "capacity 0..9"], 0.1),
    **dict.fromkeys(["equal leaves", "spread", "packing", "max_leaves", "min_leaves"], 0.05),
    **dict.fromkeys(["few large hosts", "a host that no switch names"], 0.02),
    **{f"require level {level}": 0.01 for level in range(1, 6)},
    "max_leaves binds": 0.01,
    "min_leaves binds": 0.05,
    "require binds": 0.005,
    "cost": 0.2,
    "leaves": 0.005,
    "excess of level 1": 0.1,
    "excess of level 2": 0.05,
    "excess of level 3": 0.01,
    "excess of level 4": 0.0015,  # 36 of all seeds
    "set": 0.05,
    "counts": 0.02,
}
# The same with a price; it decides between plans of one Hop-Byte too.
PRICED = {
    **dict.fromkeys(["2 levels", "3 levels", "4 levels", "5 levels", "members", "islands"], 0.1),
    **dict.fromkeys(["max_leaves", "min_leaves", "spread"], 0.05),
    "a plan of least Hop-Byte costs more": 0.02,
    "excess of leaves and pods": 0.002,
}
IN_PARTS = {
    **dict.fromkeys(["2 levels", "3 levels", "4 levels", "5 levels", "unbalanced"], 0.05),
    **dict.fromkeys(["islands", "members", "price", "spread"], 0.05),
    **dict.fromkeys(["segments", "balanced", "balanced segments", "last part smaller"], 0.1),
    **dict.fromkeys(["segment level above leaves", "max_leaves"], 0.1),
    "parts bind": 0.05,
    "max_leaves binds": 0.002,
}
REJECTIONS_IN_PARTS = {
    **dict.fromkeys(["segments", "balanced", "members", "last part smaller", "max_leaves"], 0.02),
    "segment level above leaves": 0.02,
    "fits without parts": 0.05,
}
REJECTIONS = {
    **dict.fromkeys(["2 levels", "3 levels", "4 levels", "5 levels", "unbalanced"], 0.02),
    **dict.fromkeys(["islands", "members", "max_leaves", "spread", "packing"], 0.02),
    **{f"require level {level}": 0.005 for level in range(1, 4)},
}


@dataclass
class Comparison:
    """What was compared, and the differences."""

    # A kind of case to the number of its plans and of its rejections.
    plans: Counter[str] = field(default_factory=Counter)
    rejections: Counter[str] = field(default_factory=Counter)
    differences: list[str] = field(default_factory=list)


@functools.cache
def compared(
    number: int,
    case_of: Callable[[int], Case] = small_cases.random_case,
    seeds: int = SEEDS,
) -> Comparison:
    """Return the comparison of evenly spread seeds."""
    found = Comparison()
    for seed in range(0, seeds, seeds // number):
        case = case_of(seed)
        best = Oracle(case).best()
        kinds = Counter([*small_cases.traits(case), *traits_of_parts(case)])
        if best is None:
            found.rejections += kinds
            if case.parts is not None and Oracle(replace(case, parts=None)).best() is not None:
                found.rejections["fits without parts"] += 1
        else:
            found.plans += kinds + Counter(binding(case, best)) + Counter(best.decided_by)
            if case.price is not None and case.parts is None:
                free = Oracle(replace(case, price=None)).best()
                if free is not None and free.cost < best.cost:
                    found.plans["a plan of least Hop-Byte costs more"] += 1
        if seen := list(differences(case, best, case.answer())):
            found.differences.append(f"seed {seed}: {'; '.join(seen)}")
    return found


def compared_alone(number: int, case_of: Callable[[int], Case]) -> Comparison:
    """Return the comparison of groups in parts by seed, without what binds them."""
    found = Comparison()
    for seed in range(0, SEEDS_IN_PARTS, SEEDS_IN_PARTS // number):
        case = case_of(seed)
        best = Oracle(case).best()
        kinds = found.rejections if best is None else found.plans
        kinds.update([*small_cases.traits(case), *traits_of_parts(case)])
        if seen := list(differences(case, best, case.answer())):
            found.differences.append(f"seed {seed}: {'; '.join(seen)}")
    return found


def traits_of_parts(case: Case) -> Iterator[str]:
    """Yield what is special about the parts of a case."""
    parts = case.parts
    if case.price is not None:
        yield "price"
    if parts is None or not case.count:
        return
    if parts.size > 1:
        yield "balanced segments" if parts.is_balanced else "segments"
    if parts.is_balanced:
        yield "balanced"
    if (case.count + sum(case.members.values())) % parts.size:
        yield "last part smaller"
    if parts.level is not None and case.fabric.levels.index(parts.level):
        yield "segment level above leaves"


def binding(case: Case, best: Best) -> Iterator[str]:
    """Yield the constraints without which there is a plan that comes before the best one."""
    limit = case.max_leaves
    if limit is not None:
        free = Oracle(replace(case, max_leaves=None)).best()
        if free is not None and free.leaves_of_group > limit:
            yield "max_leaves binds"
    if case.parts is not None:
        free = Oracle(replace(case, parts=None)).best()
        if free is not None and free.leaves != best.leaves:
            yield "parts bind"
    if case.min_leaves:
        free = Oracle(replace(case, min_leaves=0)).best()
        if free is not None and free.leaves != best.leaves:
            yield "min_leaves binds"
    if case.require is not None:
        free = Oracle(replace(case, require=None)).best()
        if free is not None and free.leaves != best.leaves:
            yield "require binds"


def differences(case: Case, best: Best | None, answer: Plan | Rejection) -> Iterator[str]:
    """Yield in what an answer is not the best plan."""
    if best is None or isinstance(answer, Rejection):
        if best is not None or isinstance(answer, Plan):
            yield f"{answer!r}, expected {best}"
        return
    if dict(answer.leaves) != best.leaves:
        yield f"leaves {dict(answer.leaves)}, expected {best}"
    if case.pack_hosts and answer.hop_bytes != best.cost:
        yield f"hop_bytes {answer.hop_bytes}, expected {best.cost}"
    if best.top is not None and answer.switch != best.top:
        yield f"switch {answer.switch}, expected {best.top}"
    fabric = case.fabric
    in_leaves = Counter[str]()
    for host, new in answer.hosts.items():
        in_leaves[fabric.leaf_of(host)] += new
        if new > case.capacity[host]:
            yield f"{new} VMs on {host}, which takes {case.capacity[host]}"
    if in_leaves != answer.leaves:
        yield f"hosts {dict(answer.hosts)} in leaves {dict(answer.leaves)}"
    if answer.hop_bytes != pair_by_pair(case, case.together(answer.hosts)):
        yield f"hop_bytes {answer.hop_bytes} of hosts {dict(answer.hosts)}"


@pytest.mark.parametrize("number", SIZES)
def test_the_plan_of_a_random_group_comes_first_in_the_order_of_all_plans(number: int):
    found = compared(number).differences
    assert not found, f"{len(found)} differences in {number} cases\n" + "\n".join(found[:10])


@pytest.mark.parametrize("number", [SEEDS // 20, *SIZES[1:]])
def test_the_plan_with_a_price_of_free_slots_comes_first_too(number: int):
    found = compared(number, small_cases.priced_case)
    differences = found.differences
    assert not differences, f"{len(differences)} of {number} cases\n" + "\n".join(differences[:10])
    for kind, share in PRICED.items():
        assert found.plans[kind] >= share * number, (kind, found.plans)


@pytest.mark.parametrize("number", SIZES_IN_PARTS)
def test_the_plan_of_a_group_in_parts_comes_first_of_all_plans_in_such_parts(number: int):
    found = compared(number, small_cases.case_in_parts, SEEDS_IN_PARTS)
    differences = found.differences
    assert not differences, f"{len(differences)} of {number} cases\n" + "\n".join(differences[:10])
    for kind, share in IN_PARTS.items():
        assert found.plans[kind] >= share * number, (kind, found.plans)
    for kind, share in REJECTIONS_IN_PARTS.items():
        assert found.rejections[kind] >= share * number, (kind, found.rejections)


@pytest.mark.parametrize("number", [SEEDS_IN_PARTS // 400, *SIZES_IN_PARTS[1:]])
def test_rooms_of_whole_parts_and_members_that_begin_parts_make_no_difference(number: int):
    found = compared_alone(number, small_cases.full_case_in_parts)
    assert not found.differences, "\n".join(found.differences[:10])
    for kind in ("members", "last part smaller", "balanced", "price"):
        assert found.plans[kind] >= 0.05 * number, (kind, found.plans)
        assert found.rejections[kind] >= 0.05 * number, (kind, found.rejections)


@pytest.mark.parametrize("number", [SEEDS_IN_PARTS // 500, *SIZES_IN_PARTS[1:]])
@pytest.mark.parametrize("case_of", [small_cases.case_in_parts, small_cases.full_case_in_parts])
def test_branches_that_are_left_out_make_no_difference_for_parts(
    number: int, case_of: Callable[[int], Case], monkeypatch: pytest.MonkeyPatch
):
    # By default they are left out on large fabrics alone.
    monkeypatch.setattr(branches, "_FEW", 0)
    monkeypatch.setattr(branches, "_FEW_BELOW", 0)
    monkeypatch.setattr(leaf_searches, "_MANY", 1 << 20)
    differences = compared_alone(number, case_of).differences
    assert not differences, f"{len(differences)} of {number} cases\n" + "\n".join(differences[:10])


@pytest.mark.parametrize("number", SIZES)
def test_random_groups_are_of_every_kind(number: int):
    found = compared(number)
    for kind, share in PLANS.items():
        assert found.plans[kind] >= share * number, (kind, found.plans)
    for kind, share in REJECTIONS.items():
        assert found.rejections[kind] >= share * number, (kind, found.rejections)


def test_the_cost_of_a_plan_for_leaves_is_the_least_of_all_ways_to_use_their_hosts():
    costs = Counter[str]()
    for seed in range(1_000):
        case = replace(small_cases.random_case(seed), require=None, max_leaves=None, min_leaves=0)
        if len(case.capacity) > 9 or case.count > 6:
            continue
        best = Oracle(case).best()
        least = least_cost(case)
        assert (None if best is None else best.cost) == least, seed
        costs["none" if least is None else "some"] += 1
    assert min(costs["none"], costs["some"]) >= 20, costs


def least_cost(case: Case) -> int | None:
    """Return the least cost of all numbers of VMs on all hosts, or None if they do not fit."""
    hosts = case.fabric.hosts
    apart = [
        [
            fabrics.hops_by_names(case.fabric, a, b) if a != b else int(not case.pack_hosts)
            for b in hosts
        ]
        for a in hosts
    ]
    hops = np.array(apart)
    between_islands = np.isinf(hops)
    hops[between_islands] = 0
    capacity = np.array([case.capacity.get(host, 0) for host in hosts])
    members = np.array([case.members.get(host, 0) for host in hosts])
    ways = compositions(case.count, len(hosts))
    ways = ways[(ways <= capacity).all(axis=1)] + members
    ways = ways[((ways @ between_islands) * ways).sum(axis=1) == 0]
    # Each pair of VMs twice; a VM is no pair with itself.
    twice = ((ways @ hops) * ways).sum(axis=1) - ways @ np.diag(hops)
    return int(twice.min()) // 2 if len(ways) else None
