"""Queues of Gupta2013's trace simulation, and its default without regard to memory.

The paper names no queue discipline. What follows from each is in ``figure_9a``.
"""

from dataclasses import replace

import numpy as np

from hpc_sched.core.arrays import Mask
from hpc_sched.core.plan.result import Rejection
from hpc_sched.core.sharing.cache_interference import EPSILON
from hpc_sched.sim.cluster.cluster import VCPUS
from hpc_sched.sim.cluster.placed_job import PlacedJob
from hpc_sched.sim.jobs.job import Job
from hpc_sched.sim.policies.placement_policy import PlacementRequest, Places, Policy, filled
from hpc_sched.sim.simulation import Simulation

_SLACK = 1e-3  # of rooms by scores, more than single precision loses


def _least_free_blind(request: PlacementRequest) -> Places | Rejection:
    problem = request.problem
    assert problem.packing is not None
    free = problem.packing.free[:, VCPUS]
    by_cores = (free // problem.packing.demand[VCPUS]).astype(np.int64)
    return filled(
        replace(problem, capacity=by_cores), np.lexsort((problem.topology.name_rank, free))
    )


LEAST_FREE_BLIND = Policy(
    "least-free-pe, blind",
    "each VM on the host with the fewest free processors, whatever its free memory",
    _least_free_blind,
    draws=False,
)


class FcfsByCores:
    """First come, first served by cores: only jobs that find too little memory are passed over.

    A policy that ignores memory may choose hosts on which the VMs cannot be created. Were such a
    job to wait at the head of the queue, hardly any other would start.
    """

    def __call__(self, simulation: Simulation) -> None:
        """Start jobs until one finds too few free cores. O(waiting jobs), placements each."""
        state = simulation.state

        def has_memory(placed: PlacedJob) -> bool:
            return bool((placed.takes <= state.free[placed.hosts]).all())

        for job in list(simulation.waiting.values()):
            if job.count * job.vcpus > int(state.free[:, VCPUS].sum()):
                return
            simulation.start(job, has_memory)


class ScreenedListScheduling:
    """List scheduling of jobs that are all submitted at once: the same starts in less time.

    Which jobs cannot fit by cores and cache scores is computed for all waiting jobs at once.
    """

    def __init__(self) -> None:
        """Start with an empty queue."""
        self._screen: Screen | None = None
        self._gains = 0  # releases seen so far

    def __call__(self, simulation: Simulation) -> None:
        """Start what fits. O(waiting jobs * hosts) after each release and start."""
        if self._screen is None:
            self._screen = Screen(list(simulation.waiting.values()))
        elif self._gains == simulation.state.gains:
            return
        self._gains = simulation.state.gains
        tried = 0
        while (fits := self._screen.may_fit(simulation, tried)).any():
            tried += int(fits.argmax())
            if simulation.start(self._screen.jobs[tried]):
                self._screen.drop(tried)
            else:
                tried += 1


class Screen:
    """What decides whether jobs of one core per VM fit by cores and cache scores."""

    def __init__(self, jobs: list[Job]) -> None:
        self.jobs = jobs
        there = [job.application for job in jobs]
        # Shapes (jobs,). Scores are above 0.
        self._counts = np.array([job.count for job in jobs], dtype=np.int64)
        self._scores = np.array([max(each.score, EPSILON) for each in there], dtype=np.float32)
        self._sync = np.array([each.app_class == "sync" for each in there], dtype=np.int64)

    def drop(self, index: int) -> None:
        """Remove a job."""
        del self.jobs[index]
        self._counts = np.delete(self._counts, index)
        self._scores = np.delete(self._scores, index)
        self._sync = np.delete(self._sync, index)

    def may_fit(self, simulation: Simulation, tried: int) -> Mask:
        """Return False for jobs that hosts cannot take. Shape (jobs - tried,). O(jobs * hosts).

        It is a bound: memory is not counted, and rooms by scores are rounded upwards.

        :param tried: jobs at the head that are left out
        """
        state, limits = simulation.state, simulation.setting.limits
        counts, scores, sync = self._counts[tried:], self._scores[tried:], self._sync[tried:]
        hosts = np.flatnonzero(state.free[:, VCPUS] > 0)
        free = state.free[hosts, VCPUS]
        fits: Mask = counts <= free.sum()
        if not simulation.setting.policy.bounded_by_neighbours or not fits.any():
            return fits
        lower = min(limits.alpha, limits.beta)
        higher = np.full(len(state.free), limits.alpha)
        if not sync.all():
            for placed in state.jobs.values():
                if placed.job.application.app_class == "sync":
                    higher[placed.hosts] = lower
        # Left for jobs that are not sync, and for those that are. Shape (2, hosts)
        left = (
            np.stack([higher[hosts], np.full(len(hosts), lower)]) - state.applications.scores[hosts]
        )
        # At the limit, most hosts take none of the jobs.
        useful = left.max(axis=0) >= scores.min() * (1 - _SLACK)
        rooms = left[:, useful].astype(np.float32)[sync] / scores[:, np.newaxis]
        np.floor(rooms + np.float32(_SLACK), out=rooms)
        np.clip(rooms, 0, free[useful].astype(np.float32), out=rooms)
        fits &= rooms.sum(axis=1) >= counts
        return fits
