"""Completed jobs of several placements at one moment, as in Gupta2013's Figure 9."""

import math
from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import NamedTuple

from hpc_sched.experiments import gupta2013
from hpc_sched.experiments.gupta2013 import LEAST_FREE, MOST_FREE, PlacementRule, TraceSetup, curve
from hpc_sched.experiments.table import Cell, percent
from hpc_sched.sim.jobs.swf import TraceRow

DEFAULT_DONE = 801  # published: jobs of 1,500 that the default has completed when it is compared

COLUMNS = (
    *("figure", "numbers", "varied", "default", "placement", "beta", "runtimes less by, %"),
    *("counted after, h", "jobs of the default", "jobs"),
    *("gain, %", "gain, lowest, %", "gain, highest, %"),
)


@dataclass(frozen=True, slots=True)
class Study:
    """Placements to compare with defaults, in one setup."""

    placements: tuple[PlacementRule, ...]
    setting: TraceSetup = gupta2013.GUESSED
    numbers: str = "simulated"
    varied: str | None = None  # what differs from the guesses; None: nothing
    after: float | None = None  # h; None: when a default has completed the published number
    defaults: tuple[PlacementRule, ...] = (LEAST_FREE, MOST_FREE)


class Count(NamedTuple):
    """Completed jobs of a default and of a placement at one moment of one run."""

    time: float  # s; infinity: at the end, as the default never completes the published number
    before: int
    after: int


def published(figure: str, placement: str, jobs: int) -> tuple[Cell, ...]:
    """Return the published row."""
    blank: tuple[Cell, ...] = (None, None, None)
    seen = (DEFAULT_DONE, jobs, percent(jobs / DEFAULT_DONE - 1), None, None)
    return figure, "published", None, LEAST_FREE.name, placement, *blank, *seen


def lines(
    figure: str,
    studies: Sequence[Study],
    rows: Sequence[TraceRow],
    seeds: range,
    report: Callable[[str], None],
) -> Iterator[tuple[Cell, ...]]:
    """Yield a row for each default and placement of each study.

    :param seeds: rows are their means; where a guess is varied, of the first seed alone
    """
    for number, study in enumerate(studies, start=1):
        report(f"Figure {figure}: setting {number} of {len(studies)}")
        runs = [counts(study, rows, seed) for seed in (seeds[:1] if study.varied else seeds)]
        for pair in runs[0]:
            yield (figure, *_line(study, *pair, [run[pair] for run in runs]))


def counts(
    study: Study, rows: Sequence[TraceRow], seed: int
) -> dict[tuple[PlacementRule, PlacementRule], Count]:
    """Return the counts of one run, by default and placement."""
    enough = round(len(rows) * DEFAULT_DONE / gupta2013.JOBS)
    before: dict[PlacementRule, Sequence[float]] = {}
    time: dict[PlacementRule, float] = {}
    for each in study.defaults:
        if study.after is None:
            ends = curve(rows, each, seed, study.setting, enough=enough)
            time[each] = ends[enough - 1] if enough <= len(ends) else math.inf
        else:
            time[each] = 3600 * study.after
            ends = curve(rows, each, seed, study.setting, until=time[each])
        before[each] = ends
    last = max(time.values())
    after = {each: curve(rows, each, seed, study.setting, until=last) for each in study.placements}
    return {
        (default, each): Count(
            moment, bisect_right(before[default], moment), bisect_right(after[each], moment)
        )
        for default, moment in time.items()
        for each in study.placements
    }


def _line(
    study: Study, default: PlacementRule, placement: PlacementRule, found: Sequence[Count]
) -> tuple[Cell, ...]:
    limited = placement.policy.bounded_by_neighbours
    hours, before, after = (fmean(values) for values in zip(*found, strict=True))
    gains = [each.after / each.before - 1 if each.before else 0.0 for each in found]
    return (
        study.numbers,
        study.varied,
        default.policy.name,
        placement.policy.name,
        placement.beta if limited else None,
        percent(placement.less) if limited else None,
        round(hours / 3600, 1) if hours < math.inf else None,
        round(before, 1),
        round(after, 1),
        *map(percent, (fmean(gains), min(gains), max(gains))),
    )
