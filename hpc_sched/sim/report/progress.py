"""What is drawn over time: which measures, and how they are read."""

from collections.abc import Sequence

from hpc_sched.sim.report import timeline
from hpc_sched.sim.report.plot import Plot
from hpc_sched.sim.report.policy_runs import PolicyRuns
from hpc_sched.sim.report.timeline import Measure, Values
from hpc_sched.sim.summary import Series

_DONE = Measure(
    name="done",
    title="Jobs done",
    axis="Jobs done",
    reading="The steeper a line, the more jobs end in a time; the policy whose line is above "
    "another's has done more jobs by then.",
    values=lambda series: series.done,
    is_count=True,
)
_WAITING = Measure(
    name="waiting",
    title="Jobs waiting",
    axis="Jobs waiting",
    reading="Jobs that were submitted and have not started yet. Lower is better; a line that "
    "keeps rising means that more is submitted than is worked off.",
    values=lambda series: series.waiting,
    is_count=True,
)
_RUNNING = Measure(
    name="running",
    title="Jobs running",
    axis="Jobs running",
    reading="Jobs that have their VMs. At the same use of vcpus, more of them are smaller ones.",
    values=lambda series: series.running,
    is_count=True,
)
_VCPUS = Measure(
    name="vcpus",
    title="Use of vcpus",
    axis="vcpus in use (%)",
    reading="Share of the cluster's vcpus that VMs have. Low while jobs wait, the policy or the "
    "queue leaves room unused; low with none waiting, there was no more work.",
    values=lambda series: [100 * share for share in series.vcpus],
    top=100.0,
)
_CROSSING = Measure(
    name="crossing",
    title="Crossing jobs per leaf",
    axis="Jobs per leaf",
    reading="Jobs that have VMs under a leaf and under other leaves too, on average over all "
    "leaves: they share its uplinks. Lower is better.",
    values=lambda series: series.crossing,
)
_GANGS = Measure(
    name="gangs",
    title="Largest group that fits",
    axis="VMs",
    reading="VMs of the largest group that would fit under one switch of the level, as means "
    "over neighbouring samples. Where it is low although vcpus are free, the free ones are "
    "scattered: higher means less fragmented.",
    values=lambda series: series.time,
    is_count=True,
    is_smoothed=True,
)


def over_time(policies: Sequence[PolicyRuns]) -> tuple[Plot, ...]:
    """Return how the runs went."""
    return tuple(
        timeline.plot(measure, policies) for measure in (_DONE, _WAITING, _RUNNING, _VCPUS)
    )


def crossing(policies: Sequence[PolicyRuns]) -> Plot:
    """Return how many jobs share the uplinks of a leaf."""
    return timeline.plot(_CROSSING, policies)


def fragmentation(policies: Sequence[PolicyRuns]) -> Plot:
    """Return the largest group that fits, a picture for each level."""
    return timeline.plot_by_level(_GANGS, _gangs_of, policies)


def _gangs_of(level: str) -> Values:
    def values(series: Series) -> Sequence[float]:
        return series.gangs.get(level, [])

    return values
