"""An iteration of a parallel application: steps that each depend on the one before.

Each pattern is scaled to a volume, the bytes of the busiest rank of each step over all steps (see
:func:`volume`), so that on hosts of one rank an iteration communicates for volume / rate of a
host's link, whatever its pattern.
"""

from dataclasses import replace

import numpy as np

from hpc_sched.core.traffic.patterns import PATTERNS
from hpc_sched.core.traffic.step import Step, step

Iteration = tuple[Step, ...]


def iteration(pattern: str, ranks: int, size: float, computation: float = 0.0) -> Iteration:
    """Return an iteration of a pattern.

    One rank sends nothing. BT needs a square number: of others, the ranks beyond the largest
    square compute only. O(messages).

    :param size: volume, bytes
    :param computation: of each rank, s; before all steps, but in BT before each of them
    :raises KeyError: for an unknown pattern
    """
    steps = [each for each in PATTERNS[pattern](ranks) if len(each.sender) or each.computation]
    by = volume(tuple(steps))
    if by == 0:
        return (step([], 0.0, computation=computation),)
    stated = any(each.computation for each in steps)
    first = () if stated else (step([], 0.0, computation=computation),)
    return (
        *first,
        *(
            replace(each, size=each.size * size / by, computation=each.computation * computation)
            for each in steps
        ),
    )


def thinned(iteration: Iteration, most: int) -> Iteration:
    """Return an iteration of at most some messages if it has many steps, else the given one.

    One step then stands for some that follow each other, as those of an all to all of many ranks,
    which differ little.
    """
    messages = sum(len(each.sender) for each in iteration)
    together = min(-(-messages // most), len(iteration))
    if together <= 1 or any(each.computation for each in iteration):
        return iteration
    parts = [iteration[i : i + together] for i in range(0, len(iteration), together)]
    return tuple(
        replace(part[len(part) // 2], times=sum(each.times for each in part)) for part in parts
    )


def computation(iteration: Iteration) -> float:
    """Return what each rank computes in an iteration, s."""
    return sum(each.computation * each.times for each in iteration)


def volume(iteration: Iteration) -> float:
    """Return the bytes of the busiest rank of each step, sent or received, over all steps.

    Divided by the rate of a host's link, it is the least time that an iteration communicates with
    one rank on each host.
    """
    return float(sum(each.times * most(each) for each in iteration))


def most(one: Step) -> float:
    """Return the bytes that a step's busiest rank sends or receives."""
    ends = (np.bincount(rank, one.size) for rank in (one.sender, one.receiver))
    return float(max(end.max(initial=0.0) for end in ends))
