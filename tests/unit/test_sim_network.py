"""Max-min fair sharing: textbook examples, and the definition itself on random fabrics."""

import math
import warnings
from collections.abc import Iterable

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from hpc_sched.sim.runtime import network as links
from hpc_sched.sim.runtime.network import Flows, Network, fat_tree
from hpc_sched.topology import Topology
from tests.unit import fabrics

INFINITE = math.inf


def two_leaves_thin() -> Network:
    """Return a fabric whose uplinks are as thick as one host's link.

    ::

                  core
                1 /  \\ 1
             leaf1    leaf2
             / 1 \\    / | \\  1 each
            a1   a2  b1 b2 b3
    """
    return with_uplinks(fabrics.two_leaves(), leaf1=1.0, leaf2=1.0)


def with_uplinks(topology: Topology, **uplinks: float) -> Network:
    """Return a fabric of hosts with the rate 1, and the stated rates of uplinks."""
    network = fat_tree(topology, host_rate=1.0)
    for name, rate in uplinks.items():
        up = 2 * len(topology.hosts) + topology.switch_index(name)
        network.capacity[[up, up + len(topology.switches)]] = rate
    return network


def between(topology: Topology, flows: Iterable[tuple[str, str, float]]) -> Flows:
    """Return the flows of (source host, target host, bytes)."""
    given = list(flows)
    return Flows(
        np.array([topology.index_of(source) for source, _, _ in given], dtype=np.int64),
        np.array([topology.index_of(target) for _, target, _ in given], dtype=np.int64),
        np.array([size for _, _, size in given], dtype=np.float64),
    )


def shares(network: Network, *pairs: tuple[str, str]) -> list[float]:
    flows = between(network.topology, [(a, b, 1.0) for a, b in pairs])
    return [round(float(rate), 12) for rate in links.rates(network, links.paths(network, flows))]


def ends(network: Network, *flows: tuple[str, str, float]) -> list[float]:
    found = links.finish_times(network, between(network.topology, flows))
    return [round(float(end), 12) for end in found]


def test_two_flows_over_one_uplink_share_it_half_and_half():
    assert shares(two_leaves_thin(), ("a1", "b1"), ("a2", "b2")) == [0.5, 0.5]


def test_a_flow_that_is_held_up_elsewhere_leaves_its_share_to_the_others():
    """b1's link down takes three flows, a third each; the uplink's other flow has what is left."""
    pairs = [("b2", "b1"), ("b3", "b1"), ("a1", "b1"), ("a2", "b2")]
    assert shares(two_leaves_thin(), *pairs) == [
        round(1 / 3, 12),
        round(1 / 3, 12),
        round(1 / 3, 12),
        round(2 / 3, 12),
    ]


def test_both_directions_of_a_link_are_apart():
    assert shares(two_leaves_thin(), ("a1", "b1"), ("b1", "a1")) == [1.0, 1.0]


def test_flows_under_one_leaf_do_not_use_its_uplink():
    assert shares(two_leaves_thin(), ("b1", "b2"), ("b3", "a1")) == [1.0, 1.0]


def test_flows_on_one_host_use_no_link_at_all():
    network = fat_tree(fabrics.two_leaves(), host_rate=1.0)
    assert shares(network, ("a1", "a1"), ("a1", "a2")) == [INFINITE, 1.0]
    assert ends(network, ("a1", "a1", 4.0)) == [0.0]


def test_each_level_is_oversubscribed_anew():
    """Two hosts below a leaf, four below a pod: 2 / 2 and 2 * 1 / 2 upward."""
    network = fat_tree(fabrics.two_pods(), host_rate=1.0, oversubscription=2.0)
    across = [("a1", "c1"), ("a2", "c2"), ("b1", "d1")]
    assert shares(network, *across[:2]) == [0.5, 0.5]
    assert shares(network, *across) == [round(1 / 3, 12)] * 3
    assert shares(network, ("a1", "b1"), ("a2", "b2")) == [0.5, 0.5]


def test_a_short_branch_has_one_uplink_only():
    """Leaf3 hangs below the core itself, two levels up."""
    network = with_uplinks(fabrics.lopsided(), leaf3=0.25)
    flows = between(network.topology, [("c1", "a1", 1.0), ("b1", "c2", 1.0)])
    used = [
        sum(link != len(network.capacity) - 1 for link in path)
        for path in links.paths(network, flows).tolist()
    ]
    # Host, leaf3, pod1, leaf1, host; and the same way back.
    assert used == [5, 5]
    assert shares(network, ("c1", "a1"), ("b1", "c2")) == [0.25, 0.25]


def test_what_a_flow_leaves_when_it_ends_is_shared_anew():
    """Both get a half until the short one ends at 2; then the long one has all, 2 more."""
    assert ends(two_leaves_thin(), ("a1", "b1", 1.0), ("a2", "b2", 3.0)) == [2.0, 4.0]


def test_a_flow_without_end_takes_its_share_for_ever():
    network = two_leaves_thin()
    flows = [("a1", "b1", INFINITE), ("a2", "b2", 3.0), ("a1", "a1", 0.0)]
    assert ends(network, *flows) == [INFINITE, 6.0, 0.0]
    assert links.makespan(network, between(network.topology, flows)) == pytest.approx(6.0)


