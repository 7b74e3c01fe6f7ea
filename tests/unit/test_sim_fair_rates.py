"""Max-min fair sharing: textbook examples, and the definition itself on random fabrics."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hpc_sched.core.arrays import Reals
from hpc_sched.sim.network.fair_rates import fair_rates
from hpc_sched.sim.network.flows import Flows
from hpc_sched.sim.network.link_bytes import LinkLoad
from hpc_sched.sim.network.links import Network, fat_tree
from tests.unit import fabrics
from tests.unit.network_cases import loads, paths, two_leaves_thin, with_uplinks


def shares(network: Network, *pairs: tuple[str, str]) -> list[float]:
    found = fair_rates(network.capacity, Flows.on(paths(network, pairs)))
    return [round(float(rate), 12) for rate in found]


def test_two_flows_over_one_uplink_share_it_half_and_half():
    assert shares(two_leaves_thin(), ("a1", "b1"), ("a2", "b2")) == [0.5, 0.5]


def test_a_flow_that_is_held_up_elsewhere_leaves_its_share_to_the_others():
    """b1's link down takes three flows, a third each; the uplink's other flow has what is left."""
    pairs = [("b2", "b1"), ("b3", "b1"), ("a1", "b1"), ("a2", "b2")]
    third, rest = round(1 / 3, 12), round(2 / 3, 12)
    assert shares(two_leaves_thin(), *pairs) == [third, third, third, rest]


def test_both_directions_of_a_link_are_apart():
    assert shares(two_leaves_thin(), ("a1", "b1"), ("b1", "a1")) == [1.0, 1.0]


def test_flows_under_one_leaf_do_not_use_its_uplink():
    assert shares(two_leaves_thin(), ("b1", "b2"), ("b3", "a1")) == [1.0, 1.0]


def test_flows_on_one_host_use_no_link_at_all():
    network = fat_tree(fabrics.two_leaves(), host_rate=1.0)
    assert shares(network, ("a1", "a1"), ("a1", "a2")) == [math.inf, 1.0]


def test_each_level_is_oversubscribed_anew():
    """Two hosts below a leaf, four below a pod: 2 / 2 and 2 * 1 / 2 upward."""
    network = fat_tree(fabrics.two_pods(), host_rate=1.0, oversubscription=2.0)
    across = [("a1", "c1"), ("a2", "c2"), ("b1", "d1")]
    assert shares(network, *across[:2]) == [0.5, 0.5]
    assert shares(network, *across) == [round(1 / 3, 12)] * 3
    assert shares(network, ("a1", "b1"), ("a2", "b2")) == [0.5, 0.5]


def test_a_level_may_be_oversubscribed_alone():
    """A leaf has 2 / 2 upward, and a pod what its two leaves have."""
    network = fat_tree(fabrics.two_pods(), host_rate=1.0, oversubscription=(2.0, 1.0))
    assert shares(network, ("a1", "c1"), ("b1", "d1")) == [1.0, 1.0]
    assert shares(network, ("a1", "c1"), ("a2", "d1")) == [0.5, 0.5]


def test_a_short_branch_has_one_uplink_only():
    """Leaf3 hangs below the core itself, two levels up."""
    network = with_uplinks(fabrics.lopsided(), leaf3=0.25)
    pairs = [("c1", "a1"), ("b1", "c2")]
    used = (paths(network, pairs) != network.padding).sum(axis=1)
    # Host, leaf3, pod1, leaf1, host; and the same way back.
    assert used.tolist() == [5, 5]
    assert shares(network, *pairs) == [0.25, 0.25]


def test_islands_are_joined_by_the_uplinks_of_their_roots():
    network = fat_tree(fabrics.islands(), host_rate=1.0, oversubscription=(1.0, 4.0))
    topology = network.topology
    up, down = (network.uplinks + topology.switch_index(name) for name in ("west", "east"))
    (path,) = paths(network, [("a1", "e1")])
    assert {up, down + len(topology.switches)} <= set(path.tolist())
    # West has 4 / 1 / 4 upward, east, which is a leaf, 2 / 1.
    assert shares(network, ("a1", "e1"), ("b1", "e2")) == [0.5, 0.5]


def test_a_new_neighbour_can_make_another_flow_faster_by_slowing_a_third():
    """b1's link takes two flows, a half each. A third one over the uplink holds one of them up."""
    network = with_uplinks(fabrics.two_leaves(), leaf1=0.5, leaf2=1.0)
    before = [("a1", "b1"), ("b2", "b1")]
    assert shares(network, *before) == [0.5, 0.5]
    assert shares(network, *before, ("a2", "b3")) == [0.25, 0.75, 0.25]


