"""The cluster of the network experiments, and Gupta2012 on it."""

import random
from collections import Counter
from dataclasses import replace

import pytest

from hpc_sched.core.classic.listing_1 import group_places
from hpc_sched.core.hopbyte import hop_bytes_of_counts
from hpc_sched.core.plan.planner import plan
from hpc_sched.experiments import gupta2012, shared_cluster
from hpc_sched.experiments.experiment_table import Table, percent
from hpc_sched.experiments.shared_cluster import NetworkSetup
from hpc_sched.sim.network.links import fat_tree

FEW = 3
# Uplinks so thin that they are full whatever the neighbours do.
THIN = replace(gupta2012.SETUP, oversubscription=32.0, iterations=4)


@pytest.fixture(scope="module")
def racks_and_types() -> tuple[Table, Table]:
    return gupta2012.tables(1, FEW, replace(gupta2012.SETUP, iterations=4))


def test_the_same_seed_gives_the_same_runs_and_another_seed_others():
    assert gupta2012.run(1, FEW, THIN) == gupta2012.run(1, FEW, THIN)
    assert gupta2012.run(1, FEW, THIN) != gupta2012.run(2, FEW, THIN)


def test_the_numbers_of_seed_one():
    """They change with the model only; review them after a change of it."""
    assert percent(max(gupta2012.run(1, setup=THIN))) == 7.7
    assert percent(gupta2012.homogeneity(0.1)) == 26.9


def test_the_vms_of_a_bunch_are_where_the_exact_plan_would_have_them():
    setup = NetworkSetup(0.3, hosts_a_leaf=16)
    topology = shared_cluster.fabric(setup)
    others = shared_cluster.neighbours(setup, topology, random.Random(7))
    problem = shared_cluster.group_problem(topology, others, 16, "group")
    places = group_places(problem)
    counts = Counter(topology.hosts[place] for place in places)
    free = dict(zip(topology.hosts, problem.capacity.tolist(), strict=True))
    assert all(count <= free[host] for host, count in counts.items())
    best = plan(topology=topology, capacity=free, members={}, count=16, group_id="group")
    assert hop_bytes_of_counts(topology=topology, counts=counts) == best.hop_bytes


def test_neighbours_take_their_part_of_the_hosts_and_no_host_twice():
    setup = NetworkSetup(0.3, leaves=2, hosts_a_leaf=10, taken=0.5, neighbour_vms=4)
    topology = shared_cluster.fabric(setup)
    others = shared_cluster.neighbours(setup, topology, random.Random(1))
    assert [len(job) for job in others] == [4, 4, 2]
    assert len({host for job in others for host in job}) == 10
    problem = shared_cluster.group_problem(topology, others, 10, "group")
    assert sorted(shared_cluster.random_places(problem, random.Random(1))) == sorted(
        group_places(problem)
    )
    with pytest.raises(ValueError, match="11 VMs, but 10 free hosts"):
        shared_cluster.group_problem(topology, others, 11, "group")


@pytest.mark.parametrize(("talking", "jobs"), [(0.0, 0), (1.0, 3)])
def test_neighbours_talk_as_often_as_they_are_said_to(talking: float, jobs: int):
    setup = NetworkSetup(
        0.3, leaves=2, hosts_a_leaf=15, taken=0.4, neighbour_vms=4, talking=talking
    )
    topology = shared_cluster.fabric(setup)
    others = shared_cluster.neighbours(setup, topology, random.Random(1))
    network = fat_tree(topology, host_rate=setup.host_rate)
    sent = shared_cluster.chatter(setup, network, others, random.Random(2))
    assert len(sent.links) == 4 * jobs


def test_tables_are_rows_of_plain_values_with_what_was_published(
    racks_and_types: tuple[Table, Table],
):
    racks, types = racks_and_types
    for table in (racks, types):
        assert {len(row) for row in table.rows} == {len(table.columns)}
        assert all(
            type(cell) in (str, int, float, type(None)) for row in table.rows for cell in row
        )
        assert any(setting.source.startswith("guessed") for setting in table.settings)
    assert (racks.rows[0][-1], types.rows[0][-1]) == (5.0, 20.0)


