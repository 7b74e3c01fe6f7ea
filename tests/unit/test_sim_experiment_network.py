"""What a placement is worth in seconds: paired draws, and runtimes that follow from them.

The tree of the small study; x is a host with a VM of another job::

    core ─┬─ pod1 ─┬─ leaf1-1: a b c d
          │        └─ leaf1-2: e f g h
          └─ pod2 ─┬─ leaf2-1: i j k l
                   └─ leaf2-2: m n o p
"""

from dataclasses import replace

import numpy as np
import pytest

from hpc_sched import exceptions
from hpc_sched.experiments.network.compared_placements import (
    ALONG,
    PLACEMENTS,
    PLAN,
    RANDOM,
    STOCK,
    placements,
)
from hpc_sched.experiments.network.drawn_cluster import (
    VOLUME,
    DrawnCluster,
    NetworkStudy,
    drawn_cluster,
    endless_flows,
)
from hpc_sched.experiments.network.findings import findings
from hpc_sched.experiments.network.job_seconds import (
    ENDLESS,
    PART_TIME,
    LoadedNetwork,
    mean_load,
    placed_job,
    slowdown_of_others,
    steps_of,
)
from hpc_sched.experiments.network.paired_runs import Case, PairedRuns, paired_runs
from hpc_sched.experiments.network.rates_left import rates_left
from hpc_sched.sim.network.placed_steps import PlacedSteps

SMALL = NetworkStudy(
    runs=2,
    ratios=(1.0, 4.0),
    ranks=(4, 6),
    patterns=("ring", "halo2", "alltoall"),
    pods=2,
    leaves=2,
    hosts=4,
    host_latency=0.0,
    ring=4,
)


@pytest.fixture(scope="module")
def runs() -> PairedRuns:
    return paired_runs(SMALL)


def small_cluster(*rings: list[int]) -> DrawnCluster:
    return DrawnCluster(1, SMALL.topology(), tuple(np.array(ring) for ring in rings))


def test_the_same_seed_draws_the_same_other_jobs_for_all_placements():
    study = NetworkStudy()
    topology = study.topology()
    once, again, other = (drawn_cluster(study, topology, seed) for seed in (3, 3, 4))
    assert [ring.tolist() for ring in once.rings] == [ring.tolist() for ring in again.rings]
    assert [ring.tolist() for ring in once.rings] != [ring.tolist() for ring in other.rings]
    assert [len(ring) for ring in once.rings] == [*[8] * 12, 6]  # 40 % of 256 hosts
    for hosts in placements(once, 16).values():
        assert once.free[hosts].all()
        assert len(set(hosts.tolist())) == 16


def test_ranks_in_fabric_order_are_on_the_same_random_hosts():
    drawn = drawn_cluster(NetworkStudy(), NetworkStudy().topology(), 1)
    found = placements(drawn, 64)
    assert tuple(found) == PLACEMENTS
    assert sorted(found[RANDOM].tolist()) == found[ALONG].tolist()
    assert found[RANDOM].tolist() != found[ALONG].tolist()
    assert found[STOCK].tolist() == np.flatnonzero(drawn.free)[:64].tolist()  # by name


def test_at_one_to_one_all_placements_take_the_same_time(runs: PairedRuns):
    for case, seconds in runs.runtime.items():
        if case.ratio == 1.0:
            assert seconds == pytest.approx(runs.runtime[case._replace(placement=RANDOM)], rel=5e-3)


def test_a_job_under_one_leaf_takes_the_time_of_its_hosts_links():
    # Other jobs are on e to h: they share no link with a to d.
    drawn = small_cluster([4, 8, 5, 9])
    loaded = LoadedNetwork.of(SMALL, drawn, 4.0)
    placed = placed_job(SMALL.network(drawn.topology, 4.0), "ring", np.arange(4))
    for others in loaded.others.values():
        assert placed.seconds(loaded.capacity, others) == pytest.approx(VOLUME / SMALL.host_rate)


def test_two_leaves_at_four_to_one_wait_for_one_host_rate_that_neighbours_share():
    # The leaves' uplinks have the rate of one host. The ring a e b f sends two messages up each
    # leaf at a time, next to two endless flows of c i d j: each gets a quarter.
    drawn = small_cluster([2, 8, 3, 9])
    loaded = LoadedNetwork.of(SMALL, drawn, 4.0)
    network = SMALL.network(drawn.topology, 4.0)
    placed = placed_job(network, "ring", np.array([0, 4, 1, 5]))
    seconds = placed.seconds(loaded.capacity, loaded.others[ENDLESS])
    assert seconds == pytest.approx(4 * VOLUME / SMALL.host_rate)
    # In fabric order, a b e f, one message leaves each leaf: a third.
    placed = placed_job(network, "ring", np.array([0, 1, 4, 5]))
    seconds = placed.seconds(loaded.capacity, loaded.others[ENDLESS])
    assert seconds == pytest.approx(3 * VOLUME / SMALL.host_rate)


