"""Every message of a job: worked examples, and how the three levels of detail agree."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hpc_sched.core.traffic.patterns import PATTERNS
from hpc_sched.sim.network.flows import Flows, no_flows
from hpc_sched.sim.network.link_bytes import LinkBytes, LinkLoad
from hpc_sched.sim.network.links import Network, fat_tree
from hpc_sched.sim.network.messages.iteration import computation, iteration
from hpc_sched.sim.network.messages.program import (
    Computation,
    Operation,
    Program,
    Receive,
    Send,
    Wait,
    programs,
    steps,
)
from hpc_sched.sim.network.placed_steps import PlacedSteps
from hpc_sched.sim.network.replay import replay
from hpc_sched.topology import Topology
from tests.unit import fabrics
from tests.unit.network_cases import hosts, paths, two_leaves_thin


def ends(network: Network, *ranks: tuple[str, tuple[Operation, ...]]) -> list[float]:
    """Return when ranks end, by their hosts and operations."""
    found = replay(network, [Program(network.topology.index_of(host), ops) for host, ops in ranks])
    return [round(float(end), 12) for end in found]


def test_a_message_takes_the_latency_of_its_path_and_then_flows():
    network = fat_tree(fabrics.two_leaves(), host_rate=2.0, host_latency=0.25, uplink_latency=1.0)
    near, far = (
        ends(network, (a, (Send(1, 0, 4.0), Wait())), (b, (Receive(0, 0), Wait())))
        for a, b in (("a1", "a2"), ("a1", "b1"))
    )
    assert near == [2.5, 2.5]  # 0.25 + 0.25 + 4 / 2
    assert far == [4.5, 4.5]  # and two uplinks


def test_a_message_begins_when_both_its_ends_have_posted_it():
    late = (Computation(3.0), Receive(0, 0), Wait())
    found = ends(two_leaves_thin(), ("a1", (Send(1, 0, 1.0), Wait())), ("b1", late))
    assert found == [4.0, 4.0]


def test_a_rank_computes_while_its_messages_flow():
    sender = (Send(1, 0, 2.0), Computation(5.0), Wait())
    found = ends(two_leaves_thin(), ("a1", sender), ("b1", (Receive(0, 0), Wait())))
    assert found == [5.0, 2.0]


def test_a_message_within_a_host_takes_no_time():
    network = fat_tree(fabrics.two_leaves(), host_rate=1.0, host_latency=1.0)
    found = ends(
        network, ("a1", (Send(1, 0, 9.0), Wait())), ("a1", (Receive(0, 0), Wait(), Computation(1)))
    )
    assert found == [0.0, 1.0]


def test_messages_with_one_tag_come_in_the_order_in_which_they_were_sent():
    sender = (Send(1, 7, 1.0), Wait(), Send(1, 7, 3.0), Wait())
    receiver = (Receive(0, 7), Wait(), Receive(0, 7), Wait())
    assert ends(two_leaves_thin(), ("a1", sender), ("b1", receiver)) == [4.0, 4.0]


def test_two_jobs_share_the_uplink_while_both_send():
    """Each gets a half until the first has its byte at 2; the second's third byte comes at 4."""
    found = ends(
        two_leaves_thin(),
        ("a1", (Send(1, 0, 1.0), Wait())),
        ("b1", (Receive(0, 0), Wait())),
        ("a2", (Send(3, 0, 3.0), Wait())),
        ("b2", (Receive(2, 0), Wait())),
    )
    assert found == [2.0, 2.0, 4.0, 4.0]


def test_a_flow_of_others_takes_its_share():
    network = two_leaves_thin()
    ranks = [
        Program(network.topology.index_of("a1"), (Send(1, 0, 1.0), Wait())),
        Program(network.topology.index_of("b1"), (Receive(0, 0), Wait())),
    ]
    others = Flows.on(paths(network, [("a2", "b2")]))
    assert replay(network, ranks, others).tolist() == [2.0, 2.0]


@pytest.mark.parametrize(
    ("first", "second", "what"),
    [
        ((Send(1, 3, 1.0),), (), "rank 0 sends a message of tag 3 to rank 1 that is not received"),
        ((Receive(1, 3),), (), "rank 0 receives a message of tag 3 from rank 1 that is not sent"),
        (
            (Receive(1, 0), Wait(), Send(1, 1, 1.0)),
            (Receive(0, 1), Wait(), Send(0, 0, 1.0)),
            "rank 0 waits for ever",
        ),
    ],
    ids=["never received", "never sent", "each waits for the other"],
)
def test_messages_that_never_come_are_an_error(first, second, what: str):
    with pytest.raises(ValueError, match=what):
        ends(two_leaves_thin(), ("a1", first), ("b1", second))


