"""Communication patterns: senders, receivers and bytes."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hpc_sched.core.arrays import Reals
from hpc_sched.sim.runtime import traffic


def partners(sent: Reals, process: int) -> dict[int, float]:
    """Return the receivers of a process, with their bytes."""
    return {int(q): float(sent[process, q]) for q in np.flatnonzero(sent[process])}


def test_on_a_ring_everybody_sends_to_the_next_one():
    assert [partners(traffic.ring(3, 5.0), p) for p in range(3)] == [{1: 5.0}, {2: 5.0}, {0: 5.0}]


def test_a_torus_has_four_neighbours_and_no_edge():
    """::

    0  1  2  3
    4  5  6  7
    8  9 10 11
    """
    sent = traffic.torus(3, 4, 1.0)
    assert partners(sent, 5) == {1: 1.0, 4: 1.0, 6: 1.0, 9: 1.0}
    assert partners(sent, 0) == {1: 1.0, 3: 1.0, 4: 1.0, 8: 1.0}


def test_where_both_neighbours_are_one_process_it_gets_twice_as_much():
    assert partners(traffic.torus(2, 3, 1.0), 0) == {1: 1.0, 2: 1.0, 3: 2.0}


def test_block_tridiagonal_sends_along_rows_columns_and_the_diagonal():
    """::

     0  1  2  3
     4  5  6  7
     8  9 10 11
    12 13 14 15

    From 5 the next ones are 6, 9 and 8 (one down, one left); the previous ones 4, 1 and 2.
    """
    face = (8 / 4) ** 2 * 3 * 8
    forward, back = 40 * face, 15 * face
    assert partners(traffic.block_tridiagonal(4, 8), 5) == {
        6: forward,
        9: forward,
        8: forward,
        4: back,
        1: back,
        2: back,
    }


def test_a_class_c_process_of_sixteen_sends_six_and_a_half_megabytes_a_step():
    sent = traffic.block_tridiagonal(4, 162)
    assert sent.sum(axis=1) == pytest.approx(np.full(16, 6.495e6), rel=1e-3)


def test_a_single_process_sends_nothing():
    for sent in (
        traffic.ring(1, 1.0),
        traffic.torus(1, 1, 1.0),
        traffic.block_tridiagonal(1, 12),
    ):
        assert sent.tolist() == [[0.0]]


@pytest.mark.parametrize(
    "sent",
    [
        traffic.ring(6, 1.0),
        traffic.torus(2, 3, 1.0),
        traffic.block_tridiagonal(3, 12),
    ],
    ids=["ring", "torus", "block tridiagonal"],
)
def test_everybody_receives_as_much_as_it_sends(sent: Reals):
    assert (sent.diagonal() == 0).all()
    assert sent.sum(axis=0) == pytest.approx(sent.sum(axis=1))
    assert len(set(sent.sum(axis=1).tolist())) == 1


@given(st.integers(1, 5), st.integers(1, 60))
def test_block_tridiagonal_gives_all_neighbours_the_same_whatever_the_process(side, points):
    sent = traffic.block_tridiagonal(side, points)
    total = 3 * 55 * (points / side) ** 2 * (side - 1) * 8
    assert sent.sum(axis=1) == pytest.approx(np.full(side * side, total))


def test_flows_go_between_the_places_of_the_processes():
    found = traffic.flows(traffic.ring(3, 7.0), [4, 4, 9])
    assert found.source.tolist() == [4, 4, 9]
    assert found.target.tolist() == [4, 9, 4]
    assert found.size.tolist() == [7.0, 7.0, 7.0]


def test_every_process_wants_a_place():
    with pytest.raises(ValueError, match="2 places for 3 processes"):
        traffic.flows(traffic.ring(3, 1.0), [0, 1])
