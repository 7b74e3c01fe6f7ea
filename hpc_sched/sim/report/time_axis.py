"""The time axis of a report: one range for all its plots, without a long and empty end."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from matplotlib.axes import Axes

from hpc_sched.sim.report.policy_runs import PolicyRuns
from hpc_sched.sim.series import Totals
from hpc_sched.sim.statistics.columns import duration

# Units: least length of an axis in s, unit in s, name; the first that the axis is long enough for.
_UNITS = ((259200, 86400, "d"), (7200, 3600, "h"), (120, 60, "min"), (-math.inf, 1, "s"))
# Jobs that may end after the axis, as a share of a policy's; fewer jobs than _LEAST have no share.
_FEW, _LEAST = 0.01, 10
# What is shown of the end that is cut, and the longest axis that is worth cutting: shares of the
# time until the cluster has drained, and of the run.
_MARGIN, _WORTH = 0.05, 0.8


@dataclass(frozen=True, slots=True)
class TimeAxis:
    """The range of a report's time axes. All begin at 0, so that plots can be compared."""

    end: float  # s
    last: float  # end of the longest run, s
    # Of the policy with the most jobs that end after the axis: these, and all its jobs.
    later: int = 0
    jobs: int = 0
    was_stopped: bool = False  # a run, before all its jobs had ended

    @property
    def reason(self) -> str:
        """A sentence on what is cut off and why; empty if nothing is."""
        if self.end == self.last:
            return ""
        last = "the runs were stopped at" if self.was_stopped else "the last at"
        return (
            f"All time axes end at {duration(self.end)}, when the cluster has drained: no job "
            f"waits any more, and at most {self.later:,} of the {self.jobs:,} jobs of a policy "
            f"end later; {last} {duration(self.last)}."
        )

    @property
    def hint(self) -> str:
        """The same for each plot, shorter."""
        if self.end == self.last:
            return ""
        last = "the runs were stopped" if self.was_stopped else "the last job ends"
        return f"The axis is cut at {duration(self.end)}; {last} at {duration(self.last)}."

    @property
    def unit(self) -> tuple[float, str]:
        """The length of the axis's unit in s, and its name."""
        return time_unit(self.end)

    def set(self, axes: Axes) -> float:
        """Label the time axis of a plot, set its limits, and return its unit in s."""
        unit, name = self.unit
        axes.set_xlabel(f"Simulated time ({name})")
        axes.set_xlim(0, self.end / unit if self.end > 0 else 1.0)
        return unit


def time_unit(seconds: float) -> tuple[float, str]:
    """Return the unit for an axis of a length in s: its length in s, and its name."""
    return next((float(unit), name) for least, unit, name in _UNITS if seconds >= least)


def time_axis(policies: Sequence[PolicyRuns]) -> TimeAxis:
    """Return the axis of all plots: until the runs shown end, or until the cluster has drained.

    It has drained when no job waits any more under any policy, and all jobs but one in a hundred
    have ended. The axis is cut there only if that makes it shorter by a fifth.
    """
    runs = [each.shown.series.totals for each in policies if each.shown.series.totals.time]
    last = max((totals.time[-1] for totals in runs), default=0.0)
    end = max(map(_drained, runs), default=0.0) * (1 + _MARGIN)
    if end >= _WORTH * last:
        return TimeAxis(last, last)
    later, jobs = max((_later(totals, end), totals.ended[-1]) for totals in runs)
    return TimeAxis(end, last, later, jobs, any(each.shown.summary.left for each in policies))


def _drained(totals: Totals) -> float:
    """Return the first time after which no job waits, and few end, s."""
    jobs, waited = totals.ended[-1], totals.waiting[-1]
    few = math.ceil(_FEW * jobs) if jobs >= _LEAST else 0
    return next(
        time
        for time, ended, waiting in zip(totals.time, totals.ended, totals.waiting, strict=True)
        if jobs - ended <= few and waiting == waited
    )


def _later(totals: Totals, end: float) -> int:
    """Return how many jobs end after a time, in s, or a little before it."""
    before = [ended for time, ended in zip(totals.time, totals.ended, strict=True) if time <= end]
    return totals.ended[-1] - before[-1]
