"""The time axis of a report, and what is drawn on it: nothing is hidden without a word."""

from dataclasses import replace
from itertools import pairwise

import pytest
from matplotlib.figure import Figure

from hpc_sched.sim import report
from hpc_sched.sim.jobs.job import Job
from hpc_sched.sim.report import heat, interval_means, policy_runs, timeline
from hpc_sched.sim.report.policy_runs import PolicyRuns
from hpc_sched.sim.report.time_axis import TimeAxis, time_axis
from hpc_sched.sim.results import Result, result_of
from hpc_sched.sim.series import Series, Totals
from tests.sim_results import empty, lived
from tests.unit.simulated import Simulated

#   jobs 100 |          _______________________
#            |        /                       |
#            |      /                         |
#          0 +----/---|-----------------------|--- time
#                 0  1000 s                 10,000 s
STEP = 100.0


def drained(policy: str = "a", *, end: int = 10, samples: int = 100, last: int = 1) -> Result:
    """A run whose jobs have ended after some samples, but for the last ones; they end with it."""
    run = lived(policy, samples=samples, step=STEP)
    jobs = 100
    ended = [min(i * (jobs - last) // end, jobs - last) for i in range(samples)] + [jobs]
    waiting = [STEP * min(i, end - 1) for i in range(samples + 1)]
    totals = replace(run.series.totals, done=ended, ended=ended, waiting=waiting)
    return replace(run, series=replace(run.series, totals=totals))


def policies_of(*results: Result) -> list[PolicyRuns]:
    return policy_runs.by_policy(results)


def axis_of(*results: Result) -> TimeAxis:
    return time_axis(policies_of(*results))


def test_the_axis_ends_where_the_cluster_has_drained():
    axis = axis_of(drained())
    assert axis == TimeAxis(end=pytest.approx(1050.0), last=10_000.0, later=1, jobs=100)
    assert axis.reason == (
        "All time axes end at 17min 30s, when the cluster has drained: no job waits any more, "
        "and at most 1 of the 100 jobs of a policy end later; the last at 2h 47min."
    )
    assert axis.hint == "The axis is cut at 17min 30s; the last job ends at 2h 47min."


def test_a_run_that_was_stopped_is_not_said_to_end():
    run = drained()
    axis = axis_of(replace(run, summary=replace(run.summary, left=1)))
    assert axis.hint == "The axis is cut at 17min 30s; the runs were stopped at 2h 47min."
    assert "the runs were stopped at 2h 47min" in axis.reason


def test_one_long_job_of_a_real_run_is_cut_off():
    jobs = [Job(number, number * 60.0, 90, 2) for number in range(1, 100)]
    found = Simulated("first-fit", [Job(100, 0.0, 60_000, 1), *jobs])
    axis = axis_of(result_of("first-fit", 1, found.simulation))
    assert axis.last == 60_000
    assert 99 * 60 + 90 <= axis.end < 7000
    assert (axis.later, axis.jobs) == (1, 100)


@pytest.mark.parametrize(
    "results",
    [
        [drained(last=2)],
        [drained(end=80)],
        [drained("a"), drained("b", end=90)],
        [lived("a", samples=9)],
        [empty("a")],
        [],
    ],
    ids=[
        "two of a hundred jobs end late",
        "little would be cut",
        "another policy needs the time",
        "every job is one of few",
        "no samples",
        "no run",
    ],
)
def test_all_of_the_run_is_shown(results):
    axis = axis_of(*results)
    assert axis.end == axis.last
    assert axis.reason == axis.hint == ""


def test_all_of_the_run_is_shown_while_jobs_wait():
    run = drained()
    # One job waits all the time: it needs most of the cluster, and all of it runs after another.
    waiting = [STEP * i for i in range(101)]
    totals = replace(run.series.totals, waiting=waiting)
    axis = axis_of(replace(run, series=replace(run.series, totals=totals)))
    assert axis.end == axis.last == 10_000.0


def test_all_plots_have_the_axis_of_the_slowest_policy_and_say_that_it_is_cut(monkeypatch):
    limits = []
    save = Figure.savefig

    def savefig(figure, *arguments, **options):
        limits.append(figure.axes[0].get_xlim())
        return save(figure, *arguments, **options)

    monkeypatch.setattr(Figure, "savefig", savefig)
    policies = policies_of(drained("a"), drained("b", end=20), drained("c", samples=40))
    axis = time_axis(policies)
    assert axis.end == pytest.approx(2100.0)
    plots = [
        *(timeline.plot(measure, policies, axis) for measure in timeline.PROGRESS),
        timeline.plot(timeline.CROSSING, policies, axis),
        timeline.fragmentation(policies, axis),
        heat.plot(policies, axis),
    ]
    assert all(plot.reading.endswith(axis.hint) for plot in plots)
    # 5 measures, 2 levels of the fabric, a map for each policy; the unit is a minute.
    assert limits == [(0.0, pytest.approx(35.0))] * 10


def test_the_page_says_once_why_the_axes_are_cut():
    page = report.page([drained()], [], [])
    assert page.count("when the cluster has drained") == 1
    assert page.count("The axis is cut at") == 7  # 5 measures, groups and leaves
    assert "The axis is cut" not in report.page([lived("a")], [], [])


@pytest.fixture
def series() -> Series:
    """A cluster that is full from 100 s to 250 s; a sample every 100 s, and the end at 350 s."""
    times = [0.0, 100.0, 200.0, 300.0, 350.0]
    totals = replace(Totals.empty(), time=times, vcpus=[0.0, 0.0, 100.0, 150.0, 150.0])
    return replace(lived("a").series, time=times[:-1], totals=totals)


@pytest.mark.parametrize(
    ("most", "end", "edges", "means"),
    [
        (120, 350.0, [0.0, 100.0, 200.0, 300.0, 350.0], [0.0, 1.0, 0.5, 0.0]),
        (2, 350.0, [0.0, 200.0, 350.0], [0.5, 1 / 3]),
        (1, 350.0, [0.0, 350.0], [150 / 350]),
        # The mean of the last step is that of all of it, also where the axis ends in it.
        (120, 150.0, [0.0, 100.0, 200.0], [0.0, 1.0]),
    ],
    ids=["samples", "two samples", "all", "cut"],
)
def test_steps_are_means_over_time(monkeypatch, series, most, end, edges, means):
    monkeypatch.setattr(interval_means, "MOST_STEPS", most)
    found = interval_means.steps(series, series.totals.vcpus, end)
    assert found.edges == pytest.approx(edges)
    assert found.means == pytest.approx(means)


def test_steps_have_one_length_and_are_not_too_many():
    series = lived("a", samples=500, step=120.0).series
    found = interval_means.steps(series, series.totals.vcpus, 500 * 120.0)
    assert {after - before for before, after in pairwise(found.edges)} == {5 * 120.0}
    assert len(found.means) == 100 <= interval_means.MOST_STEPS
    assert interval_means.about_steps([found]) == "A step is the mean over 10min."


def test_where_the_axis_is_cut_steps_are_as_short_as_the_totals_allow():
    """A job of two months: samples are some hours apart, all other jobs end within two."""
    jobs = [Job(number, number * 10.0, 60, 2) for number in range(1, 400)]
    found = Simulated("first-fit", [Job(400, 0.0, 60 * 86400, 1), *jobs])
    policies = policies_of(result_of("first-fit", 1, found.simulation))
    axis, series = time_axis(policies), found.simulation.measures.series
    assert series.time[1] - series.time[0] > 3 * 3600
    assert axis.end < 7000
    steps = interval_means.steps(series, series.totals.running, axis.end)
    assert 40 < len(steps.means) <= interval_means.MOST_STEPS
    # Four jobs at a time, and the long one: not a mean over hours.
    assert max(steps.means) == pytest.approx(5.0, abs=0.2)
    assert interval_means.about_steps([steps]) == "A step is the mean over 1min."
    plot = timeline.fragmentation(policies, axis)
    assert "apart; what happens between them is not seen." in plot.reading


def test_the_use_of_vcpus_is_drawn_as_steps_of_means_with_their_length():
    jobs = [Job(number, number * 60.0 + 10, 30, 3) for number in range(20)]
    policies = policies_of(result_of("a", 1, Simulated("first-fit", jobs).simulation))
    axis = time_axis(policies)
    vcpus = next(each for each in timeline.PROGRESS if each.name == "vcpus")
    plot = timeline.plot(vcpus, policies, axis)
    assert "A step is the mean over 1min." in plot.reading
    # 15 % in every minute, though no sample sees a job: the axis fits the values.
    assert ">15</text>" in plot.panels[0].svg
    assert ">100</text>" not in plot.panels[0].svg


def test_what_has_no_integral_is_the_mean_of_neighbouring_samples():
    series = lived("a", samples=10, step=60.0).series
    found = interval_means.sampled_steps(series, list(range(10)), 480.0, 4)
    # The axis ends at the ninth sample: eight before it, two each.
    assert found.means == [0.5, 2.5, 4.5, 6.5]
    assert found.edges == [0.0, 120.0, 240.0, 360.0, 480.0]
    assert interval_means.sampled_steps(series, list(range(10)), 1e9, 20).edges[-1] == 600.0


def test_each_policy_has_markers_of_its_own_on_lines_that_coincide():
    policies = policies_of(*(lived(name, samples=40) for name in "abcdef"))
    axis = time_axis(policies)
    axes = Figure().add_subplot()
    steps = interval_means.steps(
        policies[0].shown.series, policies[0].shown.series.totals.vcpus, axis.end
    )
    interval_means.draw_steps(axes, policies, [steps] * 6, axis.end, 60.0)
    marks = [line for line in axes.lines if line.get_linestyle() == "None"]
    places = [float(x) for line in marks for x in line.get_xdata()]
    assert len(marks) == 6
    assert len(set(places)) == len(places)
    assert 0 < min(places) <= max(places) < axis.end / 60.0
