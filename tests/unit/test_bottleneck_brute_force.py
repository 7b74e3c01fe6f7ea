"""The plan of least bottleneck against every other way to place a small group."""

import functools
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

import pytest

from hpc_sched.core.plan.result import Plan, Rejection
from tests.unit import bottleneck_cases
from tests.unit.bottleneck_cases import LinkedCase
from tests.unit.bottleneck_oracle import BottleneckOracle, LeastBottleneck

SEEDS = 20_000
SIZES = [
    1_500,
    pytest.param(
        SEEDS, marks=pytest.mark.nightly("planner", "twenty thousand exhaustive searches")
    ),
]

# The least share of plans of each kind: what binds, and what decides.
PLANS = {
    **dict.fromkeys(["2 levels", "3 levels", "4 levels", "members"], 0.1),
    **dict.fromkeys(["hosts of several VMs", "max_leaves", "min_leaves", "spread"], 0.05),
    **dict.fromkeys(["islands", "unbalanced", "equal leaves"], 0.05),
    **dict.fromkeys(["uplinks alike", "uplinks any", "uplinks one narrow"], 0.05),
    **dict.fromkeys(["links of hosts alike", "links of hosts any"], 0.1),
    **{f"tradeoff {tradeoff}": 0.05 for tradeoff in bottleneck_cases.TRADEOFFS},
    **{f"require level {level}": 0.01 for level in range(1, 5)},
    "members on a host without room": 0.02,
    "less bottleneck than with the least Hop-Byte": 0.05,
    "the harm binds": 0.02,
    "the harm and leaves bind": 0.005,
    "bottleneck": 0.2,
    "cost": 0.05,
    "excess of level 1": 0.05,
    "excess of level 2": 0.02,
    "set": 0.05,
    "counts": 0.02,
}
REJECTIONS = 0.05


@dataclass
class Comparison:
    """What was compared, and the differences."""

    plans: Counter[str] = field(default_factory=Counter)  # by kind of case
    rejections: int = 0
    differences: list[str] = field(default_factory=list)


@functools.cache
def compared(number: int) -> Comparison:
    """Return the comparison of evenly spread seeds."""
    found = Comparison()
    for seed in range(0, SEEDS, SEEDS // number):
        linked = bottleneck_cases.random_case(seed)
        oracle = BottleneckOracle(linked)
        best, answer = oracle.best(), linked.answer()
        if best is None:
            found.rejections += 1
        else:
            found.plans += Counter([*bottleneck_cases.traits(linked), *kinds(linked, best)])
        if seen := list(differences(linked, oracle, best, answer)):
            found.differences.append(f"seed {seed}: {'; '.join(seen)}")
    return found


def kinds(linked: LinkedCase, best: LeastBottleneck) -> Iterator[str]:
    """Yield what binds the best plan, and what decides."""
    yield from best.decided_by
    if best.bottleneck < best.hops_bottleneck:
        yield "less bottleneck than with the least Hop-Byte"
    if best.harm_binds:
        yield "the harm and leaves bind" if linked.bounds_leaves else "the harm binds"


def differences(
    linked: LinkedCase,
    oracle: BottleneckOracle,
    best: LeastBottleneck | None,
    answer: Plan | Rejection,
) -> Iterator[str]:
    """Yield in what an answer is not the best plan."""
    if best is None or isinstance(answer, Rejection):
        if best is not None or isinstance(answer, Plan):
            yield f"{answer!r}, expected {best}"
        return
    if not oracle.is_feasible(answer.hosts):
        yield f"{answer} does not keep the room or the bounds"
    bottleneck, harm, cost = oracle.of_plan(answer.hosts)
    if best.most_harm is not None and harm > best.most_harm:
        yield f"harm {harm}, expected at most {best.most_harm}"
    if linked.bounds_leaves and linked.tradeoff is not None and not answer.is_proven:
        # Both bounds together are not searched.
        if answer.leaves != best.hops_leaves:
            yield f"{answer}, neither of least bottleneck nor of least Hop-Byte"
        return
    if (bottleneck, cost, answer.is_proven) != (best.bottleneck, best.cost, True):
        yield f"bottleneck {bottleneck}, cost {cost}, {answer}, expected {best}"
    # Other bounds have an order of equals of their own.
    elif not (best.harm_binds or linked.bounds_leaves) and answer.leaves != best.leaves:
        yield f"leaves {answer.leaves}, expected {best}"


@pytest.mark.parametrize("number", SIZES)
def test_the_plan_of_a_random_group_has_the_least_bottleneck_and_then_the_least_cost(number: int):
    found = compared(number).differences
    assert not found, f"{len(found)} differences in {number} cases\n" + "\n".join(found[:10])


@pytest.mark.parametrize("number", SIZES)
def test_random_groups_with_links_are_of_every_kind(number: int):
    found = compared(number)
    for kind, share in PLANS.items():
        assert found.plans[kind] >= share * number, (kind, found.plans)
    assert found.rejections >= REJECTIONS * number
