"""Jobs next to each other: worked examples, what is conserved, a replay of all messages."""

import math
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from hpc_sched.core.arrays import Reals
from hpc_sched.sim.network.link_bytes import LinkBytes, sums_over_steps
from hpc_sched.sim.network.links import Network, fat_tree
from hpc_sched.sim.network.messages.iteration import iteration
from hpc_sched.sim.network.neighbours import contention
from hpc_sched.sim.network.neighbours.shared_links import SharedLinks
from hpc_sched.sim.network.neighbours.traffic import Traffic
from hpc_sched.sim.network.replay import replay
from hpc_sched.topology import Topology
from tests.unit import fabrics
from tests.unit.jobs_out_of_phase import mean_periods, out_of_phase, period, settled, traffic
from tests.unit.network_cases import hosts, two_leaves_thin


def across(network: Network, number: int, part: float) -> Traffic:
    """Return a pair of ranks on both leaves that communicate for a part of their time, 1 s."""
    steps = iteration("ring", 2, 1.0, computation=(1 - part) / part)
    return traffic(network, steps, hosts(network.topology, (f"a{number}", f"b{number}")))


def test_two_jobs_that_always_communicate_get_half_a_link_each():
    network = two_leaves_thin()
    links = SharedLinks(network.capacity)
    for number in (1, 2):
        links.add(number, across(network, number, 1.0))
    assert links.settle() == (1, 2)
    assert [period(links, number) for number in (1, 2)] == pytest.approx([2.0, 2.0], rel=1e-3)
    member = links.members[1]
    # Half of its time is lost, by the other alone, on two hosts.
    assert (member.lost, member.caused) == pytest.approx((0.5, 1.0), rel=1e-3)


def test_a_job_meets_another_as_often_as_it_communicates():
    """With t = 1 + t / (t + c), the part in which the other is there too, c = 1 / 0.3 - 1."""
    network = two_leaves_thin()
    links = SharedLinks(network.capacity)
    for number in (1, 2):
        links.add(number, across(network, number, 0.3))
    links.settle()
    c = 1 / 0.3 - 1
    t = (2 - c + math.sqrt((2 - c) ** 2 + 4 * c)) / 2
    assert links.members[1].seconds == pytest.approx(t, rel=1e-3)


def test_one_that_leaves_gives_back_what_it_took():
    network = two_leaves_thin()
    links = SharedLinks(network.capacity)
    for number in (1, 2):
        links.add(number, across(network, number, 0.3))
    links.settle()
    links.remove(2)
    assert links.settle() == (1,)
    assert links.members[1].seconds == links.members[1].traffic.alone
    assert (links.members[1].lost, links.members[1].caused) == (0.0, 0.0)


def test_a_job_without_shared_links_is_not_looked_at_again():
    network = fat_tree(fabrics.two_pods(), host_rate=1.0)
    links = SharedLinks(network.capacity)
    for number, names in enumerate((("a1", "a2"), ("c1", "c2"))):
        places = hosts(network.topology, names)
        links.add(number, traffic(network, iteration("ring", 2, 1.0), places))
        assert links.settle() == (number,)
    links.remove(0)
    assert links.settle() == ()


PATTERNS = ("ring", "doubling", "alltoall", "halo2", "broadcast", "bt")


def fabric(ratio: float) -> Network:
    """Return the links of two pods of two leaves of eight hosts each."""
    tree = {
        f"p{pod}": {
            f"p{pod}l{leaf}": [f"h{pod}{leaf}{host}" for host in range(8)] for leaf in range(2)
        }
        for pod in range(2)
    }
    topology = Topology.from_tree({"core": tree})
    return fat_tree(topology, host_rate=1e9, oversubscription=(ratio, ratio / 2), host_latency=1e-6)


@st.composite
def neighbours(draw: st.DrawFn) -> tuple[Network, list[Traffic]]:
    """Return a network, and two to six jobs on random hosts, also on hosts of each other."""
    network = fabric(draw(st.sampled_from([2.0, 4.0, 8.0])))
    host = st.integers(0, 31)
    found = []
    for _ in range(draw(st.integers(2, 6))):
        ranks = draw(st.integers(2, 10))
        size = draw(st.sampled_from([1e6, 1e7]))
        steps = iteration(
            draw(st.sampled_from(PATTERNS)), ranks, size, computation=draw(st.floats(0, 0.05))
        )
        places = np.array(draw(st.lists(host, min_size=ranks, max_size=ranks)), dtype=np.int64)
        one = traffic(network, steps, places)
        if one.alone + one.computation > 0:
            found.append(one)
    assume(found)
    return network, found


