"""The running jobs as queue disciplines read them: expected ends, and vcpus by user."""

from bisect import bisect_left, insort
from collections import Counter

from hpc_sched.sim.jobs.job import Job


class RunningJobs:
    """What is kept of the running jobs. O(log jobs) for a start or an end, and a shift."""

    def __init__(self) -> None:
        """Start without any job."""
        self.ends: list[tuple[float, int]] = []  # expected end, s, and number of the job; sorted
        self.vcpus: Counter[int | None] = Counter()  # by user; None: jobs whose user is unknown

    def add(self, job: Job, start: float) -> None:
        """Add a job that starts."""
        insort(self.ends, (start + job.estimate, job.number))
        self.vcpus[job.user] += job.count * job.vcpus

    def remove(self, job: Job, start: float) -> None:
        """Remove a job that has left its hosts.

        :param start: when it has started
        """
        del self.ends[bisect_left(self.ends, (start + job.estimate, job.number))]
        self.vcpus[job.user] -= job.count * job.vcpus
        if not self.vcpus[job.user]:
            del self.vcpus[job.user]
