"""Gupta2013 repeated: the tables, the case study, and what the trace simulation is made of."""

from collections import Counter
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hpc_sched.core.sharing.cache_interference import Application, Limits
from hpc_sched.experiments.gupta2013 import (
    figure_8,
    figure_9a,
    figure_9b,
    table_1,
    table_2,
    trace_run,
)
from hpc_sched.experiments.gupta2013.figure_9 import FCFS, PASSING, Runs
from hpc_sched.experiments.gupta2013.trace_queues import ScreenedListScheduling
from hpc_sched.experiments.gupta2013.trace_run import (
    BLIND,
    IN_LIMITS,
    LEAST_FREE,
    MDOBP,
    TraceRun,
    result,
)
from hpc_sched.sim.cluster.cluster import VCPUS, HostType, uniform
from hpc_sched.sim.cluster.cluster_state import ClusterState
from hpc_sched.sim.cluster.fat_tree import FatTree
from hpc_sched.sim.jobs import distributions, swf
from hpc_sched.sim.jobs.job import Job
from hpc_sched.sim.jobs.swf import TraceRow
from hpc_sched.sim.policies import host_order
from hpc_sched.sim.policies.placement_policy import Policy
from hpc_sched.sim.queues.in_order import ListScheduling
from hpc_sched.sim.simulation import Discipline, Simulation
from hpc_sched.sim.simulation_input import SimulationInput
from tests import sample_data

TRACE = "swf/METACENTRUM-2009-2.swf.gz"
GB = 1024 * 1024  # in KB
STATED = TraceRun(IN_LIMITS, "passing", beta=60.0, less=0.1)


def row(line: int, memory_gb: float, runtime: float, processors: int = 1) -> TraceRow:
    memory = round(memory_gb * GB * processors)
    return TraceRow(line, 0.0, runtime, processors, None, memory, None, None)


@pytest.fixture(scope="module")
def rows() -> tuple[TraceRow, ...]:
    return tuple(swf.read(sample_data.path(TRACE), limit=trace_run.JOBS))


@pytest.fixture(scope="module")
def runs(rows) -> Runs:
    return Runs(rows, [1], lambda text: None)


@pytest.mark.parametrize(
    ("run", "jobs"),
    [
        (FCFS, 785),
        (replace(FCFS, policy=MDOBP), 785),
        (replace(FCFS, memory=8), 816),
        (replace(FCFS, memory=8, policy=MDOBP), 816),
        (PASSING, 922),
        (replace(PASSING, policy=MDOBP), 918),
        (replace(PASSING, memory=8), 975),
        (replace(PASSING, memory=8, policy=MDOBP), 982),
        (BLIND, 797),
        (replace(BLIND, memory=8), 816),
        (figure_9a.VM_BY_VM, 787),
    ],
)
def test_jobs_of_the_trace_completed_after_100_000_seconds(runs: Runs, run: TraceRun, jobs: int):
    assert runs.jobs(run) == jobs


def test_near_100_seconds_next_to_nothing_is_completed_and_with_the_traces_arrivals_nothing(rows):
    assert result(rows, replace(FCFS, until=100.0)).jobs == 53
    assert result(rows, replace(FCFS, arrivals="trace", until=100.0)).jobs == 0
    assert result(rows, replace(FCFS, arrivals="trace")).jobs == 0


def test_the_gain_is_the_queues_and_not_the_packings(runs: Runs):
    """Rows of 2 GB and of 8 GB: the same queue, twice, then the default's own."""
    table = figure_9a.table(runs)
    gains = [line[8] for line in table.rows if line[0] == "simulated"]
    assert gains == [0.0, -0.4, 15.2, 16.6, 0.0, 0.7, 20.3, 19.9, 0.0, 0.0]
    assert table.verdict is not None
    assert table.verdict.word == "explained in part"
    assert "797 and 918 jobs, +15.2 %" in table.verdict.why
    assert "+20.3 % on nodes of 8 GB" in table.verdict.why


def test_limits_of_cache_scores_leave_cores_unused_and_reward_small_jobs(rows):
    free = result(rows, replace(STATED, policy=MDOBP))
    limited, tight = result(rows, STATED), result(rows, replace(STATED, beta=40.0))
    assert (free.jobs, limited.jobs, tight.jobs) == (1040, 1110, 959)
    assert limited.core_hours / free.core_hours == pytest.approx(1.009, abs=1e-3)
    assert tight.use < 0.9 < limited.use < free.use