def mean_rates(network: Network, jobs: Sequence[Traffic], links: SharedLinks) -> Reals:
    """Return what all jobs together take from each link, bytes/s."""
    rate = np.zeros(len(network.capacity))
    for number, job in enumerate(jobs):
        sent = job.sent
        rate[sent.links] += sent.times @ sent.bytes / max(period(links, number), 1e-300)
    return rate


@given(neighbours())
def test_no_link_carries_more_than_it_can_on_average(drawn: tuple[Network, list[Traffic]]):
    network, jobs = drawn
    links = settled(network, jobs, range(len(jobs)))
    assert (mean_rates(network, jobs, links) <= network.capacity * (1 + 1e-9)).all()


def test_no_link_carries_more_than_it_can_where_the_rounds_end_too_early(monkeypatch):
    monkeypatch.setattr(contention, "MOST_ROUNDS", 1)
    network = two_leaves_thin()
    places = hosts(network.topology, ("a1", "b1"))
    jobs = [traffic(network, iteration("ring", 2, 1.0), places) for _ in range(9)]
    links = settled(network, jobs, range(9))
    assert (mean_rates(network, jobs, links) <= network.capacity * (1 + 1e-9)).all()


@pytest.mark.parametrize("share", [0.5, 0.9])
@pytest.mark.parametrize("pattern", ["ring", "halo2"])
def test_jobs_that_crowd_a_link_settle_and_do_not_swing(monkeypatch, pattern: str, share: float):
    """16 jobs of 4 ranks on random hosts, at 8 : 1: another round changes nothing."""
    tree = {f"l{leaf}": [f"h{leaf}{n:02}" for n in range(16)] for leaf in range(4)}
    network = fat_tree(Topology.from_tree({"core": tree}), host_rate=1.0, oversubscription=8.0)
    places = np.random.default_rng(1).permutation(64).reshape(16, 4)
    steps = iteration(pattern, 4, 1.0, computation=(1 - share) / share)
    jobs = [traffic(network, steps, each) for each in places]
    found = []
    for rounds in (contention.MOST_ROUNDS, contention.MOST_ROUNDS + 1):
        monkeypatch.setattr(contention, "MOST_ROUNDS", rounds)
        links = settled(network, jobs, range(len(jobs)))
        found.append([period(links, number) for number in range(len(jobs))])
    assert found[1] == pytest.approx(found[0], rel=1e-3)


def test_jobs_on_hosts_that_many_share_come_near_the_fixed_point(monkeypatch):
    """64 jobs of 8 ranks on 64 hosts, at 8 : 1: the mean is within a tenth of ten times the rounds.

    It is 6 %; where nothing bounds the part of the way, 11 %.
    """
    tree = {f"l{leaf}": [f"h{leaf}{n:02}" for n in range(16)] for leaf in range(4)}
    network = fat_tree(Topology.from_tree({"core": tree}), host_rate=1.0, oversubscription=8.0)
    draw = np.random.default_rng(1)
    jobs = [
        traffic(network, iteration(pattern, 8, 1.0, computation=1.0), draw.permutation(64)[:8])
        for pattern in ("ring", "halo2", "alltoall", "doubling") * 16
    ]
    found = []
    for rounds in (contention.MOST_ROUNDS, 10 * contention.MOST_ROUNDS):
        monkeypatch.setattr(contention, "MOST_ROUNDS", rounds)
        links = settled(network, jobs, range(len(jobs)))
        found.append(np.array([period(links, number) for number in range(len(jobs))]))
    assert np.abs(found[0] / found[1] - 1).mean() < 0.1


def test_sums_over_steps_do_not_depend_on_the_number_of_threads():
    """As a product of matrices of this size does."""
    draw = np.random.default_rng(1)
    times, of_steps = draw.random(300), draw.random((300, 700))
    expected = np.zeros(700)
    for number, row in zip(times.tolist(), of_steps, strict=True):
        expected += number * row
    assert sums_over_steps(times, of_steps).tolist() == expected.tolist()


