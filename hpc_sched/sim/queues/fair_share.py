"""Fair share: first the jobs of users that have used least of the cluster recently."""

import heapq
from collections import Counter
from collections.abc import Sequence

from hpc_sched.sim.jobs.job import Job
from hpc_sched.sim.queues.base import DEPTH, HALF_LIFE, Queue
from hpc_sched.sim.queues.decayed_usage import DecayedUsage, User
from hpc_sched.sim.queues.easy import Easy
from hpc_sched.sim.simulation import Simulation


class FairShare:
    """Priority by fair share, all users with equal shares, and EASY backfilling behind it.

    The model is Slurm's multifactor priority with the fair-share factor alone: 2 ** (-U / S) of a
    user that has the share S of the cluster and has used U of all decayed usage. With equal
    shares this is the order of the users' decayed usage, least first. Jobs of users with equal
    usage are in the order of submission. Slurm updates usage and priorities at intervals
    (PriorityCalcPeriod); here they are exact at every event.
    """

    def __init__(self, depth: int = DEPTH, half_life: float = HALF_LIFE) -> None:
        """Start with an empty queue, and without any usage.

        :param depth: number of waiting jobs behind the first one that may start before it
        :param half_life: time in which usage loses half of its weight, s
        """
        self._easy = Easy(depth, self._by_usage)
        self._usage = DecayedUsage(half_life)
        self._vcpus: Counter[User] = Counter()  # of the running jobs

    def __call__(self, simulation: Simulation) -> None:
        """Start what can be started. O(waiting jobs + running jobs + depth * a placement)."""
        # Jobs start in these calls only, and each end is followed by one: until now, all jobs
        # that ran after the last call have run.
        self._usage.advance(simulation.now, self._vcpus)
        self._easy(simulation)
        self._vcpus = Counter()
        for placed in simulation.state.jobs.values():
            self._vcpus[placed.job.user] += placed.job.count * placed.job.vcpus

    def _by_usage(self, simulation: Simulation, most: int) -> Sequence[Job]:
        waiting = simulation.waiting.values()
        return heapq.nsmallest(most, waiting, key=lambda job: self._usage.of(job.user))


FAIR_SHARE = Queue(
    "fair-share",
    "the user with the least decayed usage first (Slurm's multifactor priority), with EASY "
    "backfilling behind the first job",
    lambda options: FairShare(options.depth, options.half_life),
    ("depth", "half_life"),
)
