"""What a plan of least bottleneck gains on the hops plan: by the model, and by the real SimGrid.

``python -m tests.simgrid.objective_gains`` prints all cells, ten seeds each: runtimes over those by
the hops plan. It takes half an hour of processor time; ``--cells`` and ``--seeds`` bound it.

The same places next to the same neighbours, which are jobs of their own in SimGrid: each computes
and sends in turn, out of phase. Neighbours have patterns of few messages here.
"""

import argparse
import random
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import cycle
from math import ceil

import numpy as np

from hpc_sched.core.arrays import Array
from hpc_sched.experiments.objectives.drawn_neighbours import (
    PACKED,
    SCATTERED,
    DrawnNeighbours,
    Neighbour,
    drawn_neighbours,
)
from hpc_sched.experiments.objectives.fabrics import (
    BOTTLENECK,
    FABRICS,
    HOPS,
    HOST_LATENCY,
    HOST_RATE,
    network_of,
)
from hpc_sched.experiments.objectives.single_jobs import VOLUME, JobStudy, plans, traffic
from hpc_sched.sim.network.links import Network
from hpc_sched.sim.network.messages import program
from hpc_sched.sim.network.messages.iteration import iteration
from hpc_sched.sim.network.neighbours.shared_links import SharedLinks
from hpc_sched.sim.statistics.estimate import Estimate
from tests.simgrid.case_text import Case, FatTree, Rank
from tests.simgrid.drawn_cases import as_ranks, whole_bytes
from tests.simgrid.witness import PYTHON, all_replayed, missing

STUDY = JobStudy()
RANKS, ITERATIONS, FIRST_SEED = 64, 2, 301
FEW_MESSAGES = ("doubling", "halo2", "halo3")
_MARGIN = 1.25  # of the neighbours' iterations, that none ends before the job
_JOB = -1
_SECONDS = 120.0  # of one case, on a busy machine


@dataclass(frozen=True, slots=True)
class Cell:
    """What a gain is of."""

    leaves: int
    pod_ratio: float
    leaf_ratio: float
    neighbours: str
    pattern: str


_SAMPLE = (
    *((SCATTERED, "halo3"), (PACKED, "halo2")),
    *((SCATTERED, "alltoall"), (PACKED, "doubling")),
)
CELLS = (
    *(Cell(16, 1.0, 8.0, *each) for each in (*_SAMPLE, (PACKED, "alltoall"))),
    *(Cell(16, 2.0, 8.0, *each) for each in _SAMPLE),
    *(
        Cell(64, 1.0, 8.0, *each)
        for each in (*_SAMPLE, (PACKED, "alltoall"), (SCATTERED, "doubling"))
    ),
    *(Cell(64, 2.0, 8.0, *each) for each in _SAMPLE if each[1] != "alltoall"),
)


@dataclass(frozen=True, slots=True)
class Gains:
    """Runtimes over those by the hops plan, a number for each seed."""

    cell: Cell
    model: tuple[float, ...]
    simgrid: tuple[float, ...]


def gains(cell: Cell, seeds: Sequence[int]) -> Gains:
    """Return what is gained in a cell, of the seeds in which the two plans differ."""
    model, texts, starts = [], [], []
    topology = FABRICS[cell.leaves].topology()
    network = network_of(topology, cell.leaf_ratio, cell.pod_ratio)
    for seed in seeds:
        drawn = with_few_messages(drawn_neighbours(topology, seed, cell.neighbours, STUDY.taken))
        places = plans(drawn, network, RANKS)
        pair = places[BOTTLENECK.name], places[HOPS.name]
        if pair[0] is None or pair[1] is None or (pair[0] == pair[1]).all():
            continue
        mine, its = (seconds(network, drawn, cell.pattern, hosts) for hosts in pair)
        model.append(mine[_JOB] / its[_JOB])
        for hosts, periods in zip(pair, (mine, its), strict=True):
            case, start = case_of(cell, drawn, hosts, periods)
            texts.append(case.text())
            starts.append(start)
    every = all_replayed(texts, seconds=_SECONDS * len(texts))
    ends = [max(found.ends[:RANKS]) - start for found, start in zip(every, starts, strict=True)]
    return Gains(cell, tuple(model), tuple(np.divide(ends[::2], ends[1::2]).tolist()))


