"""The two placements of Dudina2013, and what one saves against the other."""

import random
from collections.abc import Iterable, Sequence

from hpc_sched.core.classic.listing_1 import group_places
from hpc_sched.core.plan.problem import Problem
from hpc_sched.experiments.experiment_table import gain
from hpc_sched.experiments.shared_cluster import NetworkSetup, PlacementRun, random_places
from hpc_sched.sim.statistics.estimate import Estimate

RANDOM, BUNCH = "random", "bunch-aware"
SETUP = NetworkSetup(share=0.3)


def place(problem: Problem, draw: random.Random) -> dict[str, Sequence[int]]:
    """Return the places of a group, at random and by Listing 1."""
    return {RANDOM: random_places(problem, draw), BUNCH: group_places(problem)}


def of_placement(rows: Iterable[PlacementRun], placement: str) -> list[PlacementRun]:
    """Return the rows of one placement, in their order."""
    return [row for row in rows if row.placement == placement]


def saved(rows: Iterable[PlacementRun], computation: float) -> Estimate:
    """Return the part of the time that bunch-aware placement saves, a run at a time.

    Both placements of a run have the same other jobs.

    :param rows: of one program
    :param computation: s an iteration
    """
    every = tuple(rows)
    pairs = zip(of_placement(every, RANDOM), of_placement(every, BUNCH), strict=True)
    gains = [
        gain(computation + before.communication, computation + after.communication)
        for before, after in pairs
    ]
    return Estimate.of_drawn(gains)
