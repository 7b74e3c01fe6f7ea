"""Drawn cases of the product's patterns, as SimGrid and as the levels of detail read them."""

import random
from collections.abc import Iterable
from dataclasses import dataclass, replace

import numpy as np

from hpc_sched.core.arrays import Array
from hpc_sched.sim.network.messages import program
from hpc_sched.sim.network.messages.iteration import Iteration, iteration
from tests.simgrid.case_text import (
    Barrier,
    Case,
    Compute,
    FatTree,
    Operation,
    Rank,
    Receive,
    Send,
    Wait,
)

# Seeds in groups, each replayed by one process of SimGrid.
GROUPS = tuple(range(first, first + 20) for first in range(0, 200, 20))
PATTERNS = ("ring", "doubling", "alltoall", "halo1", "halo2", "halo3", "bt", "broadcast")
HOST_LATENCY = 1e-6


@dataclass(frozen=True, slots=True, eq=False)
class DrawnCase:
    """A job next to endless flows."""

    seed: int
    pattern: str
    iteration: Iteration
    times: int  # iterations, one after the other
    hosts: Array  # of each rank
    case: Case

    @property
    def longest_latency(self) -> float:
        """Return the latency of a path through the core, s."""
        return 2 * self.case.fabric.latency + 4 * self.case.fabric.uplink_latency

    @property
    def messages_after_each_other(self) -> int:
        """Return the number of steps with messages of all iterations."""
        return self.times * sum(each.times for each in self.iteration if len(each.sender))


def drawn_case(seed: int) -> DrawnCase:
    """Return a job of one pattern on random hosts of a random fabric.

    Patterns take turns. 2 to 32 ranks (BT a square number of them), on hosts of their own or, where
    these are too few and in a third of the others, several on some hosts.
    """
    draw = random.Random(seed)
    fabric = FatTree(
        rate=draw.choice([1.25e8, 1.25e9, 1.25e10]),
        latency=HOST_LATENCY,
        uplink_latency=draw.choice([0.0, HOST_LATENCY]),
        pods=draw.randint(1, 4),
        leaves=draw.randint(1, 4),
        hosts=draw.randint(2, 16),
        ratio=draw.choice([1, 2, 4, 8, draw.uniform(1, 8)]),
    )
    every = range(fabric.pods * fabric.leaves * fabric.hosts)
    pattern = PATTERNS[seed % len(PATTERNS)]
    ranks = draw.choice([4, 9, 16, 25]) if pattern == "bt" else draw.randint(2, 32)
    is_apart = ranks <= len(every) and draw.random() < 2 / 3
    places = draw.sample(every, ranks) if is_apart else draw.choices(every, k=ranks)
    # At the rate of a host's link an iteration sends for 1 ms to 1 s.
    seconds = 10 ** draw.uniform(-3, 0)
    part = draw.uniform(0.1, 0.9)  # of the time, for communication
    steps = whole_bytes(
        iteration(
            pattern, ranks, size=seconds * fabric.rate, computation=seconds * (1 - part) / part
        )
    )
    times = draw.choice([1, 1, 2])
    hosts = np.array(places, dtype=np.int64)
    flows = tuple((a, b) for a, b in (draw.sample(every, 2) for _ in range(draw.randint(0, 20))))
    of_ranks = as_ranks(program.programs(steps, hosts, times))
    return DrawnCase(seed, pattern, steps, times, hosts, Case(fabric, of_ranks, flows))


def with_barriers(drawn: DrawnCase) -> Case:
    """Return the case with a barrier behind each step, as the level of detail steps has it."""
    found = [list[Operation]() for _ in drawn.hosts]
    for each in drawn.iteration:
        of_step = as_ranks(program.programs((replace(each, times=1),), drawn.hosts))
        for operations, rank in zip(found, of_step, strict=True):
            operations += [*rank.operations, Barrier()] * each.times
    ranks = (
        Rank(before.host, tuple(operations * drawn.times))
        for before, operations in zip(drawn.case.ranks, found, strict=True)
    )
    return replace(drawn.case, ranks=tuple(ranks))


def whole_bytes(iteration: Iteration) -> Iteration:
    """Return an iteration whose messages have whole bytes, as those of SimGrid."""
    return tuple(replace(each, size=np.ceil(each.size)) for each in iteration)


def as_ranks(programs: Iterable[program.Program]) -> tuple[Rank, ...]:
    """Return programs of the product as ranks of a case."""
    return tuple(Rank(one.host, tuple(map(_operation, one.operations))) for one in programs)


def _operation(one: program.Operation) -> Operation:
    match one:
        case program.Computation(seconds):
            return Compute(seconds)
        case program.Send(receiver, tag, size):
            return Send(receiver, tag, int(size))
        case program.Receive(sender, tag):
            return Receive(sender, tag)
        case program.Wait():
            return Wait()
