"""The trace simulation of Gupta2013: Table II, and what the figures are made of."""

from bisect import bisect_right
from dataclasses import replace

import pytest

from hpc_sched.core.sharing.cache_interference import Limits
from hpc_sched.experiments import gupta2013, gupta2013_tables
from hpc_sched.experiments.gupta2013 import (
    GUESSED,
    IN_LIMITS,
    LEAST_FREE,
    MDOBP,
    MOST_FREE,
    PlacementRule,
    TraceSetup,
    curve,
)
from hpc_sched.experiments.gupta2013_counts import Study, counts
from hpc_sched.sim.cluster.cluster import MEMORY_MB, VCPUS
from hpc_sched.sim.cluster.cluster_state import ClusterState
from hpc_sched.sim.jobs import distributions, swf
from hpc_sched.sim.jobs.job import Job
from hpc_sched.sim.jobs.swf import TraceRow
from hpc_sched.sim.policies import host_order, plugin
from hpc_sched.sim.simulation_input import SimulationInput
from tests import sample_data

TRACE = "swf/METACENTRUM-2009-2.swf.gz"
FEW = 150
SMALL = TraceSetup(nodes=40)
GB = 1024 * 1024  # in KB


def row(line: int, memory_gb: float, runtime: float, processors: int = 1) -> TraceRow:
    memory = round(memory_gb * GB * processors)
    return TraceRow(line, 0.0, runtime, processors, None, memory, None, None)


@pytest.fixture(scope="module")
def first_jobs() -> tuple[TraceRow, ...]:
    return tuple(swf.read(sample_data.path(TRACE), limit=FEW))


def test_table_2_has_the_published_33_of_103_656_jobs():
    table = gupta2013_tables.memory_table(sample_data.path(TRACE))
    assert table.rows[0] == ("all jobs", 103_656, 103_656, 1500)
    assert table.rows[-1] == ("above 8 GB", 33, 33, 0)
    # Numbers that are not known to be published are not listed as published.
    assert {line[1] for line in table.rows[1:-1]} == {None}
    ours = [line[2] for line in table.rows]
    assert ours == sorted(ours, reverse=True)


def test_the_same_seed_gives_the_same_curve_and_another_seed_another_one(first_jobs):
    placement = PlacementRule(IN_LIMITS, 60.0, 0.2)
    once = curve(first_jobs, placement, 1, SMALL)
    assert once == curve(first_jobs, placement, 1, SMALL)
    assert once != curve(first_jobs, placement, 2, SMALL)
    assert list(once) == sorted(once)
    assert len(once) == FEW  # none is refused


def test_a_figure_of_few_jobs_counts_at_the_moment_of_the_defaults_published_share(first_jobs):
    found = counts(Study((MDOBP,), SMALL), first_jobs, 1)
    assert {default for default, _ in found} == {LEAST_FREE, MOST_FREE}
    for count in found.values():
        assert count.before == 80  # 801 of 1,500
        assert 0 < count.after <= FEW


def test_memory_holds_up_none_of_the_first_801_jobs_of_the_trace():
    """The note on Figure 9a: no placement can complete them sooner."""
    rows = tuple(swf.read(sample_data.path(TRACE), limit=gupta2013.JOBS))
    free = curve(rows, LEAST_FREE, 1, replace(GUESSED, memory="none"), enough=801)
    for placement in (LEAST_FREE, MDOBP):
        found = curve(rows, placement, 1, enough=801)
        assert found[800] == free[800]
        assert max(bisect_right(free, end) - bisect_right(found, end) for end in free) <= 5


def test_a_curve_that_is_cut_short_begins_like_the_whole_one(first_jobs):
    whole = curve(first_jobs, MDOBP, 1, SMALL)
    moment = whole[39]
    assert curve(first_jobs, MDOBP, 1, SMALL, until=moment) == whole[: bisect_right(whole, moment)]
    assert curve(first_jobs, MDOBP, 1, SMALL, enough=40)[39] == moment


