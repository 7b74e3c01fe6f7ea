"""What the product's levels of detail say of a drawn case, and how far that is from SimGrid."""

import time
from dataclasses import dataclass

import numpy as np

from hpc_sched.core.arrays import Reals
from hpc_sched.sim.network.link_bytes import LinkBytes, LinkLoad
from hpc_sched.sim.network.messages import case_file
from hpc_sched.sim.network.messages.iteration import computation
from hpc_sched.sim.network.placed_steps import PlacedSteps
from hpc_sched.sim.network.replay import replay
from tests.simgrid.drawn_cases import DrawnCase
from tests.simgrid.witness import Replayed


@dataclass(frozen=True, slots=True)
class Cpu:
    """Processor time that each level of detail took, s."""

    replay: float
    steps: float
    links: float


@dataclass(frozen=True, slots=True, eq=False)
class Levels:
    """Times of a case by level of detail, s."""

    ends: Reals  # of each rank, by replay. Shape (ranks,)
    steps: float  # all iterations
    links: float
    cpu: Cpu


@dataclass(frozen=True, slots=True)
class Errors:
    """Differences from SimGrid's times, as parts of these."""

    replay: float  # the largest of all ranks
    steps: float  # of the last rank's end
    links: float


def levels(drawn: DrawnCase) -> Levels:
    """Return the times of a case; replay reads it as a text."""
    case = case_file.parse(drawn.case.text(), f"seed {drawn.seed}")
    network = case.network

    def steps() -> float:
        placed = PlacedSteps.of(network, drawn.iteration, drawn.hosts)
        return placed.seconds(network.capacity, case.others)

    def links() -> float:
        placed = PlacedSteps.of(network, drawn.iteration, drawn.hosts)
        load = LinkLoad.of(network.capacity, case.others)
        return LinkBytes.of(network, placed).seconds(network.capacity, load)

    alone, cpu = computation(drawn.iteration), [time.process_time()]
    ends = replay(network, case.ranks, case.others)
    cpu.append(time.process_time())
    by_steps = drawn.times * (alone + steps())
    cpu.append(time.process_time())
    by_links = drawn.times * (alone + links())
    cpu.append(time.process_time())
    return Levels(ends, by_steps, by_links, Cpu(*np.diff(cpu).tolist()))


def errors(found: Levels, expected: Replayed) -> Errors:
    """Return how far the levels are from SimGrid."""
    ends = np.array(expected.ends)
    return Errors(
        replay=float(np.max(np.abs(found.ends - ends) / ends)),
        steps=found.steps / expected.seconds - 1,
        links=found.links / expected.seconds - 1,
    )
