"""The Hop-Byte metric: given traffic, the closed form, and a naive sum agree."""

import math
from itertools import combinations
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hpc_sched.core.hopbyte import hop_bytes, hop_bytes_of_counts
from hpc_sched.topology import Topology
from tests.unit import fabrics


@st.composite
def placements(draw: st.DrawFn) -> tuple[Topology, dict[str, str]]:
    """Draw a fabric and VMs on it, several on one host and some on hosts it does not name."""
    fabric = Topology.from_tree(draw(fabrics.trees()))
    hosts = st.sampled_from([*fabric.hosts, "stranger1", "stranger2"])
    places = draw(st.lists(hosts, max_size=10))
    return fabric, {f"vm{i}": host for i, host in enumerate(places)}


def ones(placement: dict[str, str]) -> dict[tuple[str, str], int]:
    return dict.fromkeys(combinations(placement, 2), 1)


@pytest.mark.parametrize(
    ("counts", "cost"),
    [
        pytest.param({}, 0, id="no VM costs nothing"),
        pytest.param({"a1": 1}, 0, id="one VM talks to nobody"),
        pytest.param({"a1": 5}, 0, id="one host needs no switch"),
        pytest.param({"a1": 1, "a2": 1}, 1, id="two hosts of a leaf are one pair of one hop"),
        pytest.param({"a1": 2, "a2": 2}, 4, id="two and two on a leaf are four pairs"),
        pytest.param({"a1": 1, "b1": 1}, 3, id="two leaves of a pod"),
        pytest.param({"a1": 1, "d1": 1}, 5, id="two pods"),
        pytest.param({"a1": 1, "a2": 1, "b1": 1, "c1": 1}, 1 + 2 * 3 + 3 * 5, id="all at once"),
        pytest.param({"a1": 3, "b1": 0}, 0, id="a host that counts nothing is not used"),
        pytest.param({"a1": 1, "stranger": 1}, 5, id="a host that nobody described"),
    ],
)
def test_the_closed_form_on_three_levels(counts: dict[str, int], cost: int):
    found = hop_bytes_of_counts(topology=fabrics.two_pods(), counts=counts)
    assert found == cost
    assert isinstance(found, int)


def test_a_group_on_two_islands_costs_infinitely_much():
    fabric = fabrics.islands()
    assert hop_bytes(topology=fabric, placement={"p": "a1", "q": "e1"}) == math.inf
    assert hop_bytes(topology=fabric, placement={"p": "e1", "q": "e2"}) == 1


def test_vms_on_two_islands_that_do_not_talk_cost_nothing():
    placement = {"p": "a1", "q": "e1", "r": "a2"}
    traffic = {("p", "q"): 0, ("p", "r"): 7}
    assert hop_bytes(topology=fabrics.islands(), placement=placement, traffic=traffic) == 7


@pytest.mark.parametrize(
    "traffic",
    [
        pytest.param({("p", "q"): 10, ("r", "q"): 2}, id="every pair once, in either order"),
        pytest.param({("p", "q"): 10, ("q", "p"): 10, ("q", "r"): 2}, id="a pair in both orders"),
        pytest.param({("p", "q"): 10, ("q", "r"): 2, ("p", "p"): 99}, id="a VM that sends itself"),
        pytest.param([[0, 10, 0], [0, 0, 2], [0, 0, 0]], id="the upper half of an array"),
        pytest.param([[0, 0, 0], [10, 0, 0], [0, 2, 0]], id="the lower half of an array"),
        pytest.param(np.array([[9, 10, 0], [10, 9, 2], [0, 2, 9]]), id="a whole array"),
    ],
)
def test_bytes_count_once_per_hop_and_pair(traffic: Any):
    placement = {"p": "a1", "q": "b1", "r": "d1"}
    found = hop_bytes(topology=fabrics.two_pods(), placement=placement, traffic=traffic)
    assert found == 10 * 3 + 2 * 5
    assert isinstance(found, int)


def test_vms_on_one_host_send_without_a_hop():
    placement = {"p": "a1", "q": "a1"}
    assert (
        hop_bytes(topology=fabrics.two_pods(), placement=placement, traffic={("p", "q"): 1e9}) == 0
    )


@pytest.mark.parametrize(
    ("traffic", "error", "text"),
    [
        pytest.param({("p", "x"): 1}, LookupError, "VM 'x', which has no place", id="a stranger"),
        pytest.param({("p", "q"): -1}, ValueError, "negative bytes between 'p' and 'q'", id="< 0"),
        pytest.param(
            {("p", "q"): 1, ("q", "p"): 2},
            ValueError,
            "between 'q' and 'p' are given twice: 2, 1",
            id="two numbers for one pair",
        ),
        pytest.param([[0, 1]], ValueError, r"shape \(1, 2\), expected \(2, 2\)", id="too small"),
        pytest.param(np.zeros((3, 3)), ValueError, r"expected \(2, 2\)", id="too large"),
        pytest.param([[0, -1], [0, 0]], ValueError, "negative bytes", id="below 0 in an array"),
        pytest.param(
            [[0, 1], [2, 0]], ValueError, "'p' and 'q' are given twice: 1, 2", id="two in an array"
        ),
    ],
)
def test_wrong_traffic_is_refused(traffic: Any, error: type[Exception], text: str):
    with pytest.raises(error, match=text):
        hop_bytes(topology=fabrics.two_leaves(), placement={"p": "a1", "q": "a2"}, traffic=traffic)


@given(placements())
def test_traffic_of_ones_the_closed_form_and_a_naive_sum_agree(
    placed: tuple[Topology, dict[str, str]],
):
    fabric, placement = placed
    n = len(placement)
    closed = hop_bytes(topology=fabric, placement=placement)
    naive = fabrics.naive_hop_bytes(fabric.including(placement.values()), placement.values())
    assert closed == naive
    for traffic in (ones(placement), np.ones((n, n), dtype=int), np.triu(np.ones((n, n)), 1)):
        assert hop_bytes(topology=fabric, placement=placement, traffic=traffic) == closed


@given(placements(), st.data())
def test_any_traffic_is_a_naive_sum_and_the_order_of_vms_does_not_matter(
    placed: tuple[Topology, dict[str, str]], data: st.DataObject
):
    fabric, placement = placed
    traffic = {pair: data.draw(st.integers(0, 3)) for pair in ones(placement)}
    whole = fabric.including(placement.values())
    naive = sum(
        sent * whole.hops(placement[p], placement[q]) for (p, q), sent in traffic.items() if sent
    )
    assert hop_bytes(topology=fabric, placement=placement, traffic=traffic) == naive
    order = data.draw(st.permutations(list(placement)))
    turned = {(q, p): traffic[(p, q)] for p, q in data.draw(st.permutations(list(traffic)))}
    assert (
        hop_bytes(topology=fabric, placement={vm: placement[vm] for vm in order}, traffic=turned)
        == naive
    )


@given(placements())
def test_counts_of_a_placement_cost_what_the_placement_costs(
    placed: tuple[Topology, dict[str, str]],
):
    fabric, placement = placed
    counts: dict[str, int] = {}
    for host in reversed(placement.values()):
        counts[host] = counts.get(host, 0) + 1
    assert hop_bytes_of_counts(topology=fabric, counts=counts) == hop_bytes(
        topology=fabric, placement=placement
    )