def test_groups_of_steps_send_as_much_as_the_steps():
    """299 steps of which some are done twice, in 16 groups."""
    draw = np.random.default_rng(1)
    times, sent = draw.integers(1, 3, 299).astype(np.float64), draw.random((299, 7))
    steps = LinkBytes(times, draw.random(299), np.arange(7), sent, sent)
    groups = steps.in_groups(16)
    assert (len(groups.times), groups.times.sum()) == (16, times.sum())
    assert groups.times @ groups.latency == pytest.approx(times @ steps.latency)
    assert groups.times @ groups.bytes == pytest.approx(times @ sent)


@given(neighbours())
def test_what_jobs_lose_is_caused_by_jobs(drawn: tuple[Network, list[Traffic]]):
    network, jobs = drawn
    members = settled(network, jobs, range(len(jobs))).members.values()
    lost = sum(member.lost * member.traffic.hosts for member in members)
    assert sum(member.caused for member in members) == pytest.approx(lost, rel=1e-3, abs=1e-6)


@given(neighbours())
def test_no_job_is_faster_than_alone(drawn: tuple[Network, list[Traffic]]):
    network, jobs = drawn
    links = settled(network, jobs, range(len(jobs)))
    for member in links.members.values():
        assert member.seconds >= member.traffic.alone * (1 - 1e-9)


@given(neighbours(), st.randoms(use_true_random=False))
def test_neither_order_nor_history_matters(drawn: tuple[Network, list[Traffic]], random):
    network, jobs = drawn
    every = list(range(len(jobs)))
    expected = settled(network, jobs, every)
    random.shuffle(every)
    links = settled(network, jobs, every)
    gone = every[0]
    links.remove(gone)
    links.settle()
    links.add(gone, jobs[gone])
    links.settle()
    for number in every:
        assert period(links, number) == pytest.approx(period(expected, number), rel=1e-3)


def test_a_job_that_has_joined_two_groups_leaves_no_trace_behind():
    """Two groups, each below a pod, need different numbers of rounds."""
    network = fabric(8.0)
    pairs = [(0, 8), (1, 9), (2, 10), (3, 11), (16, 24), (17, 25)]
    jobs = [
        traffic(network, iteration("ring", 2, 1e7, computation=part), np.array(places))
        for places, part in zip(pairs, (0.0, 0.0, 0.005, 0.01, 0.02, 0.03), strict=True)
    ]
    jobs.append(traffic(network, iteration("ring", 4, 1e7), np.array([4, 12, 20, 28])))
    links = settled(network, jobs, range(7))
    links.remove(6)
    links.settle()
    for group in (range(4), range(4, 6)):
        for number, member in settled(network, jobs, group).members.items():
            found = links.members[number]
            of_job = found.seconds, found.lost, found.caused
            assert of_job == (member.seconds, member.lost, member.caused)


def test_a_new_neighbour_can_make_another_job_faster_by_slowing_a_third():
    """The third shares an uplink with the second, which shares b1 with the first."""
    topology = fabrics.two_leaves()
    network = fat_tree(topology, host_rate=1.0, oversubscription=(4.0,))
    first = traffic(network, iteration("ring", 2, 1.0), hosts(topology, ("b1", "b2")))
    second = traffic(network, iteration("ring", 2, 1.0), hosts(topology, ("a1", "b1")))
    third = traffic(network, iteration("ring", 2, 1.0), hosts(topology, ("a2", "b3")))
    before = settled(network, [first, second], range(2))
    after = settled(network, [first, second, third], range(3))
    assert period(after, 1) > period(before, 1)
    assert period(after, 0) < period(before, 0)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("ratio", [4.0, 8.0])
def test_four_jobs_out_of_phase_are_as_fast_as_in_a_replay(ratio: float, seed: int):
    """Each within 10 % at 4 : 1; at 8 : 1 within 15 %, and all four together within 5 %."""
    network, jobs, ranks = out_of_phase(seed, ratio)
    links = settled(network, jobs, range(4))
    found = [period(links, number) for number in range(4)]
    expected = mean_periods(replay(network, ranks), ranks)
    assert found == pytest.approx(expected, rel=0.1 if ratio == 4.0 else 0.15)
    assert sum(found) == pytest.approx(sum(expected), rel=0.05)
