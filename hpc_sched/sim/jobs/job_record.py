"""A job from its submission on: its best placement, its state, and the record of its end."""

import hashlib
from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, replace
from enum import StrEnum

from hpc_sched.core.arrays import Array
from hpc_sched.core.hopbyte import hop_bytes_of_leaves
from hpc_sched.core.plan.result import Plan, Rejection
from hpc_sched.core.traffic.patterns import NONE
from hpc_sched.sim.cluster.placed_job import PlacedJob
from hpc_sched.sim.jobs.job import Job
from hpc_sched.sim.policies.placement_policy import PlacementRequest, Places, Policy
from hpc_sched.topology.model import Topology


class Outcome(StrEnum):
    """How a job ended."""

    DONE = "done"
    REFUSED = "refused"  # has no place even on the cluster without other jobs
    KILLED = "killed"  # ran beyond its walltime
    FAILED = "failed"  # lost a host
    RUNNING = "running"  # when the simulation stopped
    WAITING = "waiting"  # when the simulation stopped


_MOST = 4096  # different jobs whose ideal placements are kept
_ENDED = (Outcome.DONE, Outcome.KILLED, Outcome.FAILED)  # after a start


@dataclass(frozen=True, slots=True)
class JobRecord:
    """One job from its submission to its end; times in s since the simulation's start."""

    number: int
    trace_job: int | None  # number in the trace
    trace_submit: float | None  # s, as in the trace
    outcome: Outcome
    app_class: str
    submit: float
    start: float | None
    end: float | None
    runtime: float  # as the trace has it
    factor: float  # by which the placement made it longer
    vms: int
    vcpus: int  # of one VM
    memory_mb: int  # of one VM
    hosts: int
    leaves: int
    least_leaves: int | None  # on the cluster without jobs
    hop_bytes: float
    least_hop_bytes: float | None  # on the cluster without jobs
    restarts: int = 0
    reason: str = ""  # why it was refused


@dataclass(frozen=True, slots=True)
class NetworkedJobRecord(JobRecord):
    """The same on a network; losses in host-seconds: a second that a host of a job waited.

    Losses are of all starts, and so is the time on hosts that they are a part of.
    """

    pattern: str = NONE
    communication: float = 0.0  # part of its runtime, as stated
    lost: float = 0.0  # by its neighbours
    caused: float = 0.0  # that its neighbours have lost by it
    host_seconds: float = 0.0  # that it had hosts for


@dataclass(frozen=True, slots=True)
class IdealPlacement:
    """The least values that a job can have, and whether the policy ever places it."""

    refusal: Rejection | None  # why the policy never places it, or None
    hop_bytes: float | None  # the least, or None without a plan
    leaves: int | None  # the fewest of a plan of least Hop-Byte
    places: Places | None = None  # of that plan, if its ranks matter: the host of each VM