def test_nothing_to_send_takes_no_time():
    network = two_leaves_thin()
    assert links.makespan(network, between(network.topology, [])) == 0.0
    assert links.makespan(network, between(network.topology, [("a1", "b1", 0.0)])) == 0.0


def test_islands_are_not_joined():
    network = fat_tree(fabrics.islands(), host_rate=1.0)
    with pytest.raises(ValueError, match="'a1' and 'e1': they stand on different islands"):
        shares(network, ("a1", "e1"))


@pytest.mark.parametrize("size", [-1.0, math.nan])
def test_a_size_below_nothing_is_refused(size: float):
    with pytest.raises(ValueError, match="size must be 0 or more"):
        ends(two_leaves_thin(), ("a1", "b1", size))


@pytest.mark.parametrize(
    "wrong",
    [{"host_rate": 0.0}, {"oversubscription": -1.0}],
    ids=lambda wrong: next(iter(wrong)),
)
def test_a_link_that_carries_nothing_is_refused(wrong: dict[str, object]):
    with pytest.raises(ValueError, match="more than 0"):
        fat_tree(fabrics.two_leaves(), **({"host_rate": 1.0} | wrong))


FABRICS = [fabrics.two_leaves, fabrics.two_pods, fabrics.lopsided]


@st.composite
def loads(draw: st.DrawFn) -> tuple[Network, Flows]:
    """Return a network and up to a dozen flows on it."""
    topology: Topology = draw(st.sampled_from(FABRICS))()
    network = fat_tree(
        topology,
        host_rate=draw(st.sampled_from([1.0, 3.0, 125e6])),
        oversubscription=draw(st.sampled_from([0.5, 1.0, 1.7, 4.0])),
    )
    host = st.sampled_from(topology.hosts)
    size = st.one_of(st.floats(1e-3, 1e3), st.sampled_from([0.0, 1.0]))
    flows = draw(st.lists(st.tuples(host, host, size), min_size=1, max_size=12))
    return network, between(topology, flows)


def used(network: Network, flows: Flows) -> np.ndarray:
    """Return what each link carries, without the one that pads paths."""
    rate = np.where(
        flows.source == flows.target, 0.0, links.rates(network, links.paths(network, flows))
    )
    carried = np.zeros(len(network.capacity))
    np.add.at(carried, links.paths(network, flows), rate[:, None])
    return carried[:-1]


@given(loads())
def test_no_link_carries_more_than_it_can(load: tuple[Network, Flows]):
    network, flows = load
    assert (used(network, flows) <= network.capacity[:-1] * (1 + 1e-9)).all()


@given(loads())
def test_every_flow_has_a_full_link_on_which_none_is_faster(load: tuple[Network, Flows]):
    """This is what max-min fair means: such a link is the flow's bottleneck."""
    network, flows = load
    rate, path = links.rates(network, links.paths(network, flows)), links.paths(network, flows)
    full = np.append(used(network, flows) >= network.capacity[:-1] * (1 - 1e-9), False)
    for f in np.flatnonzero(flows.source != flows.target):
        assert any(
            full[link] and rate[f] >= rate[(path == link).any(axis=1)].max() * (1 - 1e-9)
            for link in path[f]
        )


@given(loads(), st.randoms(use_true_random=False))
def test_the_order_of_the_flows_does_not_matter(load: tuple[Network, Flows], random):
    network, flows = load
    order = list(range(len(flows.size)))
    random.shuffle(order)
    mixed = Flows(flows.source[order], flows.target[order], flows.size[order])
    assert links.rates(network, links.paths(network, mixed)) == pytest.approx(
        links.rates(network, links.paths(network, flows))[order]
    )
    assert links.finish_times(network, mixed) == pytest.approx(
        links.finish_times(network, flows)[order]
    )


@given(loads())
def test_no_link_gets_its_bytes_through_faster_than_it_can(load: tuple[Network, Flows]):
    network, flows = load
    sent = np.zeros(len(network.capacity))
    np.add.at(sent, links.paths(network, flows), flows.size[:, None])
    bound = (sent / network.capacity)[:-1].max()
    assert links.makespan(network, flows) >= bound * (1 - 1e-9)


@given(loads())
def test_flows_of_one_size_end_as_the_slowest_of_them_allows(load: tuple[Network, Flows]):
    network, flows = load
    rate = links.rates(network, links.paths(network, flows))
    assume((flows.source != flows.target).any())
    equal = Flows(flows.source, flows.target, np.ones(len(rate)))
    first = (1 / rate[flows.source != flows.target]).min()
    last = links.makespan(network, equal)
    assert first * (1 - 1e-9) <= last <= (1 / rate).max() * (1 + 1e-9)


@given(loads())
def test_a_fabric_that_is_faster_throughout_is_faster_by_as_much(load: tuple[Network, Flows]):
    network, flows = load
    twice = Network(network.topology, network.capacity * 2)
    assert links.makespan(twice, flows) == pytest.approx(links.makespan(network, flows) / 2)


@given(loads())
def test_endless_flows_raise_no_warning(load: tuple[Network, Flows]):
    network, flows = load
    endless = Flows(flows.source, flows.target, np.where(flows.size > 1, np.inf, flows.size))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = links.finish_times(network, endless)
    assert (np.isinf(found) == np.isinf(endless.size)).all()