def test_the_weight_of_a_row_is_a_number_of_flows():
    network = two_leaves_thin()
    once, thrice = paths(network, [("a1", "b1"), ("a2", "b2")])
    flows = Flows(np.stack([once, thrice]), np.array([1.0, 3.0]), np.full(2, np.inf))
    assert fair_rates(network.capacity, flows) == pytest.approx([0.25, 0.25])


def test_what_a_bounded_flow_does_not_take_is_left_to_the_others():
    network = two_leaves_thin()
    flows = Flows(paths(network, [("a1", "b1"), ("a2", "b2")]), np.ones(2), np.array([0.1, np.inf]))
    assert fair_rates(network.capacity, flows) == pytest.approx([0.1, 0.9])


@pytest.mark.parametrize(
    "wrong",
    [{"host_rate": 0.0}, {"oversubscription": -1.0}, {"oversubscription": (1.0, 0.0)}],
    ids=str,
)
def test_a_link_that_carries_nothing_is_refused(wrong: dict[str, object]):
    with pytest.raises(ValueError, match="more than 0"):
        fat_tree(fabrics.two_leaves(), **({"host_rate": 1.0} | wrong))


def test_a_latency_below_0_is_refused():
    with pytest.raises(ValueError, match="latencies must be 0 or more"):
        fat_tree(fabrics.two_leaves(), host_rate=1.0, uplink_latency=-1.0)


def carried(network: Network, flows: Flows) -> Reals:
    """Return what each link carries, without the one that pads paths."""
    rate = fair_rates(network.capacity, flows) * flows.weight
    found = np.zeros(len(network.capacity))
    np.add.at(found, flows.links, np.where(np.isfinite(rate), rate, 0.0)[:, None])
    return found[:-1]


@given(loads())
def test_no_link_carries_more_than_it_can(load: tuple[Network, Flows]):
    network, flows = load
    assert (carried(network, flows) <= network.capacity[:-1] * (1 + 1e-9)).all()


@given(loads())
def test_every_flow_has_a_full_link_on_which_none_is_faster_or_reaches_its_bound(
    load: tuple[Network, Flows],
):
    """This is what max-min fair means: such a link is the flow's bottleneck."""
    network, flows = load
    rate = fair_rates(network.capacity, flows)
    full = np.append(carried(network, flows) >= network.capacity[:-1] * (1 - 1e-9), False)
    for row, path in enumerate(flows.links):
        assert rate[row] == flows.bound[row] or any(
            full[link] and rate[row] >= rate[(flows.links == link).any(axis=1)].max() * (1 - 1e-9)
            for link in path
        )


@given(loads(), st.randoms(use_true_random=False))
def test_the_order_of_the_flows_does_not_matter(load: tuple[Network, Flows], random):
    network, flows = load
    order = list(range(len(flows.links)))
    random.shuffle(order)
    mixed = flows.rows(np.array(order))
    assert fair_rates(network.capacity, mixed) == pytest.approx(
        fair_rates(network.capacity, flows)[order]
    )


@given(loads())
def test_a_row_of_two_flows_is_two_rows(load: tuple[Network, Flows]):
    network, flows = load
    half = Flows(flows.links, flows.weight / 2, flows.bound)
    found = fair_rates(network.capacity, half + half)
    assert found[: len(flows.links)] == pytest.approx(fair_rates(network.capacity, flows))


@given(loads())
def test_the_load_of_links_is_what_their_flows_take(load: tuple[Network, Flows]):
    network, flows = load
    between = flows.rows(np.flatnonzero((flows.links != network.padding).any(axis=1)))
    found = LinkLoad.of(network.capacity, between)
    assert found.rate[:-1] == pytest.approx(carried(network, between))
    assert found.rate[-1] == found.flows[-1] == 0.0
    links = np.arange(len(network.capacity))
    alone = found.as_flows(links, network.padding, flows.links.shape[1])
    assert carried(network, alone) == pytest.approx(carried(network, between))
