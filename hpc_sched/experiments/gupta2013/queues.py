"""Queues of Gupta2013's trace simulation, and its default without regard to memory.

The paper names no queue discipline. What follows from each is in ``figure_9a``.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from hpc_sched.core.arrays import Array, Mask, Reals
from hpc_sched.core.plan.result import Rejection
from hpc_sched.core.sharing.cache_interference import EPSILON
from hpc_sched.sim.cluster.cluster import VCPUS
from hpc_sched.sim.cluster.cluster_state import PlacedJob
from hpc_sched.sim.jobs.job import Job
from hpc_sched.sim.policies.base import PlacementRequest, Places, Policy, filled
from hpc_sched.sim.simulation import Simulation


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
        self._gains = -1  # releases seen so far; the first call has seen none

    def __call__(self, simulation: Simulation) -> None:
        """Start what fits. O(waiting jobs * hosts) after each release and start."""
        if self._gains == simulation.state.gains:
            return
        self._gains = simulation.state.gains
        jobs = list(simulation.waiting.values())
        screen = Screen.of(jobs)
        tried = 0
        while (fits := screen.may_fit(simulation, tried)).any():
            tried += int(fits.argmax()) + 1
            simulation.start(jobs[tried - 1])


@dataclass(frozen=True, slots=True, eq=False)
class Screen:
    """What decides whether jobs fit by cores and cache scores. Shapes (jobs,)."""

    counts: Array  # VMs
    scores: Reals  # of a VM, above 0
    is_sync: Array  # 0 or 1

    @classmethod
    def of(cls, jobs: Sequence[Job]) -> "Screen":
        """Return the screen of jobs with one core per VM."""
        there = [job.application for job in jobs]
        return cls(
            np.array([job.count for job in jobs], dtype=np.int64),
            np.array([max(each.score, EPSILON) for each in there]),
            np.array([each.app_class == "sync" for each in there], dtype=np.int64),
        )

    def may_fit(self, simulation: Simulation, tried: int) -> Mask:
        """Return False for jobs that hosts cannot take. Shape (jobs - tried,). O(jobs * hosts).

        It is a bound: memory is not counted, and sums of scores are rounded upwards.

        :param tried: first jobs that are left out
        """
        state, limits = simulation.state, simulation.setting.limits
        counts, is_sync = self.counts[tried:], self.is_sync[tried:]
        hosts = np.flatnonzero(state.free[:, VCPUS] > 0)
        free = state.free[hosts, VCPUS]
        fits: Mask = counts <= free.sum()
        if not simulation.setting.policy.bounded_by_neighbours or not fits.any():
            return fits
        lower = min(limits.alpha, limits.beta)
        higher = np.full(len(state.free), limits.alpha)
        if not is_sync.all():
            for placed in state.jobs.values():
                if placed.job.application.app_class == "sync":
                    higher[placed.hosts] = lower
        # Left for jobs that are not sync, and for those that are. Shape (2, hosts)
        left = np.stack([higher[hosts], np.full(len(hosts), lower)]) - state.scores[hosts]
        # Hosts that take none of the jobs: at the limit, most of them.
        useful = left.max(axis=0) >= self.scores[tried:].min() * (1 - 1e-6)
        rooms = left[:, useful][is_sync] / self.scores[tried:, np.newaxis]
        np.floor(rooms + 1e-6, out=rooms)
        np.minimum(np.maximum(rooms, 0.0, out=rooms), free[useful], out=rooms)
        fits &= rooms.sum(axis=1) >= counts
        return fits
