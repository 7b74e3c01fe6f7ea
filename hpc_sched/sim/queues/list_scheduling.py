"""List scheduling: every waiting job that fits starts."""

from itertools import takewhile

from hpc_sched.sim.queues.base import Queue
from hpc_sched.sim.simulation import Simulation


class ListScheduling:
    """List scheduling (Graham 1969; Garey, Graham 1975): jobs that do not fit are passed over.

    Jobs are tried in the order of submission, and nothing is reserved: a large job may wait for
    as long as smaller ones keep arriving.
    """

    def __init__(self) -> None:
        """Start with an empty queue."""
        self._not_fitting: set[int] = set()  # jobs without a place since the last release
        self._gains = 0  # releases seen so far

    def __call__(self, simulation: Simulation) -> None:
        """Start what fits. O(waiting jobs) after a release, else O(new jobs), placements each."""
        # A job that did not fit cannot fit before something is released.
        if self._gains != simulation.state.gains:
            self._gains = simulation.state.gains
            self._not_fitting.clear()
        # New jobs are at the end of the queue; one that has lost a host has released others.
        latest = reversed(simulation.waiting.values())
        untried = list(takewhile(lambda job: job.number not in self._not_fitting, latest))
        for job in reversed(untried):
            if not simulation.start(job):
                self._not_fitting.add(job.number)


LIST_SCHEDULING = Queue(
    "list-scheduling",
    "every job that fits starts, without reservations (Graham 1969)",
    lambda _options: ListScheduling(),
)
