"""A trace on a cluster under one policy: arrivals, starts, ends and failures of hosts.

Simulation   one run
  run          until the last job has ended, or a time, or an interruption
  start        what a queue discipline asks for: a job is given its places, or not
  conclude     the records of the jobs that have not ended
"""

import math
from collections import OrderedDict
from collections.abc import Callable, Iterable

from hpc_sched import exceptions
from hpc_sched.core.plan.result import Rejection
from hpc_sched.sim.cluster.cluster_state import ClusterState, PlacedJob
from hpc_sched.sim.cluster.host_failures import Failure
from hpc_sched.sim.engine import Engine, EventKind
from hpc_sched.sim.group_requests import Requests
from hpc_sched.sim.ideal_placement import IdealPlacements
from hpc_sched.sim.job_lifecycle import LogEntry, SubmittedJob
from hpc_sched.sim.jobs.job import Job
from hpc_sched.sim.jobs.job_record import JobRecord, Outcome
from hpc_sched.sim.measures import Measures
from hpc_sched.sim.simulation_input import SimulationInput
from hpc_sched.topology import plurals

Discipline = Callable[["Simulation"], None]


class Simulation:
    """One run. The same setting, trace and failures give the same events.

    Every job that is submitted ends, is refused, fails or is counted as left over, and no slot
    is used twice: both are checked whatever the policy does.
    """

    def __init__(
        self,
        setting: SimulationInput,
        discipline: Discipline,
        jobs: Iterable[Job],
        *,
        failures: Iterable[Failure] = (),
        measures: Measures | None = None,
        on_record: Callable[[JobRecord], None] | None = None,
        log: Callable[[LogEntry], None] | None = None,
    ) -> None:
        """Make ready; nothing happens before :meth:`run`.

        :param discipline: starts waiting jobs, asked after everything that happens
        :param jobs: in the order of their submission; taken one at a time
        :param failures: in the order of their times; may be endless
        """
        self.setting = setting
        self._discipline = discipline
        self.state = ClusterState(setting.cluster)
        self.waiting: OrderedDict[int, Job] = OrderedDict()  # in the order of the queue
        self.engine = Engine()
        self.events = 0
        self.submitted = 0
        self.recorded = 0
        self.measures = measures or Measures(setting.cluster)
        self._jobs = iter(jobs)
        self._failures = iter(failures)
        self._on_record = on_record
        self._log = log
        self._lives: dict[int, SubmittedJob] = {}
        self._empty = IdealPlacements(setting.policy)
        self._nobody = ClusterState(setting.cluster)
        self._requests = Requests(setting)
        self._more = False  # whether there is a job that has not been submitted
        self._repairs = 0  # hosts that will be back
        self._sample_due = False
        self._enter_next_job()
        self._enter_next_failure()
        self.engine.enter(0.0, EventKind.SAMPLE, self._mark_sample)

    @property
    def now(self) -> float:
        """The simulated time, s."""
        return self.engine.now

    def run(self, until: float = math.inf, stopped: Callable[[], bool] = lambda: False) -> None:
        """Let things happen until no job is left, or until a time, that included.

        :param stopped: asked between two moments whether to go on no further
        :raises exceptions.SimulationError: for a job out of the order of submission, without a
            VM, or with the number of another one
        :raises exceptions.ConservationError: where a policy or the simulator used a slot twice
        """
        while self._has_work() and self.engine.peek() <= until and not stopped():
            time = self.engine.peek()
            self.measures.advance(time)
            while self.engine.peek() == time:
                self.engine.step()
                self.events += 1
            self._discipline(self)
            if self._sample_due:
                self._sample()

    def conclude(self) -> None:
        """Record the jobs that run or wait still, and check that no job is lost.

        :raises exceptions.ConservationError: where one is
        """
        self.state.check()
        self.measures.conclude()
        for life in list(self._lives.values()):
            runs = life.standing is not None
            self._record(life, Outcome.RUNNING if runs else Outcome.WAITING)
        if self.recorded != self.submitted:
            raise exceptions.ConservationError(
                f"{self.submitted} jobs were submitted, {self.recorded} are accounted for"
            )

    def start(self, job: Job, accept: Callable[[PlacedJob], bool] | None = None) -> bool:
        """Give a waiting job its places, where the policy finds some; tell whether it did.

        :param accept: whether the places that it would get may be used
        """
        capacity = self._requests.capacity(job, self.state)
        if int(capacity.sum()) < job.count:
            return False
        places = self.setting.policy.places(self._requests.request(job, capacity, self.state))
        if isinstance(places, Rejection):
            return False
        standing = PlacedJob.of(job, places)
        if accept is not None and not accept(standing):
            return False
        self.state.take(standing)
        del self.waiting[job.number]
        life = self._lives[job.number]
        life.standing, life.start = standing, self.now
        if self.setting.slowdown is not None:
            life.factor = self.setting.slowdown(self.state, standing)
        life.starts += 1
        end = self.now + job.runtime * life.factor
        self.engine.enter(end, EventKind.END, lambda: self._end(life, standing))
        self.measures.started(standing)
        self._tell("start", job.number, standing.text(self.setting.cluster.topology))
        return True

    def running(self) -> dict[int, tuple[float, PlacedJob]]:
        """Return the jobs that run by number: when each started, and where it stands."""
        return {
            number: (self._lives[number].start, standing)
            for number, standing in self.state.jobs.items()
        }

    def _has_work(self) -> bool:
        return self._more or bool(self.state.jobs) or bool(self.waiting and self._repairs)

    def _submit(self, job: Job) -> None:
        if job.number in self._lives or job.count < 1:
            raise exceptions.SimulationError(
                f"job {job.number} of {job.count} VMs: expected a number of its own, and a VM"
            )
        self.submitted += 1
        self._enter_next_job()
        self._tell("submit", job.number, plurals.text(job.count, "VM"))
        best = self._empty.best(
            job,
            self.setting.constraints,
            self._nobody.capacity(job.vcpus, job.memory_mb),
            self._requests.capacity(job, self._nobody),
            lambda capacity: self._requests.request(job, capacity, self._nobody),
        )
        life = self._lives[job.number] = SubmittedJob(job, best)
        if life.best.refusal is None:
            self.waiting[job.number] = job
            return
        self._tell("refuse", job.number, life.best.refusal.operator)
        self._record(life, Outcome.REFUSED)

    def _end(self, life: SubmittedJob, standing: PlacedJob) -> None:
        if self.state.jobs.get(life.job.number) is not standing:
            return  # the end of a start that a failure has undone
        self._release(life)
        self._tell("end", life.job.number)
        self._record(life, Outcome.DONE)

    def _release(self, life: SubmittedJob) -> None:
        self.measures.ended(self.state.release(life.job.number))

    def _fail(self, failure: Failure) -> None:
        self._enter_next_failure()
        host = failure.host
        if not self.state.up[host]:
            return  # it is down already
        hit = self.state.jobs_on(host)
        name = self.setting.cluster.topology.hosts[host]
        self._tell("fail", None, f"{name}: jobs {', '.join(map(str, hit)) or 'none'}")
        # The one that was submitted first shall be the first of the queue.
        for number in sorted(hit, reverse=True):
            life = self._lives[number]
            self._release(life)
            if self.setting.requeue:
                life.standing = None
                self.waiting[number] = life.job
                self.waiting.move_to_end(number, last=False)
            else:
                self._record(life, Outcome.FAILED)
        self.state.set_up(host, False)
        if failure.repair is not None:
            self._repairs += 1
            self.engine.enter(
                self.now + failure.repair, EventKind.REPAIR, lambda: self._repair(host)
            )

    def _repair(self, host: int) -> None:
        self._repairs -= 1
        self.state.set_up(host, True)
        self._tell("repair", None, self.setting.cluster.topology.hosts[host])

    def _record(self, life: SubmittedJob, outcome: Outcome) -> None:
        del self._lives[life.job.number]
        self.recorded += 1
        record = life.record(outcome, self.setting.cluster.topology, self.now)
        self.measures.recorded(record)
        if self._on_record is not None:
            self._on_record(record)

    def _tell(self, what: str, job: int | None, more: str = "") -> None:
        if self._log is not None:
            self._log(LogEntry(self.now, what, job, more))

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

    def _mark_sample(self) -> None:
        self._sample_due = True

    def _sample(self) -> None:
        self._sample_due = False
        self.state.check()
        after = self.measures.sample(self.now, self.state, len(self.waiting))
        self.engine.enter(after, EventKind.SAMPLE, self._mark_sample)
