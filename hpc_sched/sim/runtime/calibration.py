"""A runtime model from measured times of jobs on known placements.

The times are a CSV file. The header names the columns, in any order; processor and
neighbour_score may be left out::

    # one job on several placements, with its neighbours' cache score
    job,seconds,level,processor,neighbour_score
    WRF-64, 312.4, leaf, gold, 0

Runs of the same job are compared with each other, by least squares of logarithms::

    log(seconds) = job + log(hop factor[level]) - log(speed[processor])
                   + neighbour_score * log(interference)

Only ratios can be measured: the lowest level is 1, and so is the fastest processor type.
"""

import math
import os
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from hpc_sched import decimals, exceptions, files, table_file
from hpc_sched.core.arrays import Array, Reals
from hpc_sched.sim.runtime.runtime_model import HOST, MAX_FACTOR, RuntimeModel, filled

MAX_SECONDS = 1e9  # longer than any measurement
MAX_SCORE = 1e6  # more cache misses than any memory serves
MAX_BYTES = 10_000_000
MAX_ROWS = 20_000
MAX_TYPES = 100
NEEDED, OPTIONAL = ("job", "seconds", "level"), ("processor", "neighbour_score")  # columns

_HEADER = f"a header of {', '.join(NEEDED)} and, where measured, {', '.join(OPTIONAL)}"
# Of columns scaled to at most 1: smaller singular values are rounding errors; what the runs
# determine is resolved far better than the second bound, and what they do not, far worse.
_ROUNDING = 1e-10
_RESOLVED = 1e-6


@dataclass(frozen=True, slots=True)
class Measured:
    """One run of a job."""

    job: str
    seconds: float
    level: str  # the highest one that a pair of its VMs meets on
    processor: str | None = None  # None without such a column
    score: float | None = None  # neighbours' cache score; None without such a column


def _run(cells: Mapping[str, str], where: str, levels: Sequence[str]) -> Measured:
    seconds = decimals.number_in(cells["seconds"]) or 0.0
    score = decimals.number_in(cells.get("neighbour_score", "0"))
    for column, is_valid, expected in (
        ("job", cells["job"] != "", "a name"),
        ("seconds", 0 < seconds <= MAX_SECONDS, f"a number above 0 and at most {MAX_SECONDS:g}"),
        ("level", cells["level"] in levels, f"one of {', '.join(levels)}"),
        ("processor", cells.get("processor") != "", "a processor type"),
        (
            "neighbour_score",
            score is not None and 0 <= score <= MAX_SCORE,
            f"a number from 0 to {MAX_SCORE:g}",
        ),
    ):
        if not is_valid:
            found = repr(cells[column][:80]) if cells[column] else "nothing"
            raise exceptions.CalibrationError(
                f"{where}: {column}: expected {expected}, found {found}"
            )
    return Measured(
        job=cells["job"],
        seconds=seconds,
        level=cells["level"],
        processor=cells.get("processor"),
        score=score if "neighbour_score" in cells else None,
    )


@dataclass(frozen=True, slots=True)
class Calibration:
    """The factors that follow from measured times."""

    hop_factors: Mapping[str, float]  # of the measured levels, bottom up
    speeds: Mapping[str, float]  # of the measured processor types, by name
    interference: float
    residual: float  # percent: root mean square of the model's errors
    notes: tuple[str, ...]  # what the runs do not determine, a sentence each

    def model(self, levels: Sequence[str]) -> RuntimeModel:
        """Return the model; a level not measured has the factor of the next lower one."""
        return RuntimeModel(filled(self.hop_factors, levels), self.speeds, self.interference)


def read(path: files.Path, levels: Sequence[str]) -> Calibration:
    """Return the calibration by a file of measured times.

    :raises exceptions.CalibrationError: naming file, line and what was expected
    """
    error = exceptions.CalibrationError
    name, names = os.fspath(path), (HOST, *levels)
    text = files.decode(files.read_bytes(path, error, MAX_BYTES), name, error)
    (line, header), *rows = [*table_file.csv_lines(text, name, error)] or [(0, NEEDED)]
    columns = set(header)
    if not set(NEEDED) <= columns <= {*NEEDED, *OPTIONAL} or len(columns) != len(header):
        raise error(f"{name}:{line}: expected {_HEADER}, found {', '.join(header)[:80]!r}")
    if not rows:
        raise error(f"{name}: expected {_HEADER}, and rows below it; found no row")
    if len(rows) > MAX_ROWS:
        raise error(f"{name}:{rows[MAX_ROWS][0]}: expected at most {MAX_ROWS} rows, found more")
    runs = []
    for line, cells in rows:
        if len(cells) != len(header):
            raise error(
                f"{name}:{line}: expected {len(header)} columns ({', '.join(header)}), "
                f"found {len(cells)}"
            )
        runs.append(_run(dict(zip(header, cells, strict=True)), f"{name}:{line}", names))
    return calibrated(runs, names, name)


