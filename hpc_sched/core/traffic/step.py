"""One step of a parallel application: what its ranks compute, then what they send."""

from collections.abc import Iterable
from dataclasses import dataclass

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
