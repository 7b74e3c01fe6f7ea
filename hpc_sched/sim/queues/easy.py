"""EASY backfilling: later jobs start first if they do not delay the first one."""

from hpc_sched.sim.queues.base import DEPTH, Order, Queue, by_submission
from hpc_sched.sim.queues.fcfs import Fcfs
from hpc_sched.sim.queues.reservation import Reservation
from hpc_sched.sim.simulation import Simulation


class Easy:
    """EASY backfilling (Lifka 1995): later jobs may start first if they do not delay the head.

    The first job that does not fit gets a reservation: the earliest time at which, by the
    walltimes of the running jobs, one island, or one switch of a required level, has room for
    all its VMs. A later job starts before it if it ends by then, or leaves that room free. Room
    is vcpus and memory. Cache scores, processor types and a bound on leaves may delay the first
    job further; the reservation does not foresee that.

    Jobs that run beyond their estimates delay the reservation: they are expected to end at any
    moment.
    """

    def __init__(self, depth: int = DEPTH, order: Order = by_submission) -> None:
        """Start with an empty queue.

        :param depth: number of waiting jobs behind the first one that may start before it
        """
        self._depth = depth
        self._order = order
        self._in_order = Fcfs(order)
        self.reservation: Reservation | None = None  # of the first waiting job
        self._not_fitting: set[int] = set()  # jobs without a place since the reservation was made

    def __call__(self, simulation: Simulation) -> None:
        """Start what can be started. O(running jobs + depth * a placement)."""
        head = self._in_order(simulation)
        if head is None or self._depth == 0:
            return
        kept = self.reservation
        if kept is None or not kept.is_valid(head, simulation):
            kept = self.reservation = Reservation(head, simulation)
            self._not_fitting.clear()
        for job in self._order(simulation, 1 + self._depth)[1:]:
            # A job that did not fit cannot fit before something is released.
            if job.number in self._not_fitting:
                continue
            if not (kept.can_allow(job) and simulation.start(job, kept.allows)):
                self._not_fitting.add(job.number)


EASY = Queue(
    "easy",
    "EASY backfilling (Lifka 1995)",
    lambda options: Easy(options.depth),
    ("depth",),
)
