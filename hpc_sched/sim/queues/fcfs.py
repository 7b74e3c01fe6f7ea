"""First come, first served."""

from hpc_sched.sim.jobs.job import Job
from hpc_sched.sim.queues.base import Order, Queue, by_submission
from hpc_sched.sim.simulation import Simulation


class Fcfs:
    """First come, first served: no job starts before an earlier one, in any order of the queue."""

    def __init__(self, order: Order = by_submission) -> None:
        """Start with an empty queue."""
        self._order = order
        self._blocked: tuple[int, int] | None = None  # first job, and releases seen so far

    def __call__(self, simulation: Simulation) -> Job | None:
        """Start jobs from the head of the queue; return the first that cannot start, or None."""
        while simulation.waiting:
            head = self._order(simulation, 1)[0]
            seen = (head.number, simulation.state.gains)
            # A job that did not fit cannot fit before something is released.
            if self._blocked == seen or not simulation.start(head):
                self._blocked = seen
                return head
        return None


FCFS = Queue("fcfs", "first come, first served", lambda _options: Fcfs())
