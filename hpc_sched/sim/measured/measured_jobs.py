"""Numbers of the jobs that are measured, from their records: outcomes, waits, hops, leaves."""

import math
from array import array
from collections import Counter

from hpc_sched.sim.jobs.job_record import JobRecord, NetworkedJobRecord, Outcome

# Shorter runtimes count as this one, in s: a wait of a minute is no disaster for a job of one
# second (Feitelson's bounded slowdown).
SLOWDOWN_BOUND = 10.0


def bounded_slowdown(submit: float, end: float, runtime: float) -> float:
    """Return the time from submission to end over the runtime, at least 1."""
    return max((end - submit) / max(runtime, SLOWDOWN_BOUND), 1.0)


class MeasuredJobs:
    """The numbers of jobs that have ended, or were left when the run stopped. O(1) per job."""

    def __init__(self) -> None:
        self.outcomes: Counter[Outcome] = Counter()
        self.refusals: Counter[str] = Counter()
        self.restarts = 0
        # Numbers of all jobs that were done, in the order of their ends; 8 bytes each.
        self.waits, self.slowdowns, self.factors = (array("d") for _ in range(3))
        self.apart = 0  # jobs done on several islands, which have no Hop-Byte
        # Sums over the jobs that were done.
        self._hop_bytes = self._least_hop_bytes = 0.0
        self._pairs = 0
        self._leaves = self._least_leaves = 0
        # On a network: host-seconds that jobs ran for and that they lost by their neighbours.
        self._host_seconds = self._lost = 0.0

    def add(self, record: JobRecord) -> None:
        """Count a job by its record."""
        self.outcomes[record.outcome] += 1
        self.restarts += record.restarts
        if record.outcome is Outcome.REFUSED:
            self.refusals[record.reason] += 1
        if record.outcome is not Outcome.DONE:
            return
        assert record.start is not None
        assert record.end is not None
        self.waits.append(record.start - record.submit)
        self.slowdowns.append(bounded_slowdown(record.submit, record.end, record.runtime))
        self.factors.append(record.factor)
        if isinstance(record, NetworkedJobRecord):
            self._host_seconds += record.host_seconds
            self._lost += record.lost
        if math.isinf(record.hop_bytes):
            self.apart += 1
        elif record.least_hop_bytes is not None:
            self._hop_bytes += record.hop_bytes
            self._least_hop_bytes += record.least_hop_bytes
            self._pairs += math.comb(record.vms, 2)
        if record.least_leaves is not None:
            self._leaves += record.leaves
            self._least_leaves += record.least_leaves

    @property
    def hop_byte_ratio(self) -> float | None:
        """Hop-Byte of all jobs over the sum of the least of each; None without any."""
        return _ratio(self._hop_bytes, self._least_hop_bytes)

    @property
    def hops_per_pair(self) -> float | None:
        """Hops between two VMs of one job, mean over all pairs; None without a pair."""
        return _ratio(self._hop_bytes, self._pairs)

    @property
    def lost(self) -> float | None:
        """Share of hosts' time that jobs lost by their neighbours; None without a network."""
        return _ratio(self._lost, self._host_seconds)

    @property
    def leaf_ratio(self) -> float | None:
        """Leaves of all jobs, those apart too, over the sum of the fewest; None without any."""
        return _ratio(self._leaves, self._least_leaves)


def _ratio(value: float, least: float) -> float | None:
    return value / least if least else None
