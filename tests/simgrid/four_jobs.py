"""Four jobs out of phase as a case for SimGrid, and how near the product's model is to it."""

from dataclasses import dataclass

import numpy as np

from hpc_sched.core.arrays import Reals
from hpc_sched.sim.network.links import Network
from hpc_sched.sim.network.messages.program import Program
from hpc_sched.sim.network.neighbours.traffic import Traffic
from hpc_sched.sim.network.replay import replay
from tests.simgrid.case_text import Case, FatTree
from tests.simgrid.drawn_cases import as_ranks
from tests.simgrid.witness import Replayed
from tests.unit.jobs_out_of_phase import mean_periods, out_of_phase, period, settled


@dataclass(frozen=True, slots=True, eq=False)
class FourJobs:
    """Jobs next to each other, and all that they do as one case."""

    network: Network
    jobs: list[Traffic]
    programs: list[Program]
    case: Case

    def replayed(self) -> Reals:
        """Return when each rank ends by the product's replay, s. Shape (ranks,)."""
        return replay(self.network, self.programs)

    def fixed_point(self) -> Reals:
        """Return the seconds of an iteration by the product's fixed point. Shape (jobs,)."""
        every = range(len(self.jobs))
        links = settled(self.network, self.jobs, every)
        return np.array([period(links, number) for number in every])

    def iterations(self, expected: Replayed) -> Reals:
        """Return the mean seconds of an iteration that SimGrid has seen. Shape (jobs,)."""
        return np.array(mean_periods(np.array(expected.ends), self.programs))


def four_jobs(seed: int, ratio: float, part: float = 0.3) -> FourJobs:
    """Return the jobs of :func:`out_of_phase`, on a fat tree as SimGrid has it."""
    network, jobs, programs = out_of_phase(seed, ratio, part)
    fabric = FatTree(
        rate=1.25e9, latency=1e-6, uplink_latency=0.0, pods=4, leaves=4, hosts=16, ratio=ratio
    )
    return FourJobs(network, jobs, programs, Case(fabric, as_ranks(programs)))
