"""Fair share: first the jobs of users that have used least of the cluster recently."""

import math
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Mapping, Sequence
from heapq import merge
from itertools import islice

from hpc_sched.sim.jobs.job import Job
from hpc_sched.sim.queues.in_order import Easy
from hpc_sched.sim.queues.queue_discipline import DEPTH, HALF_LIFE, Queue
from hpc_sched.sim.queues.waiting_jobs import KeptOrder
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
        self.by_user: defaultdict[User, float] = defaultdict(float)  # at the time advanced to

    def advance(self, time: float, rates: Mapping[User, float]) -> None:
        """Advance to a time until which users have used the vcpus of ``rates``. O(users)."""
        decay = math.log(2) / self._half_life
        passed = time - self._time
        # What a vcpu that was used all this time counts at its end; expm1 is exact for short ones.
        one = -math.expm1(-decay * passed) / decay
        kept = math.exp(-decay * passed)
        for user, usage in self.by_user.items():
            self.by_user[user] = usage * kept
        for user, rate in rates.items():
            self.by_user[user] += rate * one
        self._time = time

    def of(self, user: User) -> float:
        """Return the usage of a user at the time advanced to, vcpu-seconds."""
        return self.by_user.get(user, 0.0)


class ByUser(KeptOrder):
    """The waiting jobs of each user, in the order of the queue."""

    def __init__(self) -> None:
        """Start with an empty queue."""
        self._waiting: dict[User, tuple[list[int], list[Job]]] = {}  # ranks and jobs
        # Users of equal usage, mostly of none, and the first of their jobs; until these change.
        self._equal: dict[tuple[User, ...], list[Job]] = {}
        self.changes = 0  # number of jobs that have entered or left

    def enter(self, job: Job, rank: int) -> None:
        """Insert a job. O(log waiting jobs), and a shift."""
        ranks, jobs = self._waiting.setdefault(job.user, ([], []))
        place = bisect_left(ranks, rank)
        ranks.insert(place, rank)
        jobs.insert(place, job)
        self._changed(job.user)

    def leave(self, job: Job, rank: int) -> None:
        """Remove a job. O(log waiting jobs), and a shift."""
        ranks, jobs = self._waiting[job.user]
        place = bisect_left(ranks, rank)
        del ranks[place], jobs[place]
        if not jobs:
            del self._waiting[job.user]
        self._changed(job.user)

    def first(self, usage: defaultdict[User, float], most: int) -> list[Job]:
        """Return the first jobs by the usage of their users, at most this number of them.

        Those of users with equal usage are in the order of the queue. O(users log users + most).
        """
        found: list[Job] = []
        users = sorted(self._waiting, key=usage.__getitem__)
        place = 0
        while place < len(users) and len(found) < most:
            end = place + 1
            while end < len(users) and usage[users[end]] == usage[users[place]]:
                end += 1
            equal = tuple(users[place:end])
            jobs = self._merged(equal, most) if len(equal) > 1 else self._waiting[equal[0]][1]
            found += jobs[: most - len(found)]
            place = end
        return found

    def _merged(self, users: tuple[User, ...], most: int) -> list[Job]:
        found = self._equal.get(users)
        if found is None:
            ranked = (zip(*self._waiting[user], strict=True) for user in users)
            found = self._equal[users] = [job for _, job in islice(merge(*ranked), most)]
        return found

    def _changed(self, user: User) -> None:
        self.changes += 1
        for users in [users for users in self._equal if user in users]:
            del self._equal[users]


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
        self._vcpus: dict[User, int] = {}  # of the running jobs
        self._order: list[Job] | None = None  # the first jobs, at this time
        self._changes = -1  # of the queue, until then

    def __call__(self, simulation: Simulation) -> None:
        """Start what can be started. O(users log users) in addition to what EASY does."""
        # Jobs start in these calls only, and each end is followed by one: until now, all jobs
        # that ran after the last call have run.
        self._usage.advance(simulation.now, self._vcpus)
        self._order = None
        self._easy(simulation)
        self._vcpus = dict(simulation.running_jobs.vcpus)

    def _by_usage(self, simulation: Simulation, most: int) -> Sequence[Job]:
        waiting = simulation.waiting.kept(ByUser)
        if self._order is None or waiting.changes != self._changes:
            self._changes = waiting.changes
            self._order = waiting.first(self._usage.by_user, most)
        return self._order


FAIR_SHARE = Queue(
    "fair-share",
    "the user with the least decayed usage first (Slurm's multifactor priority), with EASY "
    "backfilling behind the first job",
    lambda options: FairShare(options.depth, options.half_life),
    ("depth", "half_life"),
)
