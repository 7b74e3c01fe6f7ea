"""Numbers of jobs by size, application class and pattern."""

from dataclasses import dataclass

from hpc_sched.sim.jobs.job_record import NetworkedJobRecord, Outcome
from hpc_sched.sim.measured.measured_jobs import bounded_slowdown
from hpc_sched.sim.measured.measured_window import Window
from hpc_sched.sim.measured.size_classes import SizeClasses

SIZE, CLASS, PATTERN = DIMENSIONS = ("size", "class", "pattern")


@dataclass(frozen=True, slots=True)
class KindMeasures:
    """The jobs of one kind in one run; None for a number that no job gives."""

    dimension: str  # one of DIMENSIONS
    name: str
    jobs: int  # submitted in the measured time
    done: int
    # Vcpu-hours of the jobs done, as long as they are stated to take, over those of the cluster in
    # the measured time; also of jobs that were submitted before.
    goodput: float
    wait_mean: float | None  # s
    slowdown_mean: float | None  # bounded
    factor_mean: float | None  # runtime over that of the job alone on its best hosts
    lost: float | None  # share of its hosts' time that it lost by its neighbours
    caused: float | None  # host-hours that its neighbours lost by it, over its own


@dataclass(slots=True)
class _Sums:
    jobs: int = 0
    done: int = 0
    useful: float = 0.0  # vcpu-seconds
    waits: float = 0.0
    slowdowns: float = 0.0
    factors: float = 0.0
    host_seconds: float = 0.0
    lost: float = 0.0
    caused: float = 0.0


class JobKinds:
    """The jobs of a run on a network by kind. O(1) per job."""

    def __init__(self, sizes: SizeClasses, window: Window) -> None:
        """Start without a job."""
        self._sizes, self._window = sizes, window
        self._sums: dict[tuple[str, str], _Sums] = {}

    def add(self, record: NetworkedJobRecord) -> None:
        """Count a job by its record."""
        is_measured, useful = self._window.holds(record.submit), self._useful(record)
        if not is_measured and not useful:
            return
        for kind in (
            (SIZE, self._sizes.of(record)),
            (CLASS, record.app_class),
            (PATTERN, record.pattern),
        ):
            sums = self._sums.setdefault(kind, _Sums())
            sums.useful += useful
            if is_measured:
                _add(sums, record)

    def measures(self, available: float) -> list[KindMeasures]:
        """Return the numbers of all kinds, by dimension; sizes from the smallest, others by name.

        :param available: vcpu-seconds of the cluster in the measured time
        """
        rank = {name: number for number, name in enumerate(self._sizes.names)}

        def order(kind: tuple[str, str]) -> tuple[int, int, str]:
            dimension, name = kind
            place = rank[name] if dimension == SIZE else 0
            return DIMENSIONS.index(dimension), place, name

        return [
            KindMeasures(
                *kind,
                jobs=sums.jobs,
                done=sums.done,
                goodput=sums.useful / available if available else 0.0,
                wait_mean=_over(sums.waits, sums.done),
                slowdown_mean=_over(sums.slowdowns, sums.done),
                factor_mean=_over(sums.factors, sums.done),
                lost=_over(sums.lost, sums.host_seconds),
                caused=_over(sums.caused, sums.host_seconds),
            )
            for kind, sums in sorted(self._sums.items(), key=lambda item: order(item[0]))
        ]

    def _useful(self, record: NetworkedJobRecord) -> float:
        """Return the stated vcpu-seconds of a job done, for its part in the measured time."""
        if record.outcome is not Outcome.DONE or record.start is None or record.end is None:
            return 0.0
        took, window = record.end - record.start, self._window
        inside = min(record.end, window.until) - max(record.start, window.since)
        part = max(inside, 0.0) / took if took > 0 else float(window.holds(record.end))
        return part * record.runtime * record.vms * record.vcpus


def _add(sums: _Sums, record: NetworkedJobRecord) -> None:
    sums.jobs += 1
    if record.outcome is not Outcome.DONE or record.start is None or record.end is None:
        return
    sums.done += 1
    sums.waits += record.start - record.submit
    sums.slowdowns += bounded_slowdown(record.submit, record.end, record.runtime)
    sums.factors += record.factor
    sums.host_seconds += record.host_seconds
    sums.lost += record.lost
    sums.caused += record.caused


def _over(value: float, count: float) -> float | None:
    return value / count if count else None
