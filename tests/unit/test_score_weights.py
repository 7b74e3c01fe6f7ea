"""The weights of a score: plans compare by it as by their values, and no sum overflows."""

import math
from fractions import Fraction
from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from hpc_sched.core.plan.exact.best_counts import exact_leaf_counts
from hpc_sched.core.plan.exact.order import Greatest
from hpc_sched.core.plan.problem import Problem
from hpc_sched.topology.model import Topology

MOST_PER_HOST = 1 << 20


class Sums(NamedTuple):
    """What a plan saves, and what it uses."""

    saved: int
    leaves: int
    excess: int


@st.composite
def pairs_of_plans(draw: st.DrawFn) -> tuple[Greatest, Sums, Sums, Fraction]:
    """Draw bounds, two plans within these, and the price of a leaf."""
    bounds = Greatest(
        saved=draw(st.integers(1, 5 * math.comb(10_000, 2))),
        leaves=draw(st.integers(1, 5_000)),
        excess=draw(st.integers(0, 50) | st.integers(0, 100_000 * MOST_PER_HOST)),
    )
    plans = [
        Sums(*(draw(st.integers(0, min(most, 5)) | st.integers(0, most)) for most in limits))
        for limits in [(bounds.saved, bounds.leaves, bounds.excess)] * 2
    ]
    hops = draw(st.just(1) | st.integers(1, bounds.leaves))
    price = draw(st.just(0) | st.integers(0, bounds.saved + 1))
    return bounds, plans[0], plans[1], Fraction(price, hops)


@given(pairs_of_plans())
def test_a_score_tells_leaves_and_savings_and_compares_by_value_then_leaves_then_excess(drawn):
    bounds, one, other, price = drawn
    weights = bounds.weights(price)

    def score(plan: Sums) -> int:
        used = plan.leaves * weights.leaf + plan.excess * weights.excess
        found = plan.saved * weights.saving - used
        scores = np.array([found])
        assert weights.leaves(scores).tolist() == [plan.leaves]
        assert weights.saved(scores, np.array([plan.leaves])).tolist() == [plan.saved]
        return found

    def key(plan: Sums) -> tuple[Fraction | int, ...]:
        value = plan.saved - price * plan.leaves
        return value, -plan.leaves, -plan.excess if weights.excess else 0

    assert (score(one) > score(other)) == (key(one) > key(other))
    assert (score(one) == score(other)) == (key(one) == key(other))


@given(
    saved=st.integers(0, 5 * math.comb(10_000, 2)),
    leaves=st.integers(1, 5_000),
    excess=st.integers(0, 100_000 * MOST_PER_HOST),
)
@example(saved=5 * math.comb(10_000, 2), leaves=5_000, excess=100_000 << 20)
@example(saved=1_457_927_143, leaves=1, excess=2_914_201_465)
@example(saved=0, leaves=1, excess=0)
def test_twice_the_largest_and_least_scores_fit_into_64_bits(saved: int, leaves: int, excess: int):
    """Two scores are added where tables are searched for bent points."""
    bounds = Greatest(saved, leaves, excess)
    for hops, price in [(1, 0), (1, saved + 1), (leaves, saved), (leaves, 0)]:
        weights = bounds.weights(Fraction(price, hops))
        most = weights.saving * saved
        least = -weights.leaf * leaves - weights.excess * excess
        assert -(1 << 62) < least <= most < 1 << 62


@given(st.integers(0, 1000), st.integers(1, 50), st.integers(1, 10_000))
def test_all_excess_is_in_a_score_where_it_fits(saved: int, leaves: int, excess: int):
    for hops, price in [(1, 0), (1, saved + 1), (leaves, saved)]:
        assert Greatest(saved, leaves, excess).weights(Fraction(price, hops)).excess == 1


def test_scores_that_do_not_fit_are_an_error():
    with pytest.raises(OverflowError, match="62 bits"):
        Greatest(saved=1 << 40, leaves=1 << 12, excess=0).weights(Fraction(1 << 30, (1 << 12) + 1))


@pytest.mark.parametrize(("vms", "fits"), [((1 << 28) - 1, True), (1 << 28, False)])
def test_hops_of_a_group_on_one_leaf_that_do_not_fit_are_an_error(vms: int, fits: bool):
    """Two leaves with room for a billion VMs each::

     core
    a    b
    """
    fabric = Topology.from_tree({"core": {"a": ["a0"], "b": ["b0"]}})
    problem = Problem.from_counts(
        topology=fabric, capacity={"a0": 1 << 30, "b0": 1 << 30}, members={}, awaiting=vms
    )
    tops = np.flatnonzero(fabric.switch_levels == fabric.depth)
    if fits:
        found = exact_leaf_counts(problem, vms, fabric.depth, tops)
        assert list(found.counts.values()) == [vms]
        return
    with pytest.raises(OverflowError, match="62 bits"):
        exact_leaf_counts(problem, vms, fabric.depth, tops)
