"""From measurements to what the scheduler wants to know: cache scores, the index (Gupta2013)."""

import math
import statistics
from collections.abc import Iterable
from dataclasses import dataclass

from hpc_sched import exceptions, files, table_file
from hpc_sched.core.sharing.cache_interference import InterferenceIndex

# A cache score of 1 is so many misses of the last-level cache, loads plus stores, per second.
MISSES_PER_SCORE = 100_000


@dataclass(frozen=True, slots=True)
class Run:
    """How long an application took, alone on a host or beside another one."""

    application: str
    neighbour: str | None  # None: a dedicated host
    seconds: float

    def __str__(self) -> str:
        """Say what ran where."""
        return _what(self.application, self.neighbour)


def cache_score(misses: float, seconds: float, vms: int = 1) -> float:
    """Return the cache score of one VM (Gupta2013).

    :param misses: of the last-level cache, loads plus stores, of all VMs together
    :param seconds: wall time in which they were counted
    :param vms: how many alike VMs were counted
    :raises exceptions.InterferenceError: for what cannot have been counted
    """
    if not math.isfinite(misses) or misses < 0:
        raise exceptions.InterferenceError(f"misses: expected 0 or more, found {misses}")
    if not math.isfinite(seconds) or seconds <= 0:
        raise exceptions.InterferenceError(f"seconds: expected more than 0, found {seconds}")
    if vms < 1:
        raise exceptions.InterferenceError(f"VMs: expected 1 or more, found {vms}")
    score = misses / seconds / vms / MISSES_PER_SCORE
    if not math.isfinite(score):
        raise exceptions.InterferenceError(f"{misses} misses in {seconds} s: no score so large")
    return score


def index_of(runs: Iterable[Run]) -> InterferenceIndex:
    """Return how fast each application ran beside each neighbour, 1 being its speed alone.

    The median time of its dedicated runs over that of the runs beside the neighbour, so that
    one run that something else disturbed does not count. O(runs log runs).

    :raises exceptions.InterferenceError: naming every run that is missing: an application that
        shared a host needs a dedicated run, and each of the two a run beside the other
    """
    times: dict[tuple[str, str | None], list[float]] = {}
    for run in runs:
        if not math.isfinite(run.seconds) or run.seconds <= 0:
            raise exceptions.InterferenceError(
                f"{run}: expected more than 0 seconds, found {run.seconds}"
            )
        times.setdefault((run.application, run.neighbour), []).append(run.seconds)
    shared = [(name, beside) for name, beside in times if beside is not None]
    needed: set[tuple[str, str | None]] = set()
    for name, beside in shared:
        needed |= {(name, None), (beside, None), (beside, name)}
    if missing := needed - times.keys():
        ordered = sorted(missing, key=lambda what: (what[0], what[1] or ""))
        raise exceptions.InterferenceError(
            f"runs are missing: {', '.join(_what(*what) for what in ordered)}"
        )
    median = {what: statistics.median(seconds) for what, seconds in times.items()}
    return InterferenceIndex(
        {
            (name, beside): median[name, None] / median[name, beside]
            for name, beside in sorted(shared)
        }
    )


def _what(application: str, neighbour: str | None) -> str:
    return f"{application} alone" if neighbour is None else f"{application} beside {neighbour}"


# Longer than any measurement; what is beyond is a slip.
MAX_SECONDS = 1e9

_COLUMNS = ("application", "neighbour, empty or - for a dedicated run", "seconds")
_DEDICATED = ("", "-")


def timings_of(content: bytes, name: str) -> list[Run]:
    """Return the runs of a file, in its order; linear in its length.

    :param name: what errors call the file
    :raises exceptions.InterferenceError: naming file, line and what was expected
    """
    text = files.decode(content, name, exceptions.InterferenceError)
    return [_run(row) for row in table_file.csv_rows(text, name, number_columns=(2,))]


def _run(row: table_file.Row) -> Run:
    row.check_width(_COLUMNS)
    return Run(
        application=row.name(0),
        neighbour=None if row.cells[1] in _DEDICATED else row.name(1),
        seconds=row.number(2, "a number of seconds above 0", MAX_SECONDS),
    )
