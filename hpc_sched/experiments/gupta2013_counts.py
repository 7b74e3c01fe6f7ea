"""Completed jobs of several placements at one moment, as Gupta2013's Figure 9 has them."""

import math
import statistics
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from hpc_sched.experiments.gupta2013 import (
    GUESSED,
    JOBS,
    LEAST_FREE,
    MOST_FREE,
    Curve,
    PlacementRule,
    TraceSetup,
    curve,
)
from hpc_sched.experiments.table import Cell, percent
from hpc_sched.sim.jobs.swf import TraceRow

DEFAULT_DONE = 801  # published: jobs of 1,500 that the default has completed when it is compared

COLUMNS = (
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


def quiet(_text: str) -> None:
    """Say nothing."""


@dataclass(frozen=True, slots=True)
class Study:
    """Placements beside defaults, in one setting."""

    placements: tuple[PlacementRule, ...]
    setting: TraceSetup = GUESSED
    numbers: str = "simulated"
    varied: str | None = None  # what differs from what was guessed; None: nothing
    after: float | None = None  # h; None: when a default has completed as many as published
    defaults: tuple[PlacementRule, ...] = (LEAST_FREE, MOST_FREE)


@dataclass(frozen=True, slots=True)
class Count:
    """Completed jobs of a default and of a placement at one moment of one run."""

    time: float  # s; infinity: at the end, as the default never completes as many as published
    before: int
    after: int

    @property
    def gain(self) -> float:
        """The part of the default's jobs by which the placement has completed more."""
        return self.after / self.before - 1 if self.before else 0.0


def published(figure: str, placement: str, jobs: int) -> tuple[Cell, ...]:
    """Return the row of what the paper tells."""
    blank: tuple[Cell, ...] = (None, None, None)
    seen = (DEFAULT_DONE, jobs, percent(jobs / DEFAULT_DONE - 1), None, None)
    return figure, "published", None, LEAST_FREE.name, placement, *blank, *seen


def lines(
    figure: str, studies: Sequence[Study], rows: Sequence[TraceRow], seeds: range, tell: Tell
) -> Iterator[tuple[Cell, ...]]:
    """Yield a row for each default and placement of each study.

    :param rows: the first jobs of the trace
    :param seeds: rows are their means; where something is varied, of the first seed alone
    :param tell: told what is being done
    """
    for number, study in enumerate(studies, start=1):
        tell(f"Figure {figure}: setting {number} of {len(studies)}")
        runs = [counts(study, rows, seed) for seed in (seeds[:1] if study.varied else seeds)]
        for pair in runs[0]:
            yield (figure, *_line(study, *pair, [run[pair] for run in runs]))


def counts(
    study: Study, rows: Sequence[TraceRow], seed: int
) -> dict[tuple[PlacementRule, PlacementRule], Count]:
    """Return the counts of one run, by default and placement."""
    enough = round(len(rows) * DEFAULT_DONE / JOBS)
    before: dict[PlacementRule, Curve] = {}
    time: dict[PlacementRule, float] = {}
    for each in study.defaults:
        if study.after is None:
            before[each] = curve(rows, each, seed, study.setting, enough=enough)
            time[each] = before[each].time_of(enough)
        else:
            time[each] = 3600 * study.after
            before[each] = curve(rows, each, seed, study.setting, until=time[each])
    last = max(time.values())
    after = {each: curve(rows, each, seed, study.setting, until=last) for each in study.placements}
    return {
        (default, each): Count(
            time[default],
            before[default].done_by(time[default]),
            after[each].done_by(time[default]),
        )
        for default in study.defaults
        for each in study.placements
    }


def _line(
    study: Study, default: PlacementRule, placement: PlacementRule, found: Sequence[Count]
) -> tuple[Cell, ...]:
    limited = placement.policy.bounded_by_neighbours
    hours = statistics.fmean(count.time for count in found) / 3600
    gains = [count.gain for count in found]
    return (
        study.numbers,
        study.varied,
        default.policy.name,
        placement.policy.name,
        placement.beta if limited else None,
        percent(placement.less) if limited else None,
        round(hours, 1) if hours < math.inf else None,
        round(statistics.fmean(count.before for count in found), 1),
        round(statistics.fmean(count.after for count in found), 1),
        percent(statistics.fmean(gains)),
        percent(min(gains)),
        percent(max(gains)),
    )
