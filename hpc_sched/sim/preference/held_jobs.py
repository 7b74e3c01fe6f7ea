"""Jobs that could start, and are held for a place that they prefer."""

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from hpc_sched.sim.cluster.cluster_state import ClusterState
from hpc_sched.sim.cluster.placed_job import PlacedJob
from hpc_sched.sim.engine import Engine, EventKind
from hpc_sched.sim.jobs.job import Job
from hpc_sched.sim.measured.measured_window import Window
from hpc_sched.sim.preference.place_preference import PlacePreference
from hpc_sched.sim.queues.domains import Domains
from hpc_sched.sim.simulation_input import SimulationInput


@dataclass(slots=True)
class _Hold:
    until: float  # s
    entry: int | None  # of its end among the events; None: it has ended


class HeldJobs:
    """The places of jobs that wait, up to a limit, for one that they prefer.

    A job is held from the first attempt on at which the policy has hosts for it, none of which it
    prefers. When its limit is over it takes the best place that there is. It is tried whenever its
    queue discipline tries it, so a better place ends the hold early. A job that would have no
    preferred place on the cluster without other jobs is never held.
    """

    def __init__(
        self,
        setting: SimulationInput,
        preference: PlacePreference,
        engine: Engine,
        log: Callable[[str, int, str], None],
    ) -> None:
        """Start without a job.

        :param log: is called with what happens, the number of the job, and more
        """
        self._setting, self._engine = setting, engine
        self.limit = preference.limit
        self._log = log
        self._preferred = replace(setting, constraints=preference.constraints)
        self._domains = Domains.of(self._preferred)
        self._empty = setting.empty_state()
        self._holds: dict[int, _Hold] = {}  # by number of the job, until it starts
        self._held: dict[int, float] = {}  # times of submission of all jobs that were ever held
        self._started: dict[int, tuple[float, bool]] = {}  # and whether the last place is preferred
        self._judged: PlacedJob | None = None  # the last place that was found to be preferred
        self.ended = 0  # holds whose limits were over
        self.pending = 0  # holds that last

    def placed(self, job: Job, state: ClusterState) -> PlacedJob | None:
        """Return a job on the hosts where it may start now, or None. Two placements at most."""
        if not self.limit:
            return self._setting.placed(job, state)
        # Cheaper than a Rejection: most attempts of held jobs end here.
        if int(self._domains.sums(state.room(*job.size)).max()) >= job.count:
            found = self._preferred.placed(job, state)
            if found is not None and self.is_preferred(found):
                self._judged = found
                return found
        if self.is_held(job):
            return None
        found = self._setting.placed(job, state)
        return None if found is None or self._waits(job) else found

    def is_preferred(self, placed: PlacedJob) -> bool:
        """True if the hosts of a job keep what it prefers: a policy may know no constraints."""
        job, empty = placed.job, self._empty
        group = self._preferred.request(job, empty.capacity(*job.size), empty).group
        planned = np.zeros(len(group.room), dtype=np.int64)
        planned[placed.hosts] = placed.counts
        return group.broken_by(planned) is None

    def is_held(self, job: Job) -> bool:
        """True if a job waits for a place although it could start elsewhere."""
        hold = self._holds.get(job.number)
        return hold is not None and hold.entry is not None

    def started(self, placed: PlacedJob) -> None:
        """Note the place of a job that starts."""
        job = placed.job
        hold = self._holds.pop(job.number, None)
        if hold is not None and hold.entry is not None:
            self._engine.cancel(hold.entry)
            self.pending -= 1
        is_preferred = placed is self._judged or self.is_preferred(placed)
        self._started[job.number] = job.submit, is_preferred

    def held_in(self, window: Window) -> int:
        """Return how many jobs of a window were held."""
        return sum(map(window.holds, self._held.values()))

    def preferred_share_in(self, window: Window) -> float | None:
        """Return the share of started jobs of a window on hosts that they prefer, or None."""
        found = [kept for submit, kept in self._started.values() if window.holds(submit)]
        return sum(found) / len(found) if found else None

    def _waits(self, job: Job) -> bool:
        """True if a job that is not held begins to wait."""
        if job.number in self._holds:
            return False
        best = self._preferred.placed(job, self._empty)
        if best is None or not self.is_preferred(best):
            self._holds[job.number] = _Hold(self._engine.now, None)
            return False
        until = self._engine.now + self.limit
        hold = self._holds[job.number] = _Hold(until, None)

        def end() -> None:
            hold.entry = None
            self.pending -= 1
            self.ended += 1

        hold.entry = self._engine.enter(until, EventKind.WAKE, end)
        self.pending += 1
        self._held[job.number] = job.submit
        self._log("hold", job.number, f"until {until:g}")
        return True
