"""EASY backfilling as the textbook has it: it counts cores, and nothing else.

Written from Lifka 1995 and from the algorithm in section 2 of Mu'alem, Feitelson 2001, without
any part of the simulator.
"""

import heapq
import math
from collections.abc import Sequence
from typing import NamedTuple


class CoreJob(NamedTuple):
    """A job of a textbook."""

    submit: float
    cores: int
    runtime: float
    estimate: float


class _Running(NamedTuple):
    end: float
    expected: float  # end by its estimate
    cores: int


def easy_starts(jobs: Sequence[CoreJob], cores: int) -> list[float]:
    """Return the start of each job; all fit on the machine, in the order of submission."""
    starts = [math.nan] * len(jobs)
    running: list[_Running] = []  # a heap
    queue: list[int] = []
    coming = 0
    free = cores
    now = 0.0
    while running or queue or coming < len(jobs):
        now = min(
            running[0].end if running else math.inf,
            jobs[coming].submit if coming < len(jobs) else math.inf,
        )
        while running and running[0].end == now:
            free += heapq.heappop(running).cores
        while coming < len(jobs) and jobs[coming].submit == now:
            queue.append(coming)
            coming += 1
        for index in _started(queue, jobs, running, free, now):
            queue.remove(index)
            job = jobs[index]
            free -= job.cores
            starts[index] = now
            heapq.heappush(running, _Running(now + job.runtime, now + job.estimate, job.cores))
    return starts


def _started(
    queue: Sequence[int],
    jobs: Sequence[CoreJob],
    running: Sequence[_Running],
    free: int,
    now: float,
) -> list[int]:
    """Return the waiting jobs that start now."""
    # A job that runs beyond its estimate is expected to end now.
    expected = [(max(each.expected, now), each.cores) for each in running]
    started: list[int] = []
    for place, index in enumerate(queue):
        job = jobs[index]
        if job.cores > free:
            break
        started.append(index)
        free -= job.cores
        expected.append((now + job.estimate, job.cores))
    else:
        return started
    # The shadow time of the first job that does not fit, and the cores that it leaves then.
    first, available, shadow = job.cores, free, math.inf
    for end in sorted({end for end, _ in expected}):
        available += sum(freed for at, freed in expected if at == end)
        if available >= first:
            shadow = end
            break
    extra = available - first
    for index in queue[place + 1 :]:
        job = jobs[index]
        if job.cores > free:
            continue
        if now + job.estimate > shadow:
            if job.cores > extra:
                continue
            extra -= job.cores
        free -= job.cores
        started.append(index)
    return started
