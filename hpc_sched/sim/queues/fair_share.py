"""Fair share: first the jobs of users that have used least of the cluster recently."""

import heapq
import math
from collections import Counter
from collections.abc import Mapping, Sequence

from hpc_sched.sim.jobs.job import Job
from hpc_sched.sim.queues.in_order import Easy
from hpc_sched.sim.queues.queue_discipline import DEPTH, HALF_LIFE, Queue
from hpc_sched.sim.simulation import Simulation

User = int | None  # None: jobs whose user is unknown


class DecayedUsage:
    """Usage of each user: vcpu-seconds, each halved once per half-life since it was used.

    With rate r(s) of the vcpus of a user's running jobs at time s and half-life H the usage at
    time t is the integral of r(s) * 2 ** (-(t - s) / H) over s up to t.
    """

    def __init__(self, half_life: float) -> None:
        """Start at time 0, without any usage.

        :param half_life: s, above 0
        """
        self._half_life = half_life
        self._time = 0.0
        self._usage: dict[User, float] = {}

    def advance(self, time: float, rates: Mapping[User, float]) -> None:
        """Advance to a time until which users have used the vcpus of ``rates``. O(users)."""
        decay = math.log(2) / self._half_life
        passed = time - self._time
        # What a vcpu that was used all this time counts at its end; expm1 is exact for short ones.
        one = -math.expm1(-decay * passed) / decay
        for user in {*self._usage, *rates}:
            kept = self.of(user) * math.exp(-decay * passed)
            self._usage[user] = kept + rates.get(user, 0.0) * one
        self._time = time

    def of(self, user: User) -> float:
        """Return the usage of a user at the time advanced to, vcpu-seconds."""
        return self._usage.get(user, 0.0)


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
        return heapq.nsmallest(
            most, simulation.waiting.values(), key=lambda job: self._usage.of(job.user)
        )


FAIR_SHARE = Queue(
    "fair-share",
    "the user with the least decayed usage first (Slurm's multifactor priority), with EASY "
    "backfilling behind the first job",
    lambda options: FairShare(options.depth, options.half_life),
    ("depth", "half_life"),
)
