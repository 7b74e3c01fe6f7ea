"""The tables of Gupta2013's trace simulation: Table II, Figures 9a and 9b, beside ours."""

import math
import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from hpc_sched import files
from hpc_sched.sim import swf
from hpc_sched.sim.distributions import Uniform
from hpc_sched.sim.experiments.gupta2013 import (
    GUESSED,
    IN_LIMITS,
    JOBS,
    LEAST_FREE,
    MDOBP,
    MOST_FREE,
    Placement,
    Setting,
    curve,
)
from hpc_sched.sim.experiments.table import Cell, Table, percent
from hpc_sched.sim.swf import Record

# Jobs that the default has completed when the paper compares; then MDOBP, at most within limits.
DEFAULT_DONE, MDOBP_DONE, IN_LIMITS_DONE = 801, 910, 1060
PUBLISHED_JOBS, PUBLISHED_ABOVE_8 = 103_656, 33

BOUNDS = (0.25, 0.5, 1.0, 2.0, 4.0, 8.0)  # GB per core
_KB = 1024 * 1024  # in a GB

BETAS = (40.0, 60.0)
LESS = (0.0, 0.1, 0.2)
HOURS = (12.0, 24.0, 48.0)

TABLE_2 = ("memory used per core", "published", "ours", f"of the first {JOBS:,} jobs")
FIGURE_9 = (
    "figure",
    "numbers",
    "varied",
    "default",
    "placement",
    "beta",
    "runtimes less by, %",
    "counted after, h",
    "jobs of the default",
    "jobs",
    "gain, %",
    "gain, lowest, %",
    "gain, highest, %",
)

Tell = Callable[[str], None]


def _quiet(_text: str) -> None:
    """Say nothing."""


@dataclass(frozen=True, slots=True)
class Comparison:
    """A placement beside a default, at one moment."""

    placement: Placement
    default: Placement = LEAST_FREE
    setting: Setting = GUESSED
    varied: str | None = None  # what differs from what was guessed; None: nothing
    after: float | None = None  # h; None: when the default has completed as many as published


def memory_table(trace: files.Path) -> Table:
    """Return Table II: how many jobs of a trace use more memory per core than some bounds.

    Reads the whole trace.

    :raises exceptions.TraceError: naming file and line of what cannot be read
    """
    per_core = [(record.memory_kb or 0) / (record.processors * _KB) for record in swf.read(trace)]
    rows: list[tuple[Cell, ...]] = [
        ("all jobs", PUBLISHED_JOBS, len(per_core), min(JOBS, len(per_core)))
    ]
    for bound in BOUNDS:
        published = PUBLISHED_ABOVE_8 if bound == 8 else None
        counts = [sum(each > bound for each in some) for some in (per_core, per_core[:JOBS])]
        rows.append((f"above {bound:g} GB", published, *counts))
    return Table(
        title="Gupta2013, Table II: jobs of METACENTRUM-2009-2 by memory per core",
        columns=TABLE_2,
        rows=tuple(rows),
        notes=(
            "Used memory (field 7) by processors (field 5). Of what was published only the "
            "numbers that are shown are known to us.",
        ),
    )


def figure_9a(
    rows: Sequence[Record],
    seed: int,
    runs: int = 3,
    setting: Setting = GUESSED,
    tell: Tell = _quiet,
) -> Table:
    """Return Figure 9a: the jobs completed with MDOBP beside those with the default.

    :param rows: the first jobs of the trace
    :param tell: told what is being done
    """
    compared = [
        Comparison(MDOBP, default, varied, text, after)
        for text, varied, after in _varied(setting)
        for default in (LEAST_FREE, MOST_FREE)
    ]
    published = _published("9a", MDOBP.policy.name, MDOBP_DONE)
    return Table(
        title="Gupta2013, Figure 9a: jobs completed on 1,024 cores, MDOBP against the default",
        columns=FIGURE_9,
        rows=(published, *_lines("9a", compared, rows, seed, runs, tell)),
        notes=_notes(setting, runs),
    )


def figure_9b(
    rows: Sequence[Record],
    seed: int,
    runs: int = 3,
    setting: Setting = GUESSED,
    tell: Tell = _quiet,
) -> Table:
    """Return Figure 9b: the same with MDOBP that keeps cache scores in limits.

    :param rows: the first jobs of the trace
    :param tell: told what is being done
    """
    compared = [
        Comparison(Placement(IN_LIMITS, beta, less), default, setting)
        for default in (LEAST_FREE, MOST_FREE)
        for beta in BETAS
        for less in LESS
    ]
    best = Placement(IN_LIMITS, max(BETAS), max(LESS))
    compared += [
        Comparison(best, LEAST_FREE, varied, text, after)
        for text, varied, after in (
            ("cache scores uniform:0:20", replace(setting, scores=Uniform(0, 20)), None),
            ("cache scores uniform:0:40", replace(setting, scores=Uniform(0, 40)), None),
            ("all jobs sync", replace(setting, sync="all"), None),
            ("no job sync: alpha alone", replace(setting, sync="none"), None),
            ("sync jobs alone run shorter", replace(setting, quicker="sync"), None),
            ("EASY backfilling", replace(setting, queue="easy"), None),
            ("counted after 24 h", setting, 24.0),
        )
    ]
    published = _published("9b", IN_LIMITS.name, IN_LIMITS_DONE)
    return Table(
        title="Gupta2013, Figure 9b: the same with cache interference minded",
        columns=FIGURE_9,
        rows=(published, *_lines("9b", compared, rows, seed, runs, tell)),
        notes=(
            "Published is the best of Figure 9b; which beta and which runtimes it is of is not "
            "known to us.",
            f"Guessed: a job's cache score, of each of its VMs, is drawn from "
            f"{setting.scores.text}, 1 being 100,000 misses a second; alpha is "
            f"{setting.alpha:g}. Jobs of several processors are sync, others async.",
            "Guessed: all jobs of these rows run shorter by so many percent, those of the "
            "default none; it is an assumption of the paper, not a result.",
            "Rows of 0 % show what the limits cost: cores stay empty. All else as in Figure 9a.",
        ),
    )


