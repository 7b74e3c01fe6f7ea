"""The queue disciplines of the simulator: functions that start waiting jobs of a simulation."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from hpc_sched.sim.jobs.job import Job
from hpc_sched.sim.simulation import Discipline, Simulation

DEPTH = 100  # waiting jobs considered behind the first one, as Slurm bounds it (bf_max_job_test)
HALF_LIFE = 7 * 86400.0  # s, of usage; Slurm's PriorityDecayHalfLife has the same default

# The first jobs of the queue, at most this number of them, in the order of a discipline. The same
# list as the last time only while the jobs are the same.
Order = Callable[[Simulation, int], Sequence[Job]]


@dataclass(frozen=True, slots=True)
class QueueOptions:
    """The numbers that a discipline may depend on."""

    depth: int = DEPTH  # waiting jobs that backfilling considers behind the first one
    half_life: float = HALF_LIFE  # s, of the usage that fair share counts


DEFAULTS = QueueOptions()


@dataclass(frozen=True, slots=True)
class Queue:
    """A named queue discipline."""

    name: str
    summary: str  # one line for help texts and reports, with its source
    # A new discipline for each run: it may keep state between its calls.
    discipline: Callable[[QueueOptions], Discipline]
    options: tuple[str, ...] = ()  # the fields of QueueOptions that it reads

    def text(self, options: QueueOptions) -> str:
        """Return the summary with the options that the discipline reads."""
        depth = f", {options.depth} jobs deep" if "depth" in self.options else ""
        half_life = f", half-life {options.half_life:g} s" if "half_life" in self.options else ""
        return f"{self.summary}{depth}{half_life}"


def by_submission(simulation: Simulation, most: int) -> Sequence[Job]:
    """Return the jobs that were submitted first; before them those that lost a host."""
    return simulation.waiting.first(most)