def calibrated(runs: Sequence[Measured], levels: Sequence[str], source: str) -> Calibration:
    """Return the calibration by runs. O(runs * (levels + processor types)²).

    A factor that they do not determine is 1, with a note.

    :param levels: names of all levels, bottom up, with ``host``
    :raises exceptions.CalibrationError: for too many processor types, or a factor out of bounds
    """
    met = sorted({run.level for run in runs}, key=levels.index)
    types = sorted({run.processor for run in runs if run.processor is not None})
    if len(types) > MAX_TYPES:
        raise exceptions.CalibrationError(
            f"{source}: expected at most {MAX_TYPES} processor types, found {len(types)}"
        )
    fit = _LogFit(runs, met, types)
    hops, slowness, slowdown = fit.relative(met, 0), fit.relative(types, len(met)), fit.last()
    fastest = min(slowness.values(), default=0.0)
    has_scores = any(run.score is not None for run in runs)
    undetermined = (
        *(f"level {name}" for name in met if name not in hops),
        *(f"processor {name}" for name in types if name not in slowness),
        *(("interference",) if slowdown is None and has_scores else ()),
    )
    notes = [
        f"{what} stays 1: the runs do not tell it from what else differs between them"
        for what in undetermined
    ]
    once = [job for job, count in Counter(run.job for run in runs).items() if count == 1]
    if once:
        others = f" and {len(once) - 1} more" if len(once) > 1 else ""
        notes.append(f"nothing follows from a job that was measured once: {once[0]}{others}")
    if fit.freedom < 1:
        notes.append("there are no more runs than unknowns: the residual says nothing")
    squares = float((fit.residuals**2).sum()) / max(1, len(runs) - len(once))
    hop_factors = {name: _factor(source, f"level {name}", hops.get(name, 0.0)) for name in met}
    speeds = {
        name: _factor(source, f"processor {name}", fastest - slowness.get(name, fastest))
        for name in types
    }
    return Calibration(
        hop_factors=hop_factors,
        speeds=speeds,
        interference=_factor(source, "a neighbours' score of 1", slowdown or 0.0),
        residual=100 * math.expm1(math.sqrt(squares)),
        notes=tuple(notes),
    )


class _LogFit:
    """Least-squares fit of log(seconds). Columns: levels, processor types, neighbours' score."""

    def __init__(self, runs: Sequence[Measured], met: Sequence[str], types: Sequence[str]) -> None:
        # Each job's constant is eliminated, so any number of jobs is cheap.
        design = np.zeros((len(runs), len(met) + len(types) + 1))
        jobs = {job: number for number, job in enumerate(dict.fromkeys(run.job for run in runs))}
        for row, run in enumerate(runs):
            design[row, met.index(run.level)] = 1.0
            if run.processor is not None:
                design[row, len(met) + types.index(run.processor)] = 1.0
            design[row, -1] = run.score or 0.0
        scale = np.abs(design).max(axis=0, initial=0.0)
        scale[scale == 0.0] = 1.0
        job_of = np.array([jobs[run.job] for run in runs])
        x = _without_means(design / scale, job_of)
        y = _without_means(np.log([[run.seconds] for run in runs]), job_of)[:, 0]
        coefficients, _, rank, _ = np.linalg.lstsq(x, y, rcond=_ROUNDING)
        # Of least norm if several fit equally well. Shape (columns,)
        self.coefficients: Reals = coefficients / scale
        self._scale = scale
        # Projection of scaled columns onto what the runs determine. Shape (columns, columns)
        self._resolution: Reals = np.linalg.pinv(x, rcond=_ROUNDING) @ x
        self.residuals: Reals = y - x @ coefficients  # shape (runs,)
        self.freedom = len(runs) - len(jobs) - int(rank)  # runs beyond the number of unknowns

    def relative(self, names: Sequence[str], first: int) -> dict[str, float]:
        """Return logarithms of the most comparable names, the first as 0. O(names² * columns²)."""
        units = np.eye(len(self.coefficients))
        groups: dict[int, list[int]] = {}  # by their first columns; being comparable is transitive
        for column in range(first, first + len(names)):
            alike = (one for one in groups if self._determines(units[column] - units[one]))
            groups.setdefault(next(alike, column), []).append(column)
        most = max(groups.values(), key=len, default=[])
        return {
            names[column - first]: float(self.coefficients[column] - self.coefficients[most[0]])
            for column in most
        }

    def last(self) -> float | None:
        """Return the last coefficient if it is determined, else None."""
        unit = np.eye(len(self.coefficients))[-1]
        return float(self.coefficients[-1]) if self._determines(unit) else None

    def _determines(self, contrast: Reals) -> bool:
        scaled = contrast / self._scale
        scaled /= np.abs(scaled).max()
        return bool(np.abs(self._resolution @ scaled - scaled).max() < _RESOLVED)


def _without_means(columns: Reals, job_of: Array) -> Reals:
    runs = np.bincount(job_of)
    sums = np.zeros((len(runs), columns.shape[1]))
    np.add.at(sums, job_of, columns)
    return columns - (sums / runs[:, None])[job_of]


def _factor(source: str, what: str, log: float) -> float:
    if abs(log) > math.log(MAX_FACTOR):
        raise exceptions.CalibrationError(
            f"{source}: {what}: expected times that differ by a factor of at most "
            f"{MAX_FACTOR:g}, found one of {'' if log > 0 else '1 / '}e^{abs(log):.3g}"
        )
    return math.exp(log)