class IdealPlacements:
    """Ideal placements of jobs; computed once for equal jobs.

    Jobs are equal if they have equally many VMs and every host takes equally many of them, so a
    trace of a hundred thousand jobs has a few hundred different ones. Those of the latest are kept.
    """

    def __init__(self, policy: Policy, *, with_places: bool = False) -> None:
        """Start without a job.

        :param with_places: whether placements have the place of each VM
        """
        self._policy = policy
        self._with_places = with_places
        self._known: OrderedDict[tuple[object, ...], IdealPlacement] = OrderedDict()
        self._digests: dict[tuple[int, int, int], bytes] = {}  # by VMs and their size

    def of(
        self,
        job: Job,
        room: Callable[[], Array],
        capacity: Callable[[], Array],
        request: Callable[[Array], PlacementRequest],
    ) -> IdealPlacement:
        """Return the ideal placement of a job. Two placements for a new kind of job.

        :param room: returns the VMs of the job that fit on each host without other VMs. The least
            values are computed from it, so they do not depend on the policy. Shape (hosts,)
        :param capacity: returns the VMs of the job that the policy puts there; the same for most
        """
        is_bounded = self._policy.bounded_by_neighbours
        key = (
            job.count,
            self._digest(job, room),
            _digest(job, capacity()) if is_bounded else b"",
            job.application.app_class,
        )
        found = self._known.get(key)
        if found is None:
            answer = self._policy.places(request(capacity()))
            group = replace(request(room()).group, packing=None, pack_hosts=True)
            plan = group.unconstrained(job.count)
            found = self._known[key] = IdealPlacement(
                refusal=answer if isinstance(answer, Rejection) else None,
                hop_bytes=plan.hop_bytes if isinstance(plan, Plan) else None,
                leaves=len(plan.leaves) if isinstance(plan, Plan) else None,
                places=(
                    tuple(map(group.topology.index_of, plan.places))
                    if self._with_places and isinstance(plan, Plan)
                    else None
                ),
            )
            if len(self._known) > _MOST:
                self._known.popitem(last=False)
        self._known.move_to_end(key)
        return found

    def _digest(self, job: Job, room: Callable[[], Array]) -> bytes:
        """Return the digest of a room that depends on the size of the VMs alone."""
        key = (job.count, *job.size)
        found = self._digests.get(key)
        if found is None:
            if len(self._digests) >= _MOST:
                self._digests.clear()
            found = self._digests[key] = _digest(job, room())
        return found


def _digest(job: Job, room: Array) -> bytes:
    """Return what is equal for equal rooms, as far as the job's VMs could use them."""
    return hashlib.blake2b(room.clip(max=job.count).tobytes(), digest_size=16).digest()


@dataclass(slots=True)
class SubmittedJob:
    """A job that was submitted and has not ended."""

    job: Job
    ideal: IdealPlacement
    placed: PlacedJob | None = None  # its hosts, now or in its last run
    refusal: str = ""  # why the queue has refused it
    start: float = 0.0
    factor: float = 1.0  # by which its placement makes it longer
    starts: int = 0
    # Host-seconds in all starts: lost by its neighbours, lost by them, and those that it had.
    lost: float = 0.0
    caused: float = 0.0
    host_seconds: float = 0.0

    def networked(self, record: JobRecord) -> NetworkedJobRecord:
        """Return the record of the job with what it has lost and caused."""
        communication = self.job.communication
        return NetworkedJobRecord(
            **{field.name: getattr(record, field.name) for field in fields(JobRecord)},
            pattern=communication.pattern,
            communication=communication.share,
            lost=self.lost,
            caused=self.caused,
            host_seconds=self.host_seconds,
        )

    def record(self, outcome: Outcome, topology: Topology, now: float) -> JobRecord:
        """Return the record of the job. O(its hosts + its leaves * depth)."""
        job, placed, refusal = self.job, self.placed, self.ideal.refusal
        by_leaf = {} if placed is None else placed.by_leaf(topology)
        return JobRecord(
            number=job.number,
            trace_job=job.trace_job,
            trace_submit=job.trace_submit,
            outcome=outcome,
            app_class=job.application.app_class,
            submit=job.submit,
            start=None if placed is None else self.start,
            end=now if outcome in _ENDED else None,
            runtime=job.runtime,
            factor=self.factor,
            vms=job.count,
            vcpus=job.vcpus,
            memory_mb=job.memory_mb,
            hosts=0 if placed is None else len(placed.hosts),
            leaves=len(by_leaf),
            least_leaves=self.ideal.leaves,
            hop_bytes=0 if placed is None else _hop_bytes(topology, placed, by_leaf),
            least_hop_bytes=self.ideal.hop_bytes,
            restarts=max(self.starts - 1, 0),
            reason=self.refusal if refusal is None else refusal.operator,
        )


def _hop_bytes(topology: Topology, placed: PlacedJob, by_leaf: Mapping[int, int]) -> float:
    """Return the Hop-Byte of a job with one byte between every two VMs."""
    if placed.only_host is not None:  # most jobs of many traces
        return 0
    pairs = sum([vms * (vms - 1) // 2 for vms in placed.counts.tolist()])
    return hop_bytes_of_leaves(topology=topology, counts=by_leaf, pairs=pairs)