def test_mdobp_keeps_large_nodes_for_large_jobs_which_the_default_does_not():
    """One node of 2 GB, one of 8 GB: small jobs that stay, then large ones of a second.

    ::

        0.4 0.4 0.4 0.4     2.4 2.4 2.4
        2 GB, 4 cores       8 GB, 4 cores
    """
    rows = [row(i, 0.4, 1000.0) for i in range(4)] + [row(i, 2.4, 1.0) for i in range(4, 7)]
    setting = TraceSetup(nodes=2, memories=(2, 8))
    done = {
        each.name: [bisect_right(curve(rows, each, seed, setting), 1.0) for seed in range(8)]
        for each in (LEAST_FREE, MOST_FREE, MDOBP)
    }
    assert done[MDOBP.name] == [3] * 8
    # All small jobs on the node that comes first by name, or two on each node.
    assert set(done[LEAST_FREE.name]) == {0, 3}
    assert done[MOST_FREE.name] == [2] * 8


def test_limits_keep_sync_jobs_apart_and_shorter_runtimes_complete_more():
    rows = [row(i, 0.1, 100.0, processors=2) for i in range(8)]
    setting = TraceSetup(nodes=4, scores=distributions.read("constant:20"))
    apart = PlacementRule(IN_LIMITS, 40.0, 0.0)
    assert curve(rows, MDOBP, 1, setting) == [100.0] * 8
    # Two VMs a node, so that half of the jobs wait.
    assert curve(rows, apart, 1, setting) == [100.0] * 4 + [200.0] * 4
    shorter = curve(rows, replace(apart, less=0.2), 1, setting)
    assert shorter == [80.0] * 4 + [160.0] * 4
    # Without a sync job alpha alone holds.
    assert curve(rows, apart, 1, replace(setting, sync="none")) == [100.0] * 8


def test_the_rule_in_limits_is_the_policy_of_all_our_filters_where_one_switch_has_all(first_jobs):
    rows, setting = first_jobs[:80], replace(SMALL, nodes=20)
    ours = curve(rows, PlacementRule(IN_LIMITS, 60.0), 1, setting)
    filters = curve(rows, PlacementRule(plugin.CLASSES, 60.0), 1, setting)
    assert ours == filters


def test_memories_are_dealt_to_as_many_nodes_each():
    memory = gupta2013.cluster(GUESSED, 1).total[:, MEMORY_MB].tolist()
    assert {size: memory.count(size) for size in memory} == dict.fromkeys(
        (2048, 4096, 8192, 16384), 64
    )
    assert memory != gupta2013.cluster(GUESSED, 2).total[:, MEMORY_MB].tolist()
    assert gupta2013.cluster(GUESSED, 1).total[:, VCPUS].sum() == 1024


def test_jobs_that_do_not_fit_at_once_are_lost_without_a_queue():
    rows = [row(i, 0.1, 100.0, processors=3) for i in range(3)]
    setting = TraceSetup(nodes=2, queue="none")
    assert curve(rows, LEAST_FREE, 1, setting) == [100.0, 100.0]


def test_arrivals_at_full_load_offer_as_much_as_the_cores_can_do():
    rows = [replace(row(i, 0.1, 100.0), submit=10.0 * i) for i in range(11)]
    setting = TraceSetup(nodes=1, arrivals="full load")
    assert gupta2013.offered_load(rows, 4) == pytest.approx(2.75)
    found = list(gupta2013.jobs(rows, setting, 1))
    assert found[-1].submit == pytest.approx(275.0)
    assert [job.submit for job in gupta2013.jobs(rows, GUESSED, 1)] == [0.0] * 11


@pytest.mark.parametrize("count", [1, 5, 8, 13])
def test_most_free_takes_for_each_vm_the_node_with_most_free_cores(count: int):
    """The same as by looking for it one VM after the other."""
    cluster = gupta2013.cluster(TraceSetup(nodes=5), 1)
    conditions = SimulationInput(cluster, host_order.MOST_FREE_PE)
    occupancy = ClusterState(cluster)
    occupancy.free[:, VCPUS] = [4, 1, 3, 4, 2]
    job = Job(1, 0.0, 1.0, count)
    places = host_order.MOST_FREE_PE.place(
        conditions.request(job, conditions.capacity(job, occupancy), occupancy)
    )
    free = occupancy.free[:, VCPUS].tolist()
    expected = []
    for _ in range(count):
        expected.append(free.index(max(free)))
        free[expected[-1]] -= 1
    assert places == tuple(expected)
    assert conditions.limits == Limits(float("inf"), float("inf"))