def test_other_jobs_that_compute_take_less_of_the_links():
    # Alone, c i d j sends two messages through each uplink: twice the time of its hosts' links.
    drawn = small_cluster([2, 8, 3, 9])
    network = SMALL.network(drawn.topology, 4.0)
    seconds = 2 * VOLUME / SMALL.host_rate
    load = mean_load(SMALL, drawn, network)
    period = SMALL.computation + seconds
    uplink = network.uplinks + drawn.topology.leaf_index[0]
    assert load.rate[uplink] == pytest.approx(2 * VOLUME / period)
    assert load.flows[uplink] == pytest.approx(2 * seconds / period)
    loaded = LoadedNetwork.of(SMALL, drawn, 4.0)
    placed = placed_job(network, "ring", np.array([0, 4, 1, 5]))
    part, endless = (
        placed.seconds(loaded.capacity, loaded.others[kind]) for kind in (PART_TIME, ENDLESS)
    )
    assert seconds < part < endless


@pytest.mark.parametrize("pattern", ["ring", "bt", "halo3", "alltoall"])
def test_links_that_are_never_full_may_be_left_out(pattern: str):
    study = NetworkStudy()
    drawn = drawn_cluster(study, study.topology(), 1)
    for ratio in (1.0, 8.0):
        network = study.network(drawn.topology, ratio)
        loaded = LoadedNetwork.of(study, drawn, ratio)
        hosts = placements(drawn, 16)[RANDOM]
        whole = PlacedSteps.of(network, steps_of(pattern, 16), hosts)
        assert placed_job(network, pattern, hosts).seconds(
            loaded.capacity, loaded.others[ENDLESS]
        ) == pytest.approx(
            whole.seconds(network.capacity, endless_flows(network, drawn.rings)), rel=1e-9
        )


def test_others_lose_nothing_by_a_job_under_a_leaf_of_its_own():
    drawn = small_cluster([6, 12, 7, 13])
    network = SMALL.network(drawn.topology, 4.0)
    jobs = {
        name: PlacedSteps.of(network, steps_of("ring", 4), np.array(hosts))
        for name, hosts in {"one leaf": [0, 1, 2, 3], "two": [4, 14, 5, 15]}.items()
    }
    found = slowdown_of_others(SMALL, drawn, network, jobs)
    assert found["one leaf"] == pytest.approx(1.0)
    assert found["two"] > 1.1
    # Each job is alone with the others, whatever came before it.
    again = slowdown_of_others(SMALL, drawn, network, {"two": jobs["two"]})
    assert found["two"] == pytest.approx(again["two"])


def test_rates_left_are_those_of_flows_next_to_messages_of_the_job():
    """Two flows of a ring leave leaf1-2, whose uplink has one host's rate, and two come: 1/2 each.

    The first job stays under leaf1-1. The second adds one flow to each way, and a message under
    leaf1-1 that ends early: 1/3. The third adds two to each: 1/4.
    """
    drawn = small_cluster([6, 12, 7, 13])
    network = SMALL.network(drawn.topology, 4.0)
    jobs = {
        hosts: PlacedSteps.of(network, steps_of("ring", 4), np.array(hosts))
        for hosts in ((0, 1, 2, 3), (0, 1, 4, 14), (4, 14, 5, 15))
    }
    assert list(rates_left(drawn, network, jobs).values()) == pytest.approx([1, 2 / 3, 1 / 2])


def test_a_value_is_against_random_hosts_of_the_same_seed(runs: PairedRuns):
    case = Case(PART_TIME, 6, "ring", 4.0, PLAN)
    before = runs.runtime[case._replace(placement=RANDOM)]
    pairs = [after / first for after, first in zip(runs.runtime[case], before, strict=True)]
    found = runs.against(case)
    assert found.mean == pytest.approx(sum(pairs) / 2)
    assert found.half_width is None  # of two runs
    assert len(runs.leaves[6, PLAN]) == 2


def test_findings_follow_from_the_numbers():
    study = replace(SMALL, runs=10, ratios=(8.0,), ranks=(16,), patterns=("ring", "alltoall"))
    values = {PLAN: {"ring": 0.8, "alltoall": 1.2}, ALONG: {"ring": 0.9, "alltoall": 1.0}}
    runtime = {
        Case(kind, 16, pattern, 8.0, name): [values.get(name, {}).get(pattern, 1.0)] * 10
        for kind in (ENDLESS, PART_TIME)
        for pattern in study.patterns
        for name in PLACEMENTS
    }
    text = "\n".join(findings(PairedRuns(study, runtime, {}, {}, {})))
    assert "gains on random hosts for 16 ranks (ring -20.0 %)." in text
    assert "slower than random hosts for 16 ranks (alltoall +20.0 %):" in text
    assert "take 0.90 to 1.00 of the runtime" in text
    assert (
        "faster than random hosts with ranks in fabric order in 1 of 2 cases, and slower in 1"
        in (text)
    )
    assert "At 1:1" not in text


def test_a_job_that_does_not_fit_is_an_error_with_counts():
    drawn = drawn_cluster(NetworkStudy(), NetworkStudy().topology(), 1)
    with pytest.raises(exceptions.SimulationError, match="160 ranks, but 154 free hosts"):
        placements(drawn, 160)
