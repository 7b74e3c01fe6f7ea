"""The max-plus convolution: the double loop, and the points that a best split needs."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hpc_sched.core.arrays import Array
from hpc_sched.core.plan import maxplus as module
from hpc_sched.core.plan.maxplus import bent, maxplus

STEPS = (1, 2, 4, 8, 16)
SHAPES = ("random", "ties", "constant", "convex", "concave", "piecewise", "wavy", "large")


def table(seed: int, shape: str, length: int) -> Array:
    """Return the scores of a table of one shape, always the same for a seed."""
    rng = np.random.default_rng(seed)
    vms = np.arange(length, dtype=np.int64)
    if shape == "ties":
        return rng.integers(-2, 3, length)
    if shape == "constant":
        return np.full(length, rng.integers(-9, 10))
    if shape == "convex":
        return rng.integers(1, 4) * vms * vms - rng.integers(0, 100) * vms
    if shape == "concave":
        return -rng.integers(1, 4) * vms * vms + rng.integers(0, 100) * vms
    if shape == "piecewise":
        # As of leaves of one size: convex inside each, with a price when the next one begins.
        size = int(rng.integers(1, 24))
        full, rest = vms // size, vms % size
        return full * size * size + rest * rest - rng.integers(0, 40) * -(-vms // size)
    if shape == "wavy":
        # Convex over longer steps only.
        return vms * vms + rng.integers(0, 6, length)
    if shape == "large":
        # As the largest scores: the sums of two tables lie within 62 bits.
        return rng.integers(-(1 << 60), 1 << 60, length)
    return rng.integers(-1000, 1000, length)


def double_loop(left: Array, right: Array, most: int) -> list[int]:
    """Return max over i + j = k of left[i] + right[j] for each k."""
    sums: list[list[int]] = [[] for _ in range(min(len(left) + len(right) - 1, most + 1))]
    for i, a in enumerate(left.tolist()):
        for j, b in enumerate(right.tolist()[: max(most - i + 1, 0)]):
            sums[i + j].append(a + b)
    return [max(each) for each in sums]


@st.composite
def tables(draw: st.DrawFn) -> Array:
    """Draw a table of 1 to 200 scores of any shape."""
    seed, shape = draw(st.integers(0, 1 << 32)), draw(st.sampled_from(SHAPES))
    return table(seed, shape, draw(st.integers(1, 200)))


@given(tables(), tables(), st.integers(0, 410))
def test_maxplus_is_the_double_loop(left: Array, right: Array, most: int):
    assert maxplus(left, right, most).tolist() == double_loop(left, right, most)


@pytest.mark.parametrize("step", STEPS)
def test_maxplus_by_bent_points_of_each_step_is_the_double_loop(
    monkeypatch: pytest.MonkeyPatch, step: int
):
    """Tables so small are joined by all sums otherwise."""
    monkeypatch.setattr(module, "_SMALL", 0)
    monkeypatch.setattr(module, "_CHEAP", 0)
    monkeypatch.setattr(module, "_CALL", 0)
    monkeypatch.setattr(module, "_STEPS", (step,))

    @given(tables(), tables(), st.integers(0, 410))
    def check(left: Array, right: Array, most: int) -> None:
        assert maxplus(left, right, most).tolist() == double_loop(left, right, most)

    check()


@given(tables(), tables(), st.sampled_from(STEPS))
def test_every_best_split_has_a_bent_point_on_one_side(left: Array, right: Array, step: int):
    bent_left, bent_right = set(bent(left, step).tolist()), set(bent(right, step).tolist())
    for vms, best in enumerate(double_loop(left, right, len(left) + len(right))):
        for i in range(max(0, vms - len(right) + 1), min(vms, len(left) - 1) + 1):
            if int(left[i]) + int(right[vms - i]) == best:
                assert i in bent_left or vms - i in bent_right


@given(tables(), st.sampled_from(STEPS))
def test_the_points_that_are_not_bent_are_strictly_below_the_chord(scores: Array, step: int):
    found = bent(scores, step).tolist()
    assert found == sorted(set(found))
    within, numbers = set(found), scores.tolist()
    for i, score in enumerate(numbers):
        is_inside = step <= i < len(numbers) - step
        is_below = is_inside and numbers[i - step] + numbers[i + step] > 2 * score
        assert (i in within) == (not is_below)


@pytest.mark.parametrize(
    ("shape", "expected"),
    [
        pytest.param("convex", [0, 49], id="of a convex table only the ends"),
        pytest.param("concave", list(range(50)), id="all of a concave table"),
        pytest.param("constant", list(range(50)), id="all of a constant table"),
    ],
)
def test_the_points_of_fifty_scores_are_bent(shape: str, expected: list[int]):
    assert bent(table(1, shape, 50), 1).tolist() == expected


def test_maxplus_of_large_tables_is_the_double_loop():
    """Tables of this size are joined by their bent points."""
    left, right = table(7, "piecewise", 900), table(8, "wavy", 700)
    assert len(left) * len(right) > module._CHEAP
    assert maxplus(left, right, 1499).tolist() == double_loop(left, right, 1499)


def test_maxplus_takes_no_more_vms_than_the_most():
    ones = np.ones(4, dtype=np.int64)
    assert maxplus(ones, ones, 0).tolist() == [2]
    assert maxplus(ones, ones, 100).tolist() == [2] * 7