def with_few_messages(drawn: DrawnNeighbours) -> DrawnNeighbours:
    """Return neighbours whose patterns take SimGrid little time."""
    patterns = cycle(FEW_MESSAGES)
    return replace(drawn, jobs=tuple(Neighbour(next(patterns), job.hosts) for job in drawn.jobs))


def seconds(
    network: Network, drawn: DrawnNeighbours, pattern: str, hosts: Array
) -> dict[int, float]:
    """Return the seconds of an iteration of each job, as the study finds them; -1 is the job."""
    shared = SharedLinks(network.capacity)
    for number, job in enumerate(drawn.jobs):
        shared.add(number, traffic(STUDY, network, job.pattern, job.hosts))
    shared.add(_JOB, traffic(STUDY, network, pattern, hosts))
    shared.settle()
    return {number: STUDY.computation + each.seconds for number, each in shared.members.items()}


def case_of(
    cell: Cell, drawn: DrawnNeighbours, hosts: Array, periods: dict[int, float]
) -> tuple[Case, float]:
    """Return the job and its neighbours as one case, the job first, and when the job starts, s.

    Neighbours start at random times of their iteration, and go on for longer than the job.
    """
    fabric = FABRICS[cell.leaves]
    draw = random.Random(f"phases {drawn.seed}")
    longest = ITERATIONS * periods[_JOB] * _MARGIN
    ranks: list[Rank] = []
    start = 0.0
    leaf_of = drawn.topology.leaf_index
    # Jobs under one leaf share no link with any other.
    others = [
        (number, job)
        for number, job in enumerate(drawn.jobs)
        if len(np.unique(leaf_of[job.hosts])) > 1
    ]
    for number, job in [(_JOB, Neighbour(cell.pattern, hosts)), *others]:
        steps = whole_bytes(iteration(job.pattern, len(job.hosts), VOLUME, STUDY.computation))
        is_job = number == _JOB
        times = ITERATIONS if is_job else ceil(longest / periods[number]) + 1
        phase = draw.uniform(0, periods[number] if not is_job else STUDY.computation)
        start = phase if is_job else start
        begin = (program.Computation(phase),)
        ranks += as_ranks(
            program.Program(one.host, begin + one.operations)
            for one in program.programs(steps, job.hosts, times, first=len(ranks))
        )
    tree = FatTree(
        *(HOST_RATE, HOST_LATENCY, 0.0, fabric.pods, fabric.leaves, fabric.hosts),
        ratio=cell.leaf_ratio,
        pod_ratio=cell.pod_ratio,
    )
    return Case(tree, tuple(ranks)), start


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the cells; exit code 77 where SimGrid is missing."""
    parser = argparse.ArgumentParser(description="Gains by the model and by SimGrid.")
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--cells", type=int, default=len(CELLS))
    asked = parser.parse_args(arguments)
    reason = missing(PYTHON)
    if reason is not None:
        print(reason, file=sys.stderr)
        return 77
    print("leaves pods leaves:1 neighbours pattern  seeds  model  +-  SimGrid  +-  sign")
    for cell in CELLS[: asked.cells]:
        found = gains(cell, range(FIRST_SEED, FIRST_SEED + asked.seeds))
        print(row(found), flush=True)
    return 0


def row(found: Gains) -> str:
    """Return a cell as a line."""
    cell, parts = found.cell, []
    for values in (found.model, found.simgrid):
        each = Estimate.of(values, is_drawn=True)
        if each is None:
            return f"{cell}: the two plans are one in all seeds"
        parts.append(f"{each.mean:.3f} {each.half_width or float('nan'):.3f}")
    return (
        f"{cell.leaves:2} {cell.pod_ratio:g} {cell.leaf_ratio:g} {cell.neighbours:9} "
        f"{cell.pattern:8} {len(found.model):2}  {'  '.join(parts)}  {sign(found)}"
    )


def sign(found: Gains) -> str:
    """Return whether the model has SimGrid's sign, or why none is asked."""
    mine, its = (Estimate.of_drawn(values) for values in (found.model, found.simgrid))
    if not (its.is_above(1) or its.is_below(1)):
        return "open"
    return "same" if (mine.mean > 1) == (its.mean > 1) else "OTHER"


if __name__ == "__main__":
    sys.exit(main())
