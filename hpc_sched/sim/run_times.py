"""When running jobs end; on a network their speeds change while they run."""

from collections.abc import Callable
from dataclasses import dataclass

from hpc_sched.core.arrays import Reals
from hpc_sched.sim.cluster.cluster_state import ClusterState
from hpc_sched.sim.cluster.placed_job import PlacedJob
from hpc_sched.sim.engine import Engine, EventKind
from hpc_sched.sim.jobs.job_record import Outcome, SubmittedJob
from hpc_sched.sim.network.neighbours.job_speeds import JobSpeeds, Speed
from hpc_sched.sim.simulation_input import SimulationInput

_AS_STATED = Speed(1.0, 0.0, 0.0)


@dataclass(slots=True)
class _Run:
    """A job on the network."""

    submitted: SubmittedJob
    left: float  # s of its stated runtime
    since: float  # when the speed has changed last, s
    speed: Speed
    is_steady: bool = True  # whether it has had one speed from the start on
    entry: int | None = None  # of its end among the events


class RunTimes:
    """The ends of running jobs."""

    def __init__(
        self,
        setting: SimulationInput,
        engine: Engine,
        end: Callable[[SubmittedJob, PlacedJob, Outcome], None],
    ) -> None:
        """Start without a job.

        :param end: called at the end of a job, also of a start that a failure has undone
        """
        self._setting, self._engine, self._end = setting, engine, end
        self._speeds = None if setting.network is None else JobSpeeds(setting.network)
        self._runs: dict[int, _Run] = {}  # of jobs on the network

    def start(self, submitted: SubmittedJob, state: ClusterState) -> None:
        """Note a job that has its hosts; enter its end, or leave it to :meth:`settle`."""
        job, placed = submitted.job, submitted.placed
        assert placed is not None
        if self._setting.slowdown is not None:
            submitted.factor = self._setting.slowdown(state, placed)
        share = job.communication.share
        if self._speeds is None or not job.communication.is_of(job.count):
            self._enter(submitted, job.runtime * submitted.factor)
        elif placed.only_host is not None:
            # Communication within a host takes its part of the stated runtime.
            submitted.factor = share + (1 - share) * submitted.factor
            self._enter(submitted, job.runtime * submitted.factor)
        else:
            self._runs[job.number] = _Run(submitted, job.runtime, self._engine.now, _AS_STATED)
            self._speeds.start(
                *(job.number, job.communication.pattern, share),
                places=placed.places,
                # A job that no island holds has no best hosts: its own are the best.
                best=submitted.ideal.places or placed.places,
                slowness=submitted.factor,
            )

    def stop(self, submitted: SubmittedJob) -> None:
        """Note that a job has left its hosts, for any reason, or that it had none."""
        if submitted.placed is not None:
            ran = self._engine.now - submitted.start
            submitted.host_seconds += len(submitted.placed.hosts) * ran
        run = self._runs.pop(submitted.job.number, None)
        if run is None:
            return
        assert self._speeds is not None
        self._speeds.end(submitted.job.number)
        self._advance(run)
        done = submitted.job.runtime - run.left
        if done > 0:
            ran = self._engine.now - submitted.start
            submitted.factor = run.speed.factor if run.is_steady else ran / done
        if run.entry is not None:
            self._engine.cancel(run.entry)

    @property
    def uplink_use(self) -> Reals | None:
        """Part of the uplinks of each level that jobs take now; None without a network."""
        return None if self._speeds is None else self._speeds.uplink_use

    def settle(self) -> None:
        """Enter the ends of jobs that have started, and anew those whose speed has changed."""
        if self._speeds is None:
            return
        for number, speed in self._speeds.settle():
            run = self._runs[number]
            self._advance(run)
            is_first, before = run.entry is None, run.speed.factor
            run.speed = speed
            if is_first or speed.factor != before:
                if run.entry is not None:
                    self._engine.cancel(run.entry)
                    run.is_steady = False
                run.entry = self._enter(run.submitted, run.left * speed.factor)

    def _advance(self, run: _Run) -> None:
        passed = self._engine.now - run.since
        placed = run.submitted.placed
        assert placed is not None
        run.submitted.lost += run.speed.lost * passed * len(placed.hosts)
        run.submitted.caused += run.speed.caused * passed
        run.left = max(run.left - passed / run.speed.factor, 0.0)
        run.since = self._engine.now

    def _enter(self, submitted: SubmittedJob, left: float) -> int:
        """Enter the end of a job that runs for some more time, s; return the event's number."""
        now = self._engine.now
        ran = now - submitted.start
        duration, outcome = self._setting.duration(submitted.job, left, ran)
        placed = submitted.placed
        assert placed is not None

        def end() -> None:
            run = self._runs.get(submitted.job.number)
            # The job may have started again since, while this end was left among the events.
            if run is not None and submitted.placed is placed:
                run.entry = None
            self._end(submitted, placed, outcome)

        return self._engine.enter(now + duration, EventKind.END, end)
