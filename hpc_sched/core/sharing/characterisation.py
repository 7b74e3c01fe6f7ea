"""Cache scores and the interference index from measurements (Gupta2013)."""

import math
import statistics
from collections.abc import Iterable
from dataclasses import dataclass

from hpc_sched import exceptions, files, table_file
from hpc_sched.core import extra_spec_names
from hpc_sched.core.sharing.cache_interference import InterferenceIndex

# Misses of the last-level cache, loads plus stores, per second at a cache score of 1.
MISSES_PER_SCORE = 100_000
# Longer than any measurement: more is a slip.
MAX_SECONDS = 1e9

_COLUMNS = ("application", "neighbour, empty or - for a dedicated run", "seconds")


@dataclass(frozen=True, slots=True)
class TimedRun:
    """The time of an application, alone on a host or with another one."""

    application: str
    neighbour: str | None  # None: a dedicated host
    seconds: float

    def __str__(self) -> str:
        """Return the applications."""
        return _what(self.application, self.neighbour)


def cache_score(misses: float, seconds: float, vms: int = 1) -> float:
    """Return the cache score of one VM (Gupta2013).

    :param misses: of the last-level cache, loads plus stores, of all VMs together
    :param seconds: wall time in which they were counted
    :param vms: number of alike VMs
    :raises exceptions.InterferenceError: for impossible counts
    """
    for expected, found, is_valid in (
        ("misses: expected 0 or more", misses, math.isfinite(misses) and misses >= 0),
        ("seconds: expected more than 0", seconds, math.isfinite(seconds) and seconds > 0),
        ("VMs: expected 1 or more", vms, vms >= 1),
    ):
        if not is_valid:
            raise exceptions.InterferenceError(f"{expected}, found {found}")
    score = misses / seconds / vms / MISSES_PER_SCORE
    if not math.isfinite(score):
        raise exceptions.InterferenceError(f"{misses} misses in {seconds} s: no score so large")
    return score


def index_of(runs: Iterable[TimedRun]) -> InterferenceIndex:
    """Return the performance of each application with each neighbour, 1 being that alone.

    It is the median time of the dedicated runs over the median time with the neighbour: the median
    ignores a single disturbed run. O(runs log runs).

    :raises exceptions.InterferenceError: naming every missing run: two applications that shared a
        host need a dedicated run each, and a run each with the other
    """
    times: dict[tuple[str, str | None], list[float]] = {}
    for run in runs:
        if not math.isfinite(run.seconds) or run.seconds <= 0:
            raise exceptions.InterferenceError(
                f"{run}: expected more than 0 seconds, found {run.seconds}"
            )
        times.setdefault((run.application, run.neighbour), []).append(run.seconds)
    shared = [(name, other) for name, other in times if other is not None]
    needed = {run for name, other in shared for run in ((name, None), (other, None), (other, name))}
    if missing := needed - times.keys():
        ordered = sorted(missing, key=lambda what: (what[0], what[1] or ""))
        raise exceptions.InterferenceError(
            f"runs are missing: {', '.join(_what(*what) for what in ordered)}"
        )
    median = {what: statistics.median(seconds) for what, seconds in times.items()}
    return InterferenceIndex(
        {(name, other): median[name, None] / median[name, other] for name, other in sorted(shared)}
    )


def _what(application: str, neighbour: str | None) -> str:
    return f"{application} alone" if neighbour is None else f"{application} beside {neighbour}"


def timings_of(content: bytes, name: str) -> list[TimedRun]:
    """Return the runs of a file; InterferenceError names file, line and what was expected."""
    text = files.decode(content, name, exceptions.InterferenceError)
    runs = []
    for row in table_file.csv_rows(text, name, number_columns=(2,)):
        row.check_width(_COLUMNS)
        application = row.text(0, *extra_spec_names.NAME)
        is_alone = row.cells[1] in ("", "-")
        neighbour = None if is_alone else row.text(1, *extra_spec_names.NAME)
        seconds = row.number(2, "a number of seconds above 0", MAX_SECONDS)
        runs.append(TimedRun(application, neighbour, seconds))
    return runs
