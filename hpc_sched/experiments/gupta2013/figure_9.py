"""What Figures 9a and 9b of Gupta2013 have in common: their settings, and runs made once."""

from collections.abc import Callable, Sequence
from statistics import fmean

from hpc_sched.experiments.experiment_table import Setting, percent
from hpc_sched.experiments.gupta2013.trace_run import (
    JOBS,
    LEAST_FREE,
    MOMENT,
    TraceResult,
    TraceRun,
    result,
)
from hpc_sched.sim.jobs.swf import TraceRow

DEFAULT_DONE = 801  # published: jobs that the default completes
NODE = 2.0  # GB, the constrained case
NEAR = 3.0  # percent: published and simulated numbers that differ by less agree

FCFS, PASSING = TraceRun(LEAST_FREE, "fcfs"), TraceRun(LEAST_FREE, "passing")

TRACE = (
    Setting("trace", "METACENTRUM-2009-2", "VII: METACENTRUM-02.swf; inferred: its 103,656 jobs"),
    Setting("jobs", f"the first {JOBS:,}", "VII"),
    Setting("cores", "1,024", "VII"),
    Setting("cores of a node", "4", "II-B for the testbed; inferred for the simulation"),
    Setting("a job of n cores, m MB", "n VMs of 1 core and m/n MB", "VII"),
)
COMMON = (
    Setting(
        "jobs counted after",
        f"100 s, {MOMENT:,.0f} s of the trace",
        "VII: 100 s; inferred: a second is 1,000 s of the trace",
    ),
    Setting("arrivals", "all at the start", "inferred: else no job is completed by then"),
    Setting("VMs with more memory than a node", "never start", "guessed"),
)

QUEUES_NOTE = (
    "fcfs: first come, first served; a job that does not fit holds up all others. passing: list "
    "scheduling; any waiting job that fits starts.",
)


class Runs:
    """The runs of one trace. Equal runs are made once."""

    def __init__(
        self, rows: Sequence[TraceRow], seeds: Sequence[int], report: Callable[[str], None]
    ) -> None:
        self.seeds = seeds
        self._rows, self._report = rows, report
        self._known: dict[tuple[TraceRun, int], TraceResult] = {}

    def of(self, run: TraceRun) -> list[TraceResult]:
        """Return the result of each seed; of one seed where nothing is drawn."""
        seeds = self.seeds if run.is_drawn else self.seeds[:1]
        for seed in seeds:
            if (run, seed) not in self._known:
                self._report(f"run {len(self._known) + 1}: {run.name}, {run.queue}")
                self._known[run, seed] = result(self._rows, run, seed)
        return [self._known[run, seed] for seed in seeds]

    def jobs(self, run: TraceRun) -> float:
        """Return the number of completed jobs, the mean over the seeds."""
        return fmean(each.jobs for each in self.of(run))


def gain_percent(before: float, after: float) -> float:
    """Return by how many percent ``after`` is more; 0 if nothing was before."""
    return percent(after / before - 1) if before else 0.0