def _varied(setting: Setting) -> list[tuple[str | None, Setting, float | None]]:
    """Return what is varied in Figure 9a: its text, the setting, when jobs are counted."""
    found: list[tuple[str | None, Setting, float | None]] = [(None, setting, None)]
    for sizes in ((2, 8), (2, 4, 8), (2, 4, 8, 16, 32), (8, 16, 32), (16,)):
        text = f"nodes of {', '.join(map(str, sizes))} GB"
        found.append((text, replace(setting, memories=sizes), None))
    found += [(f"counted after {hours:g} h", setting, hours) for hours in HOURS]
    full, spread = replace(setting, arrivals="full load"), replace(setting, arrivals="trace")
    return [
        *found,
        ("EASY backfilling", replace(setting, queue="easy"), None),
        ("jobs that do not fit are lost", replace(setting, queue="none"), None),
        ("arrivals at full load", full, None),
        ("arrivals at full load, jobs lost", replace(full, queue="none"), None),
        ("arrivals as in the trace", spread, None),
    ]


def _published(figure: str, placement: str, jobs: int) -> tuple[Cell, ...]:
    gain = percent(jobs / DEFAULT_DONE - 1)
    default = LEAST_FREE.policy.name
    blank: tuple[Cell, ...] = (None, None, None)
    seen = (DEFAULT_DONE, jobs, gain, None, None)
    return figure, "published", None, default, placement, *blank, *seen


def _lines(
    figure: str,
    compared: Sequence[Comparison],
    rows: Sequence[Record],
    seed: int,
    runs: int,
    tell: Tell,
) -> list[tuple[Cell, ...]]:
    lines = []
    for number, each in enumerate(compared, start=1):
        tell(f"Figure {figure}: comparison {number} of {len(compared)}")
        lines.append((figure, *_line(each, rows, range(seed, seed + runs))))
    return lines


def _line(each: Comparison, rows: Sequence[Record], seeds: range) -> tuple[Cell, ...]:
    """Return the means over all runs."""
    found = [_counts(each, rows, seed) for seed in seeds]
    hours = [time / 3600 for time, _, _ in found]
    gains = [jobs / before - 1 if before else 0.0 for _, before, jobs in found]
    placement = each.placement
    limited = placement.policy.minds_neighbours
    return (
        "simulated" if each.varied is None else "varied",
        each.varied,
        each.default.policy.name,
        placement.policy.name,
        placement.beta if limited else None,
        percent(placement.less) if limited else None,
        round(statistics.fmean(hours), 1) if max(hours) < math.inf else None,
        round(statistics.fmean(before for _, before, _ in found), 1),
        round(statistics.fmean(jobs for _, _, jobs in found), 1),
        percent(statistics.fmean(gains)),
        percent(min(gains)),
        percent(max(gains)),
    )


def _counts(each: Comparison, rows: Sequence[Record], seed: int) -> tuple[float, int, int]:
    """Return when jobs are counted, s, those of the default and those of the placement.

    Where the default never completes as many as published, all are counted at the end: infinity.
    """
    enough = round(len(rows) * DEFAULT_DONE / JOBS)
    if each.after is None:
        before = curve(rows, each.default, seed, each.setting, enough=enough)
        time = before.time_of(enough)
    else:
        time = 3600 * each.after
        before = curve(rows, each.default, seed, each.setting, until=time)
    after = curve(rows, each.placement, seed, each.setting, until=time)
    return time, before.done_by(time), after.done_by(time)


def _notes(setting: Setting, runs: int) -> tuple[str, ...]:
    sizes = ", ".join(map(str, setting.memories))
    return (
        "Rows 'simulated' were chosen before any result of theirs was seen and are not fitted: "
        f"means of {runs} runs, which differ in the nodes' memories and the cache scores.",
        "Jobs are counted at the moment when the default has completed as many as published, "
        f"{DEFAULT_DONE} of {JOBS:,}: its own number is thereby no result. Blank hours: it never "
        "does, and all are counted at the end.",
        "Which rule the published default is, is not clear: it is said to take the node with the "
        "least free processors, but CloudSim's own, VmAllocationPolicySimple, takes the one with "
        "the most. Both are shown.",
        f"Guessed: as many nodes of each memory, {sizes} GB, dealt at random; published is "
        "nodes of 2 GB and larger. A VM is one core, with the memory that its job used by "
        "processors.",
        "Guessed: all jobs are submitted at once. As the trace has them, they would keep 8 % of "
        "the cores busy, none would wait, and no placement could gain anything.",
        "Guessed: what does not fit waits, first come, first served. 'Full load': the times of "
        "submission are pushed together until jobs come as fast as all cores can do them.",
    )
