"""Shortest first: the waiting jobs in the order of their estimates."""

import heapq
from collections.abc import Sequence

from hpc_sched.sim.jobs.job import Job
from hpc_sched.sim.queues.base import Queue
from hpc_sched.sim.queues.easy import Easy
from hpc_sched.sim.simulation import Simulation


def by_estimate(simulation: Simulation, most: int) -> Sequence[Job]:
    """Return the jobs of the shortest estimates; equal ones as submitted. O(waiting jobs)."""
    return heapq.nsmallest(most, simulation.waiting.values(), key=lambda job: job.estimate)


SHORTEST_FIRST = Queue(
    "shortest-first",
    "the shortest estimate first, with EASY backfilling behind the first job",
    lambda options: Easy(options.depth, by_estimate),
    ("depth",),
)
