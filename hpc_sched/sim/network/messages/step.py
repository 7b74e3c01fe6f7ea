"""An iteration of a parallel application: steps that each depend on the one before."""

from collections.abc import Iterable
from dataclasses import dataclass, replace

import numpy as np

from hpc_sched.core.arrays import Array, Reals


@dataclass(frozen=True, slots=True, eq=False)
class Step:
    """Computation of all ranks, then messages between them; the next step waits for both.

    A rank waits for its own messages only, so ranks drift apart where their neighbours let them.
    """

    sender: Array  # rank. Shape (messages,)
    receiver: Array  # rank. Shape (messages,)
    size: Reals  # bytes. Shape (messages,)
    times: int = 1  # equal steps, one after the other
    computation: float = 0.0  # s, before the messages of each of them

    def is_like(self, other: "Step") -> bool:
        """True if one step is as the other, however often they are done."""
        return self.computation == other.computation and all(
            np.array_equal(mine, its)
            for mine, its in (
                (self.sender, other.sender),
                (self.receiver, other.receiver),
                (self.size, other.size),
            )
        )


Iteration = tuple[Step, ...]


def step(
    messages: Iterable[tuple[Array, Array]], size: float, times: int = 1, computation: float = 0.0
) -> Step:
    """Return a step of messages of one size; ranks send nothing to themselves.

    :param messages: senders with their receivers, by rank
    """
    pairs = [np.broadcast_arrays(*each) for each in messages]
    sender = np.concatenate([np.empty(0, np.int64), *(pair[0] for pair in pairs)])
    receiver = np.concatenate([np.empty(0, np.int64), *(pair[1] for pair in pairs)])
    apart = sender != receiver
    return Step(
        sender[apart], receiver[apart], np.full(int(apart.sum()), float(size)), times, computation
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
