"""When transfers end: worked examples, and what holds on any fabric."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hpc_sched.core.arrays import Reals
from hpc_sched.sim.network.fair_rates import fair_rates
from hpc_sched.sim.network.flows import Flows, no_flows
from hpc_sched.sim.network.links import Network
from hpc_sched.sim.network.transfers import finish_times
from tests.unit.network_cases import networks, paths, two_leaves_thin


def ends(
    network: Network, *sent: tuple[str, str, float], others: tuple[tuple[str, str], ...] = ()
) -> list[float]:
    """Return the ends of (source host, target host, bytes), rounded."""
    links = paths(network, [(source, target) for source, target, _ in sent])
    found = finish_times(
        network.capacity,
        links,
        size=np.array([size for _, _, size in sent]),
        block=np.zeros(len(sent), dtype=np.int64),
        others=Flows.on(paths(network, others)) if others else no_flows(links.shape[1]),
    )
    return [round(float(end), 12) for end in found]


def test_what_a_transfer_leaves_when_it_ends_is_shared_anew():
    """Both get a half until the short one ends at 2; then the long one has all, 2 more."""
    assert ends(two_leaves_thin(), ("a1", "b1", 1.0), ("a2", "b2", 3.0)) == [2.0, 4.0]


def test_a_flow_without_end_takes_its_share_for_ever():
    sent = [("a2", "b2", 3.0), ("a1", "a1", 4.0), ("a2", "b3", 0.0)]
    assert ends(two_leaves_thin(), *sent, others=(("a1", "b1"),)) == [6.0, 0.0, 0.0]


def test_nothing_to_send_takes_no_time():
    assert ends(two_leaves_thin()) == []
    assert ends(two_leaves_thin(), ("a1", "b1", 0.0)) == [0.0]


@pytest.mark.parametrize("size", [-1.0, math.nan, math.inf])
def test_a_size_that_is_no_number_of_bytes_is_refused(size: float):
    with pytest.raises(ValueError, match="a number of at least 0"):
        ends(two_leaves_thin(), ("a1", "b1", size))


@st.composite
def blocks(draw: st.DrawFn) -> tuple[Network, np.ndarray, Reals, np.ndarray, Flows]:
    """Return a network with transfers in up to three blocks, and flows that never end."""
    network = draw(networks())
    host = st.sampled_from(network.topology.hosts)
    pairs = draw(st.lists(st.tuples(host, host), min_size=1, max_size=14))
    size = st.one_of(st.floats(1e-3, 1e3), st.sampled_from([0.0, 1.0, 1.0]))
    others = draw(st.lists(st.tuples(host, host), max_size=3))
    links = paths(network, [*pairs, *others])
    return (
        network,
        links[: len(pairs)],
        np.array([draw(size) for _ in pairs]),
        np.sort(np.array([draw(st.integers(0, 2)) for _ in pairs])),
        Flows.on(links[len(pairs) :]),
    )


def naive(network: Network, links: np.ndarray, size: Reals, others: Flows) -> Reals:
    """Return the ends of one block, every transfer for itself."""
    left, found, now = size.copy(), np.zeros(len(size)), 0.0
    running = [i for i in range(len(size)) if size[i] > 0 and (links[i] != network.padding).any()]
    while running:
        flows = Flows.on(links[running]) + others
        rate = fair_rates(network.capacity, flows)[: len(running)]
        step = (left[running] / rate).min()
        now += step
        left[running] -= rate * step
        for i in [i for i in running if left[i] <= 1e-12 * size[i]]:
            found[i] = now
            running.remove(i)
    return found


@given(blocks())
def test_blocks_end_as_each_for_itself(drawn):
    network, links, size, block, others = drawn
    found = finish_times(network.capacity, links, size, block, others)
    for each in set(block.tolist()):
        chosen = block == each
        expected = naive(network, links[chosen], size[chosen], others)
        assert found[chosen] == pytest.approx(expected, rel=1e-9)


@given(blocks())
def test_no_link_gets_its_bytes_through_faster_than_it_can(drawn):
    network, links, size, block, others = drawn
    found = finish_times(network.capacity, links, size, block, others)
    for each in set(block.tolist()):
        sent = np.zeros(len(network.capacity))
        np.add.at(sent, links[block == each], size[block == each, None])
        bound = (sent / network.capacity)[:-1].max()
        assert found[block == each].max() >= bound * (1 - 1e-9)


@given(blocks())
def test_a_fabric_that_is_faster_throughout_is_faster_by_that_factor(drawn):
    network, links, size, block, others = drawn
    once = finish_times(network.capacity, links, size, block, others)
    assert finish_times(network.capacity * 2, links, size, block, others) == pytest.approx(once / 2)
