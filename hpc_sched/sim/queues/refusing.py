"""No queue: what does not fit when it is submitted is refused, as a cloud refuses it."""

from hpc_sched.sim.queues.queue_discipline import Queue
from hpc_sched.sim.simulation import Simulation


def refusing(simulation: Simulation) -> None:
    """Start each job, or refuse it; a job that has lost a host too. O(new jobs), placements.

    A job that is held for a preferred place waits until its limit is over.
    """
    for job in list(simulation.waiting.values()):
        if not simulation.start(job) and not simulation.is_held(job):
            simulation.refuse(job)


REFUSE = Queue(
    "refuse",
    "no queue: a job that does not fit at once is refused, as by Nova",
    lambda _options: refusing,
)
