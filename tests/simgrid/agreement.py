"""How near the product's network model is to SimGrid: ``python -m tests.simgrid.agreement``.

Prints differences from SimGrid's times, as parts of these in percent: the median, 90 % and the
largest. It takes some five minutes.
"""

import sys
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import ArrayLike

from tests.simgrid.drawn_cases import GROUPS, PATTERNS, DrawnCase, drawn_case
from tests.simgrid.four_jobs import four_jobs
from tests.simgrid.levels import errors, levels
from tests.simgrid.witness import PYTHON, Replayed, all_replayed, missing, replayed

LEVELS = ("replay", "steps", "links")
RATIOS, PARTS, SETS = (4.0, 8.0), (0.1, 0.3, 0.5), range(4)


def main() -> int:
    """Print the tables; exit code 77 where SimGrid is missing."""
    reason = missing(PYTHON)
    if reason is not None:
        print(reason, file=sys.stderr)
        return 77
    of_drawn_cases()
    print()
    of_four_jobs()
    return 0


def of_drawn_cases() -> None:
    """Print how near the levels of detail are, in all and by pattern, and what they take."""
    drawn = [drawn_case(seed) for seeds in GROUPS for seed in seeds]
    found = [levels(one) for one in drawn]
    expected = of_simgrid(drawn)
    every = [errors(*each) for each in zip(found, expected, strict=True)]
    head(f"{len(drawn)} drawn cases", "within 3 %")
    for level in LEVELS:
        off = np.abs([getattr(one, level) for one in every])
        row(level, off, f"{(off < 0.03).mean():12.1%}")
    alone = [replace(one, case=replace(one.case, background=())) for one in drawn]
    of_alone = [
        errors(levels(one), times) for one, times in zip(alone, of_simgrid(alone), strict=True)
    ]
    for level in LEVELS:
        off = np.abs([getattr(one, level) for one in of_alone])
        row(f"{level}, without endless flows", off, f"{(off < 0.03).mean():12.1%}")
    for pattern in PATTERNS:
        of_pattern = [
            one for case, one in zip(drawn, every, strict=True) if case.pattern == pattern
        ]
        off = np.abs([one.steps for one in of_pattern])
        row(f"steps, {pattern}", off, f"{(off < 0.03).mean():12.1%}")
    print("\nprocessor time of all, s")
    cost("SimGrid", (one.cpu for one in expected))
    for level in LEVELS:
        cost(level, (getattr(one.cpu, level) for one in found))


def of_simgrid(drawn: Sequence[DrawnCase]) -> list[Replayed]:
    """Return SimGrid's times of cases, of a few in each process."""
    texts = [one.case.text() for one in drawn]
    return [
        one for first in range(0, len(texts), 20) for one in all_replayed(texts[first : first + 20])
    ]


def of_four_jobs() -> None:
    """Print how near the fixed point is for four jobs out of phase, and what it takes."""
    cpu: dict[str, list[float]] = {"SimGrid": [], "replay": [], "fixed point": []}
    replays, rows, sums = [], [], []
    for ratio in RATIOS:
        for part in PARTS:
            of_jobs = []
            for seed in SETS:
                four = four_jobs(seed, ratio, part)
                expected = replayed(four.case.text())
                cpu["SimGrid"].append(expected.cpu)
                ends = np.array(expected.ends)
                replays.append(np.max(np.abs(timed(four.replayed, cpu["replay"]) / ends - 1)))
                iterations = four.iterations(expected)
                found = timed(four.fixed_point, cpu["fixed point"])
                of_jobs += np.abs(found / iterations - 1).tolist()
                sums.append(abs(found.sum() / iterations.sum() - 1))
            rows.append((f"fixed point, {ratio:g} : 1, {part:.0%} communication", of_jobs))
    head(f"{len(sums)} sets of four jobs out of phase")
    row("replay, ends of ranks", replays)
    row("fixed point, iterations", [one for _, of_jobs in rows for one in of_jobs])
    row("fixed point, sum of the four", sums)
    for name, of_jobs in rows:
        row(name, of_jobs)
    print("\nprocessor time of all, s")
    for name, seconds in cpu.items():
        cost(name, seconds)


def timed(function: Callable[[], np.ndarray], seconds: list[float]) -> np.ndarray:
    """Return what a function returns, and add the processor time that it takes."""
    begin = time.process_time()
    found = function()
    seconds.append(time.process_time() - begin)
    return found


def head(title: str, more: str = "") -> None:
    print(f"{title:44}{'50 %':>10}{'90 %':>10}{'100 %':>10}{more:>12}")


def row(name: str, off: ArrayLike, more: str = "") -> None:
    quantiles = np.quantile(off, (0.5, 0.9, 1.0)) * 100
    print(f"{name:44}{''.join(f'{one:10.5f}' for one in quantiles)}{more}")


def cost(name: str, seconds: Iterable[float]) -> None:
    print(f"{name:44}{sum(seconds):10.3f}")


if __name__ == "__main__":
    sys.exit(main())