def test_no_gain_has_the_wrong_sign(racks_and_types: tuple[Table, Table]):
    """Where uplinks are not full, nothing is gained; nowhere is anything lost."""
    racks, types = racks_and_types
    for _, _, ratio, _, _, mean, most in racks.rows[1:]:
        assert most >= mean >= 0
        assert most == 0 or ratio >= 16
        assert mean > 0 or ratio < 32
    assert all(row[-1] > 0 for row in types.rows)


@pytest.mark.parametrize("talking", [0.3, 1.0])
@pytest.mark.parametrize("share", [0.1, 0.9])
def test_the_racks_of_the_paper_leave_nothing_to_gain_by_bandwidth(share: float, talking: float):
    """4 hosts of 1 Gb/s on two racks, with 10 Gb/s for each rack of 32."""
    setup = replace(gupta2012.SETUP, share=share, taken=0.8, talking=talking, iterations=4)
    assert setup.oversubscription == 3.2
    assert gupta2012.run(1, FEW, setup) == pytest.approx([0.0] * FEW)


def test_communication_has_its_share_of_the_time_in_one_rack():
    """Without others, and with uplinks so thin that two racks are slow."""
    thin = replace(THIN, taken=0.0, oversubscription=64.0)
    half, tenth = (gupta2012.run(1, 1, replace(thin, share=share))[0] for share in (0.5, 0.1))
    # From either: how many times longer communication takes on two racks.
    assert 1 / (1 - half) * 2 - 1 == pytest.approx((1 / (1 - tenth) - 0.9) * 10)
    assert half > tenth > 0


def test_a_slower_processor_costs_less_where_there_is_less_to_compute():
    assert gupta2012.homogeneity(0.0, 0.8) == pytest.approx(0.2)
    assert gupta2012.homogeneity(0.5, 0.8) < gupta2012.homogeneity(0.1, 0.8)
    assert gupta2012.homogeneity(1.0, 0.8) == pytest.approx(0.0)
    assert gupta2012.homogeneity(0.3, 1.0) == pytest.approx(0.0)
    assert gupta2012.homogeneity(0.0) == pytest.approx(1 - 2.13 / 3)


def test_the_share_that_explains_a_measured_gain_gives_this_gain():
    for saved in (0.05, 0.2, 0.25):
        assert gupta2012.homogeneity(gupta2012.share_of(saved)) == pytest.approx(saved)


def test_the_build_plan_alone_takes_two_slow_processors_and_with_types_none():
    topology = gupta2012.mixed_racks()
    problem = shared_cluster.group_problem(topology, (), 8, "group")
    mixed = Counter(topology.hosts[place] for place in gupta2012.planned(problem))
    one_type = gupta2012.planned(gupta2012.on_one_type(problem))
    assert mixed == dict.fromkeys(("a1", "a2", "a3", "a4"), 2)
    assert Counter(topology.hosts[place] for place in one_type) == dict.fromkeys(
        ("b1", "b2", "b3", "b4"), 2
    )
    types = Counter(topology.processor_of(host) for host in mixed.elements())
    assert types == {gupta2012.FAST: 6, gupta2012.SLOW: 2}


def test_both_placements_have_two_vms_a_host_on_two_racks_and_on_one():
    topology = shared_cluster.fabric(gupta2012.SETUP)
    problem = shared_cluster.group_problem(topology, (), 8, "group")
    apart = gupta2012.two_racks(problem, random.Random(1))
    together = gupta2012.planned(problem)
    for places, racks in ((apart, [4, 4]), (together, [8])):
        assert sorted(Counter(places).values()) == [2] * 4
        assert list(Counter(topology.leaf_index[list(places)].tolist()).values()) == racks


def test_a_group_that_does_not_fit_has_no_build_plan():
    topology = gupta2012.mixed_racks()
    problem = shared_cluster.group_problem(topology, (), 8, "group")
    with pytest.raises(ValueError, match="does not fit"):
        gupta2012.planned(replace(problem, awaiting=19))
