"""A trace on a cluster under one policy: arrivals, starts, ends and failures of hosts."""

import logging
import math
from collections.abc import Callable, Iterable
from functools import cached_property

from hpc_sched import exceptions
from hpc_sched.sim.cluster.placed_job import PlacedJob
from hpc_sched.sim.engine import Engine, EventKind
from hpc_sched.sim.jobs.job import Job
from hpc_sched.sim.jobs.job_record import IdealPlacements, JobRecord, Outcome, SubmittedJob
from hpc_sched.sim.measures import Measures
from hpc_sched.sim.preference.held_jobs import HeldJobs
from hpc_sched.sim.queues.domains import Domains
from hpc_sched.sim.queues.running_jobs import RunningJobs
from hpc_sched.sim.queues.waiting_jobs import WaitingJobs
from hpc_sched.sim.run_times import RunTimes
from hpc_sched.sim.simulation_input import Failure, SimulationInput
from hpc_sched.topology import plurals

LOG = logging.getLogger(__name__)

Discipline = Callable[["Simulation"], object]
MANY_STARTS = 1000  # starts of a job after which a warning says that it may never end


class Simulation:
    """One run. The same input, trace and failures give the same events.

    Two invariants hold whatever the policy does, and are checked: every submitted job ends, is
    killed, is refused, fails or is counted as left over; no slot is used twice.
    """

    def __init__(
        self,
        setting: SimulationInput,
        discipline: Discipline,
        jobs: Iterable[Job],
        *,
        failures: Iterable[Failure] = (),
        measures: Measures | None = None,
        on_record: Callable[[JobRecord], object] = lambda _record: None,
        log: Callable[[str], None] | None = None,
    ) -> None:
        """Prepare a run; no event happens before :meth:`run`.

        :param discipline: starts waiting jobs; called after all events of a moment
        :param jobs: in the order of submission; taken one at a time
        :param failures: in the order of their times; may be endless
        """
        self.setting = setting
        self._discipline = discipline
        self.state = setting.empty_state()
        self.waiting = WaitingJobs()
        self.running_jobs = RunningJobs()
        self.engine = Engine()
        self.events = 0
        self.submitted = 0
        self.recorded = 0
        self.measures = measures or Measures(setting.cluster)
        self._jobs = iter(jobs)
        self._failures = iter(failures)
        self._on_record = on_record
        self._log = log
        self._submitted_jobs: dict[int, SubmittedJob] = {}  # without those that have ended
        self._run_times = RunTimes(setting, self.engine, self._end)
        self._ideal = IdealPlacements(setting.policy, with_places=setting.network is not None)
        self._empty = setting.empty_state()
        # None: no job waits for a better place.
        self.held = (
            None
            if setting.preference is None
            else HeldJobs(setting, setting.preference, self.engine, self._log_event)
        )
        self._more = False  # whether a job is still to be submitted
        self._repairs = 0  # pending repairs of hosts
        self._enter_next_job()
        self._enter_next_failure()
        self._enter_sample(0.0)

    @cached_property
    def domains(self) -> Domains:
        """The parts of the cluster that one job can use."""
        return Domains.of(self.setting)

    @property
    def chances(self) -> int:
        """Number of events by which a job that had no place may have one.

        Releases, repairs of hosts, and ends of holds.
        """
        return self.state.gains + (0 if self.held is None else self.held.ended)

    @property
    def now(self) -> float:
        """The simulated time, s."""
        return self.engine.now

    def run(self, until: float = math.inf, stopped: Callable[[], bool] = lambda: False) -> None:
        """Run all events until no job is left, or up to and including a time.

        :param stopped: called between two moments; True ends the run
        :raises exceptions.SimulationError: for a job out of the order of submission, without a
            VM, or with the number of another one
        :raises exceptions.ConservationError: if a policy or the simulator used a slot twice
        """
        while (time := self.engine.peek()) <= until and not stopped():
            is_held = self.held is not None and self.held.pending
            if not (self._more or self.state.jobs or (self.waiting and self._repairs) or is_held):
                break
            self.measures.advance(time, len(self.waiting))
            kinds = set()
            while self.engine.peek() == time:
                kinds.add(self.engine.step())
                self.events += 1
            # What a run does must not depend on when it is sampled.
            if kinds != {EventKind.SAMPLE}:
                self._discipline(self)
                self._run_times.settle()
                self.measures.uplinks_used(self._run_times.uplink_use)
            if EventKind.SAMPLE in kinds:
                self.state.check()
                self._enter_sample(self.measures.sample(self.now, self.state, len(self.waiting)))

    def conclude(self) -> None:
        """Record the jobs that still run or wait, and check that no job is lost.

        :raises exceptions.ConservationError: if one is
        """
        self.state.check()
        for submitted in list(self._submitted_jobs.values()):
            self._run_times.stop(submitted)  # so that its record has its factor until now
            self._record(submitted, Outcome.RUNNING if submitted.placed else Outcome.WAITING)
        if self.recorded != self.submitted:
            raise exceptions.ConservationError(
                f"{self.submitted} jobs were submitted, {self.recorded} are accounted for"
            )
        self.measures.concluded()

    def start(self, job: Job, accept: Callable[[PlacedJob], bool] | None = None) -> bool:
        """Start a waiting job if the policy finds hosts for it; return whether it did."""
        where = self.setting if self.held is None else self.held
        placed = where.placed(job, self.state)
        if placed is None or (accept is not None and not accept(placed)):
            return False
        if self.held is not None:
            self.held.started(placed)
        self.state.take(placed)
        del self.waiting[job.number]
        submitted = self._submitted_jobs[job.number]
        submitted.placed, submitted.start = placed, self.now
        submitted.starts += 1
        self.running_jobs.add(job, self.now)
        self._run_times.start(submitted, self.state)
        self.measures.started(placed)
        if self._log is not None:
            self._log_event("start", job.number, placed.text(self.setting.cluster.topology))
        return True

    def is_held(self, job: Job) -> bool:
        """True if a waiting job could start, and waits for a better place."""
        return self.held is not None and self.held.is_held(job)

    def refuse(self, job: Job) -> None:
        """Refuse a waiting job that does not fit at this moment."""
        del self.waiting[job.number]
        submitted = self._submitted_jobs[job.number]
        is_new = self.now == job.submit
        submitted.refusal = f"no place {'at its submission' if is_new else 'when tried again'}"
        self._log_event("refuse", job.number, submitted.refusal)
        self._record(submitted, Outcome.REFUSED)

    def wake(self, time: float) -> None:
        """Have the discipline called at a time to come, even if nothing else happens then."""
        self.engine.enter(time, EventKind.WAKE, lambda: None)

    def running(self) -> dict[int, tuple[float, PlacedJob]]:
        """Return start time and hosts of each running job, by number."""
        return {
            number: (self._submitted_jobs[number].start, placed)
            for number, placed in self.state.jobs.items()
        }

    def _submit(self, job: Job) -> None:
        if job.number in self._submitted_jobs or job.count < 1:
            raise exceptions.SimulationError(
                f"job {job.number} of {job.count} VMs: expected a number of its own, and a VM"
            )
        self.submitted += 1
        self._enter_next_job()
        if self._log is not None:
            self._log_event("submit", job.number, plurals.text(job.count, "VM"))
        ideal = self._ideal.of(
            job,
            lambda: self._empty.capacity(*job.size),
            lambda: self.setting.capacity(job, self._empty),
            lambda capacity: self.setting.request(job, capacity, self._empty),
        )
        submitted = self._submitted_jobs[job.number] = SubmittedJob(job, ideal)
        if ideal.refusal is None:
            self.waiting[job.number] = job
            return
        self._log_event("refuse", job.number, ideal.refusal.operator)
        self._record(submitted, Outcome.REFUSED)

    def _end(self, submitted: SubmittedJob, placed: PlacedJob, outcome: Outcome) -> None:
        if self.state.jobs.get(submitted.job.number) is not placed:
            return  # the end of a start that a failure has undone
        self._release(submitted)
        self._log_event("kill" if outcome is Outcome.KILLED else "end", submitted.job.number)
        self._record(submitted, outcome)

    def _release(self, submitted: SubmittedJob) -> None:
        self.measures.ended(self.state.release(submitted.job.number))
        self._run_times.stop(submitted)
        self.running_jobs.remove(submitted.job, submitted.start)

    def _fail(self, failure: Failure) -> None:
        self._enter_next_failure()
        host = failure.host
        if not self.state.up[host]:
            return  # it is down already
        hit = self.state.applications.jobs_on(host)
        name = self.setting.cluster.topology.hosts[host]
        self._log_event("fail", None, f"{name}: jobs {', '.join(map(str, hit)) or 'none'}")
        # In reverse, so that the job submitted first ends up first in the queue.
        for number in sorted(hit, reverse=True):
            submitted = self._submitted_jobs[number]
            self._release(submitted)
            if self.setting.requeue:
                if submitted.starts == MANY_STARTS:
                    LOG.warning(
                        "%s, seed %d: job %d (%s, %g s) has lost a host %s times, and may never "
                        "end: hosts fail too often for it; --until ends a run",
                        *(self.setting.policy.name, self.setting.seed, number),
                        *(plurals.text(submitted.job.count, "VM"), submitted.job.runtime),
                        f"{MANY_STARTS:,}",
                    )
                submitted.placed, submitted.factor = None, 1.0
                self.waiting.put_first(submitted.job)
            else:
                self._record(submitted, Outcome.FAILED)
        self.state.set_up(host, False)
        if failure.repair is not None:
            self._repairs += 1
            self.engine.enter(
                self.now + failure.repair, EventKind.REPAIR, lambda: self._repair(host)
            )

    def _repair(self, host: int) -> None:
        self._repairs -= 1
        self.state.set_up(host, True)
        self._log_event("repair", None, self.setting.cluster.topology.hosts[host])

    def _record(self, submitted: SubmittedJob, outcome: Outcome) -> None:
        del self._submitted_jobs[submitted.job.number]
        self.recorded += 1
        record = submitted.record(outcome, self.setting.cluster.topology, self.now)
        if self.setting.network is not None:
            record = submitted.networked(record)
        self.measures.recorded(record)
        self._on_record(record)

    def _log_event(self, what: str, job: int | None, more: str = "") -> None:
        if self._log is not None:
            number = "" if job is None else f" {job}"
            self._log(f"{self.now:g} {what}{number}{f': {more}' if more else ''}")

    def _enter_next_job(self) -> None:
        job = next(self._jobs, None)
        self._more = job is not None
        if job is None:
            return
        if job.submit < self.now:
            raise exceptions.SimulationError(
                f"job {job.number} is submitted at {job.submit:g} s, after one at {self.now:g} s: "
                "expected jobs in the order of submission"
            )
        self.engine.enter(job.submit, EventKind.SUBMIT, lambda: self._submit(job))

    def _enter_next_failure(self) -> None:
        failure = next(self._failures, None)
        if failure is not None:
            self.engine.enter(failure.time, EventKind.FAILURE, lambda: self._fail(failure))

    def _enter_sample(self, time: float) -> None:
        self.engine.enter(time, EventKind.SAMPLE, lambda: None)
