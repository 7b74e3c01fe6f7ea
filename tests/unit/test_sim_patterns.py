"""Communication patterns: senders, receivers, bytes, and what waits for what."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hpc_sched.core.traffic.patterns import PATTERNS, grid
from hpc_sched.core.traffic.step import Step
from hpc_sched.sim.network.messages.iteration import (
    Iteration,
    computation,
    iteration,
    thinned,
    volume,
)


def pairs(step: Step) -> list[tuple[int, int]]:
    """Return senders with their receivers, sorted."""
    return sorted(zip(step.sender.tolist(), step.receiver.tolist(), strict=True))


def partners(steps: Iteration, rank: int) -> dict[int, float]:
    """Return the receivers of a rank with their bytes in a whole iteration."""
    found: dict[int, float] = {}
    for each in steps:
        for sender, receiver, size in zip(each.sender, each.receiver, each.size, strict=True):
            if sender == rank:
                found[int(receiver)] = found.get(int(receiver), 0.0) + float(size) * each.times
    return found


def with_messages(steps: Iteration) -> list[Step]:
    return [each for each in steps if len(each.sender)]


def test_an_allreduce_around_a_ring_is_one_step_over_and_over():
    (step,) = with_messages(iteration("ring", 4, 60.0))
    assert pairs(step) == [(0, 1), (1, 2), (2, 3), (3, 0)]
    assert (step.times, step.size.tolist()) == (6, [10.0] * 4)


def test_recursive_doubling_exchanges_at_twice_the_distance():
    steps = with_messages(iteration("doubling", 4, 2.0))
    assert [pairs(step) for step in steps] == [
        [(0, 1), (1, 0), (2, 3), (3, 2)],
        [(0, 2), (1, 3), (2, 0), (3, 1)],
    ]


def test_ranks_beyond_a_power_of_two_give_their_data_to_the_next_one_and_get_the_result():
    """0 and 1, 2 and 3 are pairs, as in MPICH; 1, 3, 4 and 5 go on."""
    steps = with_messages(iteration("doubling", 6, 4.0))
    assert [pairs(step) for step in steps] == [
        [(0, 1), (2, 3)],
        [(1, 3), (3, 1), (4, 5), (5, 4)],
        [(1, 4), (3, 5), (4, 1), (5, 3)],
        [(1, 0), (3, 2)],
    ]


@pytest.mark.parametrize("ranks", [2, 3, 4, 7, 8, 12, 33])
def test_all_ranks_of_an_allreduce_end_with_the_data_of_all(ranks: int):
    have = [{rank} for rank in range(ranks)]
    for step in iteration("doubling", ranks, 1.0):
        before = [frozenset(each) for each in have]
        for sender, receiver in pairs(step):
            have[receiver] |= before[sender]
    assert have == [set(range(ranks))] * ranks


def test_all_to_all_reaches_every_rank_once():
    steps = with_messages(iteration("alltoall", 5, 8.0))
    assert len(steps) == 4
    assert partners(steps, 3) == {4: 2.0, 0: 2.0, 1: 2.0, 2: 2.0}


def test_a_halo_has_two_neighbours_a_dimension_and_no_edge():
    """::

    0  1  2  3
    4  5  6  7
    8  9 10 11
    """
    (step,) = with_messages(iteration("halo2", 12, 4.0))
    assert partners((step,), 5) == {1: 1.0, 4: 1.0, 6: 1.0, 9: 1.0}
    assert partners((step,), 0) == {1: 1.0, 3: 1.0, 4: 1.0, 8: 1.0}


def test_where_both_neighbours_are_one_rank_it_gets_two_messages():
    (step,) = with_messages(iteration("halo2", 6, 4.0))
    assert partners((step,), 0) == {1: 1.0, 2: 1.0, 3: 2.0}


def test_a_broadcast_is_sent_on_by_all_that_have_it():
    steps = with_messages(iteration("broadcast", 6, 3.0))
    assert [pairs(step) for step in steps] == [[(0, 1)], [(0, 2), (1, 3)], [(0, 4), (1, 5)]]


def test_block_tridiagonal_sends_along_rows_columns_and_the_diagonal():
    """::

     0  1  2  3
     4  5  6  7
     8  9 10 11
    12 13 14 15

    From 5 the next ones are 6, 9 and 8 (one down, one left); the previous ones 4, 1 and 2. Of 55
    doubles a face and direction, 10 + 30 go to the next one and 10 + 5 back.
    """
    found = partners(iteration("bt", 16, 165.0), 5)
    assert found == pytest.approx({6: 40.0, 9: 40.0, 8: 40.0, 4: 15.0, 1: 15.0, 2: 15.0})


def test_a_sweep_of_block_tridiagonal_is_a_chain_of_stages_with_computation_before_each():
    faces, *sweeps = iteration("bt", 16, 1.0, computation=12.0)
    assert len(faces.sender) == 6 * 16
    assert [step.times for step in sweeps] == [3, 1, 3, 1] * 3
    assert [round(step.computation, 12) for step in sweeps[:4]] == [0.9, 0.9, 0.1, 0.1]
    assert computation((faces, *sweeps)) == pytest.approx(12.0)


def test_of_a_number_that_is_no_square_block_tridiagonal_uses_the_largest_square():
    senders = {int(rank) for step in iteration("bt", 20, 1.0) for rank in step.sender}
    assert senders == set(range(16))


@pytest.mark.parametrize("pattern", PATTERNS)
def test_a_single_rank_sends_nothing(pattern: str):
    steps = iteration(pattern, 1, 1.0, computation=2.0)
    assert with_messages(steps) == []
    assert computation(steps) == 2.0


@given(st.sampled_from([name for name in PATTERNS if name != "none"]), st.integers(4, 70))
def test_every_pattern_has_its_volume_and_its_computation(pattern: str, ranks: int):
    steps = iteration(pattern, ranks, 1e6, computation=3.0)
    assert volume(steps) == pytest.approx(1e6)
    assert computation(steps) == pytest.approx(3.0)
    for step in steps:
        assert (step.sender != step.receiver).all()
        assert max([*step.sender.tolist(), *step.receiver.tolist()], default=0) < ranks


@given(st.sampled_from(["ring", "alltoall", "halo1", "halo2", "halo3"]), st.integers(2, 40))
def test_everybody_receives_as_much_as_it_sends(pattern: str, ranks: int):
    for step in iteration(pattern, ranks, 1.0):
        ends = [np.bincount(end, step.size, ranks) for end in (step.sender, step.receiver)]
        assert ends[0] == pytest.approx(ends[1])


@pytest.mark.parametrize(
    ("ranks", "dimensions", "sides"),
    [
        (128, 2, (8, 16)),
        (64, 3, (4, 4, 4)),
        (128, 3, (4, 4, 8)),
        (7, 2, (1, 7)),
        (12, 3, (2, 2, 3)),
        (5, 1, (5,)),
    ],
)
def test_the_sides_of_a_grid_are_near_each_other(ranks, dimensions, sides):
    assert grid(ranks, dimensions) == sides


@given(st.integers(1, 300), st.integers(1, 3))
def test_no_grid_is_nearer_to_a_cube(ranks: int, dimensions: int):
    found = grid(ranks, dimensions)
    assert math.prod(found) == ranks
    divisors = [side for side in range(1, ranks + 1) if ranks % side == 0]
    if dimensions == 2:
        assert sum(found) == min(side + ranks // side for side in divisors)
    if dimensions == 3:
        assert sum(found) == min(
            a + b + ranks // a // b for a in divisors for b in divisors if ranks // a % b == 0
        )


def test_an_iteration_of_many_messages_is_thinned_to_steps_that_stand_for_others():
    """Of 9 steps of 10 messages, three are the middle ones of three each."""
    steps = iteration("alltoall", 10, 90.0)
    found = thinned(tuple(with_messages(steps)), 40)
    assert [each.times for each in found] == [3, 3, 3]
    assert [int(each.receiver[0]) for each in found] == [2, 5, 8]
    assert volume(found) == pytest.approx(volume(steps))
    assert thinned(tuple(with_messages(steps)), 90) == tuple(with_messages(steps))


@pytest.mark.parametrize("pattern", ["halo3", "ring", "bt"])
def test_what_has_few_steps_is_not_thinned(pattern: str):
    steps = iteration(pattern, 64, 1.0, computation=1.0)
    assert thinned(steps, 10) == steps
