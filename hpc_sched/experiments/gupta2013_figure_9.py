"""Gupta2013, Figures 9a and 9b: jobs completed after 100 seconds, by placement and queue.

The paper states no queue discipline. Several are compared here, as the published gains depend on
it.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from statistics import fmean

from hpc_sched.experiments import gupta2013
from hpc_sched.experiments.gupta2013 import (
    BETAS,
    BLIND,
    IN_LIMITS,
    LEAST_FREE,
    LESS,
    MDOBP,
    MOST_FREE,
    Classes,
    Queue,
    TraceResult,
    TraceRun,
    result,
)
from hpc_sched.experiments.table import Cell, Setting, Table, Verdict, percent
from hpc_sched.sim.jobs.swf import TraceRow
from hpc_sched.sim.statistics.estimate import LEAST_SEEDS, Estimate

DEFAULT_DONE, MDOBP_DONE, IN_LIMITS_DONE = 801, 910, 1060  # published
NODE, LARGE, LARGER = 2.0, 8.0, 16.0  # GB
NEAR = 3.0  # percent: published and simulated numbers that differ by less agree

_FCFS, _PASSING = TraceRun(LEAST_FREE, "fcfs"), TraceRun(LEAST_FREE, "passing")
_VM_BY_VM = replace(_FCFS, vm_by_vm=True)


class Runs:
    """The runs of one trace. Equal runs are made once."""

    def __init__(
        self, rows: Sequence[TraceRow], seeds: Sequence[int], report: Callable[[str], None]
    ) -> None:
        self._rows, self._seeds, self._report = rows, seeds, report
        self._known: dict[tuple[TraceRun, int], TraceResult] = {}

    def of(self, run: TraceRun) -> list[TraceResult]:
        """Return the result of each seed; of one seed where nothing is drawn."""
        found = []
        for seed in self._seeds if run.is_drawn else self._seeds[:1]:
            if (run, seed) not in self._known:
                self._report(f"run {len(self._known) + 1}: {run.name}, {run.queue}")
                self._known[run, seed] = result(self._rows, run, seed)
            found.append(self._known[run, seed])
        return found

    def jobs(self, run: TraceRun) -> float:
        """Return the number of completed jobs, the mean over the seeds."""
        return fmean(each.jobs for each in self.of(run))

    @property
    def number(self) -> int:
        """The number of seeds."""
        return len(self._seeds)


_TRACE = (
    Setting("trace", "METACENTRUM-2009-2", "VII: METACENTRUM-02.swf; inferred: its 103,656 jobs"),
    Setting("jobs", f"the first {gupta2013.JOBS:,}", "VII"),
    Setting("cores", f"{gupta2013.CORES:,}", "VII"),
    Setting("cores of a node", "4", "II-B for the testbed; inferred for the simulation"),
    Setting("a job of n cores, m MB", "n VMs of 1 core and m/n MB", "VII"),
)
_COMMON = (
    Setting(
        "jobs counted after",
        f"100 s, {gupta2013.MOMENT:,.0f} s of the trace",
        "VII: 100 s; inferred: a second is 1,000 s of the trace",
    ),
    Setting("arrivals", "all at the start", "inferred: else no job is completed by then"),
    Setting("VMs with more memory than a node", "never start", "guessed"),
)

SETTINGS_9A = (
    *_TRACE,
    Setting("memory of all nodes", f"{NODE:g} GB", "VII, the constrained case"),
    Setting("large memory", f"{LARGE:g} and {LARGER:g} GB", "VII, without a number: guessed"),
    Setting("default", "the node with the least free PEs", "VII"),
    Setting("default's regard to memory", "aware, blind, VM by VM", "not stated: varied"),
    Setting("queue", "fcfs, passing", "not stated: varied"),
    *_COMMON,
)
SETTINGS_9B = (
    *_TRACE,
    Setting("memory of all nodes", f"{NODE:g} GB", "inferred: 801 jobs are those of Figure 9a"),
    Setting("cache score of a job", "drawn, uniform from 0 to 30", "VII"),
    Setting("beta", "40 and 60", "VII"),
    Setting("run times of all jobs", "10 % and 20 % less", "VII: an assumption, not a result"),
    Setting("setting of the published 1,060", "beta 60, run times 10 % less", "VII"),
    Setting("alpha", f"{gupta2013.ALPHA:g}", "guessed"),
    Setting("class of the jobs", "all sync, so that beta applies", "guessed: varied"),
    Setting("queue", "fcfs, passing", "not stated: varied"),
    *_COMMON,
)

COLUMNS_9A = (
    *("numbers", "memory, GB", "varied", "default", "default's queue", "MDOBP's queue"),
    *("jobs of default", "jobs of MDOBP", "gain, %"),
    *("cores used by default, %", "cores used by MDOBP, %"),
    *("core-hours of default", "core-hours of MDOBP"),
)
_QUEUES_OF_NOTES = (
    "fcfs: first come, first served; a job that does not fit holds up all others. passing: list "
    "scheduling; any waiting job that fits starts.",
)


def figure_9a(runs: Runs) -> Table:
    """Return the jobs completed with MDOBP and with the default."""

    def line(
        default: TraceRun, queue: Queue, numbers: str = "simulated", varied: str | None = None
    ) -> tuple[Cell, ...]:
        [before] = runs.of(default)
        [after] = runs.of(replace(default, policy=MDOBP, queue=queue, vm_by_vm=False))
        return (
            *(numbers, default.memory, varied, default.name, default.queue, queue),
            *(before.jobs, after.jobs, _gain(before.jobs, after.jobs)),
            *(percent(before.use), percent(after.use)),
            *(round(before.core_hours), round(after.core_hours)),
        )

    gain = _gain(DEFAULT_DONE, MDOBP_DONE)
    stated = ("published", NODE, None, LEAST_FREE.name, None, None, DEFAULT_DONE, MDOBP_DONE, gain)
    found: list[tuple[Cell, ...]] = [(*stated, *[None] * 4)]
    # Defaults, each with MDOBP's queue.
    alike: list[tuple[TraceRun, Queue]] = [(_FCFS, "fcfs"), (_PASSING, "passing")]
    unlike: list[tuple[TraceRun, Queue]] = [(BLIND, "passing"), (_VM_BY_VM, "passing")]
    found += [line(default, queue) for default, queue in alike + unlike]
    large = ("published", None, "large memory", LEAST_FREE.name, *[None] * 4, 0.0)
    found.append((*large, *[None] * 4))
    for memory, defaults in ((LARGE, alike + unlike), (LARGER, alike)):
        found += [line(replace(default, memory=memory), queue) for default, queue in defaults]
    for varied, default in (
        ("most free PEs", replace(_PASSING, policy=MOST_FREE)),
        ("counted after 50 s", replace(_PASSING, until=50_000.0)),
        ("counted after 150 s", replace(_PASSING, until=150_000.0)),
        ("16 cores a node", replace(_PASSING, cores=16)),
        ("100 s of the trace", replace(_FCFS, until=100.0)),
        ("the trace's arrivals", replace(_FCFS, arrivals="trace")),
    ):
        found.append(line(default, default.queue, "varied", varied))
    return Table(
        source="Gupta2013, Figure 9a",
        title="jobs completed on 1,024 cores, MDOBP against the default",
        columns=COLUMNS_9A,
        rows=tuple(found),
        settings=SETTINGS_9A,
        verdict=_verdict_9a(runs),
        notes=_NOTES_9A,
    )


def _verdict_9a(runs: Runs) -> Verdict:
    def gains(default: TraceRun, queue: Queue) -> float:
        mdobp = replace(default, policy=MDOBP, queue=queue, vm_by_vm=False)
        return _gain(runs.jobs(default), runs.jobs(mdobp))

    known = _gain(DEFAULT_DONE, MDOBP_DONE)
    fcfs, passing = gains(_FCFS, "fcfs"), gains(_PASSING, "passing")
    mixed, large = gains(BLIND, "passing"), gains(replace(BLIND, memory=LARGE), "passing")
    is_near = abs(mixed - known) <= NEAR and max(abs(fcfs), abs(passing)) <= NEAR
    before, after = runs.jobs(BLIND), runs.jobs(replace(_PASSING, policy=MDOBP))
    why = (
        f"Where both have the same queue, MDOBP gains {fcfs:g} % (fcfs) and {passing:g} % "
        "(passing): nearly all cores are in use either way, and packing has nothing to gain. A "
        "default that is blind to memory and first come first served, and MDOBP that passes "
        f"whatever fits, complete {before:g} and {after:g} jobs, {mixed:+g} % (published "
        f"{DEFAULT_DONE} and {MDOBP_DONE}, {known:+g} %). So the published gain looks like the "
        "queue's, not the packing's. Not explained: with large memory the paper finds no "
        f"improvement, whereas the same two queues give {large:+g} % on nodes of {LARGE:g} GB."
    )
    return Verdict("explained in part" if is_near else "not reproduced", why)


_NOTES_9A = (
    *_QUEUES_OF_NOTES,
    "fcfs by cores: a job holds up all others while cores are lacking. Where the nodes that a "
    "blind default has chosen lack memory, VMs cannot be created, and the job is passed over.",
    "VM by VM: each VM starts on its own, as CloudSim creates them one by one; MDOBP starts a job "
    "as a whole. First come, first served among VMs.",
    "core-hours: of the completed jobs, by the run times of the row. A queue that lets jobs pass "
    "completes more jobs, small ones, and hardly more work.",
    "The time: a job of CloudSim is measured in million instructions. With one of these for a "
    "second of the trace, on VMs of 1,000 a second as in its examples, 100 s are 100,000 s of the "
    "trace.",
)

COLUMNS_9B = (
    *("numbers", "queue", "placement", "classes", "beta", "runtimes less by, %"),
    *("jobs", "95 % interval, +-", "against default of the queue, %", "against blind default, %"),
    *("against MDOBP without limits, %", "cores used, %", "core-hours"),
)


def figure_9b(runs: Runs) -> Table:
    """Return the jobs completed with MDOBP that keeps cache scores in limits."""
    gain = _gain(DEFAULT_DONE, IN_LIMITS_DONE)
    stated = ("published", None, IN_LIMITS.name, None, 60.0, 10.0, IN_LIMITS_DONE, None)
    found: list[tuple[Cell, ...]] = [(*stated, None, gain, None, None, None)]
    for queue in gupta2013.QUEUES:
        for less in (0.0, *LESS):
            found.append(_line_9b(runs, TraceRun(MDOBP, queue, less=less)))
        for beta in BETAS:
            for less in LESS:
                limited = TraceRun(IN_LIMITS, queue, beta=beta, less=less)
                found.append(_line_9b(runs, limited))
    found.append(_line_9b(runs, replace(_STATED, less=0.0), "varied"))
    others: tuple[Classes, ...] = ("sync above 1 VM", "all async")
    found += [_line_9b(runs, replace(_STATED, classes=each), "varied") for each in others]
    return Table(
        source="Gupta2013, Figure 9b",
        title="jobs completed with cache scores kept in limits",
        columns=COLUMNS_9B,
        rows=tuple(found),
        settings=SETTINGS_9B,
        verdict=_verdict_9b(runs),
        notes=_notes_9b(runs.number),
    )


# The setting of the published number, in the queue that comes close to it.
_STATED = TraceRun(IN_LIMITS, "passing", beta=60.0, less=0.1)


def _line_9b(runs: Runs, run: TraceRun, numbers: str = "simulated") -> tuple[Cell, ...]:
    found = runs.of(run)
    jobs = Estimate.of([float(each.jobs) for each in found], is_drawn=run.is_drawn)
    assert jobs is not None
    width = jobs.half_width
    unlimited = TraceRun(MDOBP, run.queue, less=run.less)
    return (
        *(numbers, run.queue, run.name, run.classes if run.is_drawn else None),
        run.beta if run.is_drawn else None,
        percent(run.less),
        round(jobs.mean, 1),
        round(width, 1) if run.is_drawn and width is not None else None,
        _gain(runs.jobs(TraceRun(LEAST_FREE, run.queue)), jobs.mean),
        _gain(runs.jobs(BLIND), jobs.mean),
        _gain(runs.jobs(unlimited), jobs.mean) if run.is_drawn else None,
        percent(fmean(each.use for each in found)),
        round(fmean(each.core_hours for each in found)),
    )


def _verdict_9b(runs: Runs) -> Verdict:
    def mean(run: TraceRun) -> tuple[float, float]:
        found = runs.of(run)
        return runs.jobs(run), fmean(each.core_hours for each in found)

    jobs, work = mean(_STATED)
    unlimited, work_unlimited = mean(TraceRun(MDOBP, "passing", less=_STATED.less))
    before, slow = runs.jobs(BLIND), runs.jobs(TraceRun(MDOBP, "passing"))
    fcfs, small = (
        runs.jobs(replace(_STATED, **each)) for each in ({"queue": "fcfs"}, {"beta": 40.0})
    )
    known = _gain(DEFAULT_DONE, IN_LIMITS_DONE)
    is_near = abs(_gain(IN_LIMITS_DONE, unlimited)) <= NEAR
    why = (
        f"Beta 60 and -10 % complete {jobs:.0f} jobs where jobs may pass and {fcfs:.0f} first come "
        f"first served (published {IN_LIMITS_DONE}). MDOBP without limits, at the same run times, "
        f"completes {unlimited:.0f}: {_gain(before, unlimited):+g} % against the blind default "
        f"(published {known:+g} %). Of that the queue gives {_gain(before, slow):+g} %, and the "
        f"assumed run times the rest. The limits change the jobs by {_gain(unlimited, jobs):+g} % "
        f"and their core-hours by {_gain(work_unlimited, work):+g} %: other jobs pass, not more "
        f"work. As published, a beta of 40 leaves cores unused and completes fewer: {small:.0f}."
    )
    return Verdict("explained" if is_near else "not reproduced", why)


def _notes_9b(seeds: int) -> tuple[str, ...]:
    return (
        *_QUEUES_OF_NOTES,
        f"Seeds draw the cache scores, {seeds} of them; a seed gives the same scores in all rows, "
        "and the defaults and MDOBP without limits depend on none. Intervals are of the mean "
        f"(Student's t), from {LEAST_SEEDS} seeds on.",
        "The blind default is that of Figure 9a, first come first served, which comes closest to "
        "the published 801 jobs.",
        "beta applies on nodes with sync VMs; all async: alpha alone applies. A score is that of "
        "each VM of the job: 1 is 100,000 misses of the last-level cache a second (III-A).",
    )


def _gain(before: float, after: float) -> float:
    return percent(after / before - 1) if before else 0.0