def test_a_verdict_on_another_trace_is_that_nothing_is_reproduced():
    few = Runs([row(i, 0.1, 1000.0 * i) for i in range(8)], [1], lambda text: None)
    for table in (figure_9a.table(few), figure_9b.table(few)):
        assert table.verdict is not None
        assert table.verdict.word == "not reproduced"
        assert {len(line) for line in table.rows} == {len(table.columns)}


def test_runs_are_made_once_and_once_for_all_seeds_where_nothing_is_drawn():
    made: list[str] = []
    few = Runs([row(i, 0.1, 100.0) for i in range(4)], [1, 2, 3], made.append)
    assert len(few.of(FCFS)) == 1
    assert few.of(STATED) == few.of(STATED)
    assert [text.partition(":")[0] for text in made] == ["run 1", "run 2", "run 3", "run 4"]


def test_the_same_seed_gives_the_same_ends_and_another_seed_others(rows):
    few = rows[:400]
    run = replace(STATED, queue="fcfs", beta=40.0)
    once = result(few, run, 1)
    assert once == result(few, run, 1)
    assert once.ends != result(few, run, 2).ends
    assert list(once.ends) == sorted(once.ends)


def test_limits_keep_sync_jobs_apart_and_shorter_runtimes_complete_more():
    rows = [row(i, 0.1, 100.0, processors=2) for i in range(8)]
    apart = TraceRun(IN_LIMITS, nodes=4, beta=40.0, scores=distributions.read("constant:20"))
    assert result(rows, replace(apart, policy=MDOBP)).ends == (100.0,) * 8
    # Two VMs a node, so that half of the jobs wait.
    assert result(rows, apart).ends == (100.0,) * 4 + (200.0,) * 4
    assert result(rows, replace(apart, less=0.2)).ends == (80.0,) * 4 + (160.0,) * 4
    # Without a sync job alpha alone holds.
    assert result(rows, replace(apart, classes="all async")).ends == (100.0,) * 8
    assert result(rows, replace(apart, classes="sync above 1 VM")).ends == result(rows, apart).ends


def test_a_blind_default_fills_nodes_whatever_their_memory_and_passes_over_what_they_lack():
    """Two nodes of 4 cores and 2 GB.

    ::

        job 1: 3 * 0.4 GB  ->  N1     job 2: 1 * 1 GB: N1 has the fewest free cores, and lacks it
        job 3: 4 * 0.1 GB  ->  N1, then N2          job 4: 2 * 0.1 GB  ->  N2
    """
    rows = [row(1, 0.4, 9.0, 3), row(2, 1.0, 8.0), row(3, 0.1, 7.0, 4), row(4, 0.1, 6.0, 2)]
    blind = replace(BLIND, nodes=2)
    # Job 4 finds one free core until job 3 has ended. Job 2 has to wait for job 1: until then N1
    # has the fewest free cores.
    assert result(rows, blind).ends == (7.0, 9.0, 13.0, 17.0)
    aware = TraceRun(LEAST_FREE, nodes=2)
    assert result(rows, aware).ends == (7.0, 8.0, 9.0, 13.0)


def test_vm_by_vm_a_job_ends_with_its_last_vm_and_none_of_them_waits_for_the_others():
    rows = [row(1, 0.1, 10.0, 6), row(2, 0.1, 5.0, 4)]
    together = TraceRun(LEAST_FREE, nodes=2)
    assert result(rows, together).ends == (10.0, 15.0)
    found = result(rows, replace(together, vm_by_vm=True))
    # Two VMs of the second job run at once, the others when these have ended.
    assert found.ends == (10.0, 10.0)
    assert found.core_hours == pytest.approx(80 / 3600)


def test_jobs_with_vms_larger_than_a_node_never_start_and_hold_up_nothing():
    rows = [row(1, 2.5, 10.0), row(2, 0.1, 10.0)]
    for run in (FCFS, PASSING, BLIND, figure_9a.VM_BY_VM):
        assert result(rows, replace(run, nodes=2)).ends == (10.0,)


drawn_jobs = st.lists(
    st.tuples(
        st.integers(1, 6),  # VMs
        st.sampled_from([0, 300, 600, 1100]),  # MB
        st.integers(1, 20),  # s
        st.integers(0, 300).map(lambda tenths: tenths / 10),  # score
        st.sampled_from(["sync", "async", "none"]),
    ),
    min_size=1,
    max_size=14,
)


