"""EASY and conservative backfilling as the textbook has them: they count cores, nothing else.

Written from Lifka 1995 and from the algorithms of Mu'alem, Feitelson 2001, without any part of
the simulator.
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
    for index in queue:
        job = jobs[index]
        if job.cores > free:
            break
        started.append(index)
        free -= job.cores
        expected.append((now + job.estimate, job.cores))
    if len(started) == len(queue):
        return started
    # The shadow time of the first job that does not fit, and the cores that it leaves then.
    first, available, shadow = job.cores, free, math.inf
    for end in sorted({end for end, _ in expected}):
        available += sum(freed for at, freed in expected if at == end)
        if available >= first:
            shadow = end
            break
    extra = available - first
    for index in queue[len(started) + 1 :]:
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


def conservative_starts(jobs: Sequence[CoreJob], cores: int) -> tuple[list[float], list[float]]:
    """Return the start of each job, and the first reservation of each; all fit on the machine."""
    starts, promised = [math.nan] * len(jobs), [math.nan] * len(jobs)
    running: set[int] = set()
    queue: list[int] = []
    reserved: dict[int, float] = {}
    coming = 0
    now = -math.inf
    while running or queue or coming < len(jobs):
        ends = [starts[index] + jobs[index].runtime for index in running]
        begins = [start for start in reserved.values() if start > now]
        submit = jobs[coming].submit if coming < len(jobs) else math.inf
        now = min([*ends, *begins, submit])
        ended = {index for index in running if starts[index] + jobs[index].runtime == now}
        running -= ended
        while coming < len(jobs) and jobs[coming].submit == now:
            queue.append(coming)
            coming += 1
        # A job ran longer than its estimate.
        if any(start < now for start in reserved.values()):
            reserved.clear()
        for index in queue:
            if ended or index not in reserved:
                reserved.pop(index, None)
                others = [
                    (start, start + jobs[other].estimate, jobs[other].cores)
                    for other, start in reserved.items()
                ]
                others += [
                    (now, max(starts[other] + jobs[other].estimate, now), jobs[other].cores)
                    for other in running
                ]
                reserved[index] = _earliest(jobs[index], others, cores, now)
                if math.isnan(promised[index]):
                    promised[index] = reserved[index]
        free = cores - sum(jobs[index].cores for index in running)
        for index in [index for index in queue if reserved[index] == now]:
            if jobs[index].cores <= free:
                free -= jobs[index].cores
                starts[index] = now
                del reserved[index]
                queue.remove(index)
                running.add(index)
    return starts, promised


def _earliest(
    job: CoreJob, others: Sequence[tuple[float, float, int]], cores: int, now: float
) -> float:
    """Return the first time from which on the cores are free for as long as the estimate."""
    for time in sorted({now, *(end for _, end, _ in others if end > now)}):
        instants = [time, *(start for start, _, _ in others if time < start < time + job.estimate)]
        if all(
            sum(used for start, end, used in others if start <= instant < end) + job.cores <= cores
            for instant in instants
        ):
            return time
    raise AssertionError("expected a job that fits on the machine")