def test_programs_become_steps_with_equal_ones_counted():
    found = steps(programs(iteration("ring", 4, 60.0, computation=2.0), np.arange(4), times=2))
    assert [(each.times, each.computation, len(each.sender)) for each in found] == [
        (1, 2.0, 4),
        (5, 0.0, 4),
        (1, 2.0, 4),
        (5, 0.0, 4),
        (1, 0.0, 0),
    ]


def on_hosts(topology: Topology, ranks: int, names: str) -> np.ndarray:
    chosen = names.split() if names else topology.hosts
    return hosts(topology, [chosen[rank % len(chosen)] for rank in range(ranks)])


@given(
    st.sampled_from([name for name in PATTERNS if name != "none"]),
    st.integers(2, 16),
)
def test_alone_under_one_leaf_an_iteration_takes_what_is_stated(pattern, ranks):
    """Computation, latency of two links for each step, and the volume by the host's rate."""
    topology = Topology.from_tree({"leaf": [f"h{number:02}" for number in range(ranks)]})
    network = fat_tree(topology, host_rate=10.0, host_latency=0.01)
    every = iteration(pattern, ranks, 50.0, computation=7.0)
    waits = sum(each.times for each in every if len(each.sender))
    found = replay(network, programs(every, np.arange(ranks))).max()
    if waits:
        assert found <= 7.0 + 0.02 * waits + 5.0 + 1e-9
    with_barriers = PlacedSteps.of(network, every, np.arange(ranks))
    none = no_flows(with_barriers.links.shape[1])
    assert with_barriers.seconds(network.capacity, none) == pytest.approx(
        0.02 * waits + (5.0 if waits else 0.0)
    )


@settings(max_examples=60)
@given(
    st.sampled_from([name for name in PATTERNS if name not in ("none", "bt", "broadcast")]),
    st.integers(2, 12),
    st.sampled_from(["", "a1 c1", "a1 b1 c1 d1", "a1 a2 c2"]),
    st.sampled_from([1.0, 2.0, 8.0]),
)
def test_a_barrier_after_each_step_makes_nothing_faster(pattern, ranks, names, ratio):
    """A step cannot end before its slowest link; ranks without a barrier are never later by much.

    Only never later by much: who is early can be in the way of who is late, most of all in doubling
    between ranks that are no power of two, of which some have no message in the first step.
    """
    topology = fabrics.two_pods()
    network = fat_tree(topology, host_rate=1.0, oversubscription=(ratio, 1.0), host_latency=1e-3)
    every = iteration(pattern, ranks, 5.0, computation=1.0)
    places = on_hosts(topology, ranks, names)
    exact = float(replay(network, programs(every, places)).max())
    placed = PlacedSteps.of(network, every, places)
    none = no_flows(placed.links.shape[1])
    with_barriers = computation(every) + placed.seconds(network.capacity, none)
    load = LinkLoad.of(network.capacity, none)
    by_links = computation(every) + LinkBytes.of(network, placed).seconds(network.capacity, load)
    assert by_links <= with_barriers * (1 + 1e-9)
    latest = 1.25 if pattern == "doubling" else 1.2
    assert exact <= with_barriers * latest + 1e-9


def test_at_one_to_one_no_placement_changes_anything():
    topology = fabrics.two_pods()
    network = fat_tree(topology, host_rate=1.0)
    for pattern in ("ring", "doubling", "alltoall", "halo2"):
        every = iteration(pattern, 4, 5.0, computation=1.0)
        found = {
            round(float(replay(network, programs(every, hosts(topology, names))).max()), 9)
            for names in (("a1", "a2", "b1", "b2"), ("a1", "c1", "b1", "d1"))
        }
        assert found == {6.0}


def test_messages_within_one_host_take_no_time_at_each_level_of_detail():
    network = fat_tree(fabrics.two_leaves(), host_rate=1.0)
    steps, places = iteration("ring", 3, 6.0), np.zeros(3, dtype=np.int64)
    placed = PlacedSteps.of(network, steps, places)
    none = no_flows(network.longest)
    by_links = LinkBytes.of(network, placed)
    assert replay(network, programs(steps, places)).tolist() == [0.0, 0.0, 0.0]
    assert placed.seconds(network.capacity, none) == 0.0
    assert by_links.seconds(network.capacity, LinkLoad.of(network.capacity, none)) == 0.0