@settings(deadline=None)
@given(
    drawn=drawn_jobs,
    policy=st.sampled_from([MDOBP, IN_LIMITS, LEAST_FREE]),
    alpha=st.integers(20, 80),
    beta=st.integers(20, 80),
)
def test_screened_list_scheduling_starts_the_same_jobs_at_the_same_time(drawn, policy, alpha, beta):
    def log(queue: Discipline) -> list[str]:
        cluster = trace_run.cluster(3, 4, 2.0)
        jobs = [
            Job(i, 0.0, time, vms, 1, memory, application=Application(name, score=score))
            for i, (vms, memory, time, score, name) in enumerate(drawn, start=1)
        ]
        found: list[str] = []
        setting = SimulationInput(cluster, policy, limits=Limits(alpha, beta))
        simulation = Simulation(setting, queue, jobs, log=found.append)
        simulation.run()
        simulation.conclude()
        return found

    assert log(ScreenedListScheduling()) == log(ListScheduling())


def test_mdobp_keeps_large_nodes_for_large_jobs_which_the_default_does_not():
    """One node of 2 GB, one of 8 GB: small jobs that stay, then large ones of a second.

    ::

        0.4 0.4 0.4 0.4     2.4 2.4 2.4
        N1: 8 GB, 4 cores   N2: 2 GB, 4 cores
    """
    large = {"n1": HostType(4, 8192)}
    cluster = uniform(FatTree(levels=1, radix=2).topology(), HostType(4, 2048), large)
    jobs = [Job(i, 0.0, 1000.0, 1, 1, 400) for i in range(1, 5)]
    jobs += [Job(i, 0.0, 1.0, 1, 1, 2400) for i in range(5, 8)]

    def done(policy: Policy) -> int:
        simulation = Simulation(SimulationInput(cluster, policy), ListScheduling(), jobs)
        simulation.run(until=1.0)
        return len(simulation.measures.jobs.waits)

    assert done(MDOBP) == 3
    assert done(LEAST_FREE) == 0


@pytest.mark.parametrize("count", [1, 5, 8, 13])
def test_most_free_takes_for_each_vm_the_node_with_most_free_cores(count: int):
    """The same as by looking for it one VM after the other."""
    cluster = trace_run.cluster(5, 4, 2.0)
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


def test_the_case_study_has_the_published_placements_and_the_same_applications_wait():
    table = figure_8.table()
    assert len(table.rows) == 15
    for line in table.rows:
        published, ours, waits_for, start = line[6:10]
        assert published == ours
        assert (waits_for is not None) == (start > 0)
        vms = [int(number) for number in ours.split()]
        assert sum(vms) == line[3]
        assert len(vms) == 8
    assert table.verdict is not None
    assert table.verdict.word == "reproduced"


def test_no_node_of_the_case_study_exceeds_a_limit_but_a_dedicated_one():
    for beta, _, app_class, *_, highest in figure_8.table().rows:
        assert (highest <= beta) != (app_class == "extreme")


def test_performance_of_the_case_study_is_stated_and_not_simulated():
    table = figure_8.performance_table()
    assert [line[3] for line in table.rows] == [45.0, -8.0, 120.0, 0.0, 0.0]
    assert {line[4] for line in table.rows} == {None}
    assert table.verdict is not None
    assert table.verdict.word == "not reproduced"


def test_table_1_is_the_papers_formula_by_the_modules_of_cost():
    published, computed = table_1.table().rows
    assert published[-1] == 23
    assert computed[-1] == pytest.approx(100 * (2.4 - 2.4 / (88 / 13) + 0.9 - 2.4) / 2.4, abs=0.05)


def test_table_2_has_the_published_33_of_103_656_jobs():
    table = table_2.table(sample_data.path(TRACE))
    assert table.rows[0] == ("all jobs", 103_656, 103_656, 1500)
    assert table.rows[-1] == ("above 8 GB", 33, 33, 0)
    # Numbers that are not known to be published are not listed as published.
    assert {line[1] for line in table.rows[1:-1]} == {None}
    ours = [line[2] for line in table.rows]
    assert ours == sorted(ours, reverse=True)


def test_settings_say_where_each_value_is_stated_or_that_it_is_inferred_or_guessed():
    sections = Counter(
        setting.source
        for settings in (figure_9a.SETTINGS, figure_9b.SETTINGS)
        for setting in settings
    )
    words = ("II", "V", "Figure", "Table", "inferred", "guessed", "not stated")
    assert [source for source in sections if not source.startswith(words)] == []
