"""A runtime model from measured times.

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

from hpc_sched import exceptions, files
from hpc_sched.sim.runtime import least_squares, measured_times, runtime_model
from hpc_sched.sim.runtime.least_squares import Fit
from hpc_sched.sim.runtime.measured_times import Measured
from hpc_sched.sim.runtime.runtime_model import HOST, MAX_FACTOR, RuntimeModel

MAX_TYPES = 100

_UNDETERMINED = "the runs do not tell it from what else differs between them"


@dataclass(frozen=True, slots=True)
class Calibration:
    """What follows from measured times."""

    hop_factors: Mapping[str, float]  # of the levels measured, bottom up
    speeds: Mapping[str, float]  # of the processor types measured, by name
    interference: float
    residual: float  # percent: the root mean square of how far the model is off a run
    notes: tuple[str, ...]  # what the runs do not tell, a sentence each

    def model(self, levels: Sequence[str]) -> RuntimeModel:
        """Return the model; a level not measured has the factor of the next lower one.

        :param levels: ``topology.levels``
        """
        factors = runtime_model.filled(self.hop_factors, levels)
        return RuntimeModel(factors, self.speeds, self.interference)


def read(path: files.Path, levels: Sequence[str]) -> Calibration:
    """Return what follows from a file of measured times.

    :param levels: ``topology.levels``
    :raises exceptions.CalibrationError: naming file, line and what was expected
    """
    names = (HOST, *levels)
    return calibrated(measured_times.read(path, names), names, os.fspath(path))


def calibrated(runs: Sequence[Measured], levels: Sequence[str], source: str) -> Calibration:
    """Return what follows from runs. O(runs * (levels + processor types)²).

    What they do not determine stays 1, and is said in a note.

    :param levels: the names of all levels, bottom up, with ``host``
    :param source: what errors call the runs
    :raises exceptions.CalibrationError: where there are too many processor types, or a factor
        follows that cannot be
    """
    found = {run.level for run in runs}
    met = [level for level in levels if level in found]
    types = sorted({run.processor for run in runs if run.processor is not None})
    if len(types) > MAX_TYPES:
        raise exceptions.CalibrationError(
            f"{source}: expected at most {MAX_TYPES} processor types, found {len(types)}"
        )
    fit = _fit(runs, met, types)
    hops = _relative(fit, met, 0)
    slowness = _relative(fit, types, len(met))
    fastest = min(slowness.values(), default=0.0)
    slowdown = _slowdown(fit)
    undetermined = [f"level {name}" for name in met if name not in hops]
    undetermined += [f"processor {name}" for name in types if name not in slowness]
    if slowdown is None and any(run.score is not None for run in runs):
        undetermined.append("interference")
    notes = [f"{what} stays 1: {_UNDETERMINED}" for what in undetermined]
    once = [job for job, count in Counter(run.job for run in runs).items() if count == 1]
    if once:
        others = f" and {len(once) - 1} more" if len(once) > 1 else ""
        notes.append(f"nothing follows from a job that was measured once: {once[0]}{others}")
    if fit.freedom < 1:
        notes.append("there are no more runs than unknowns: the residual says nothing")
    squares = float((fit.residuals**2).sum()) / max(1, len(runs) - len(once))
    return Calibration(
        hop_factors={name: _factor(source, f"level {name}", hops.get(name, 0.0)) for name in met},
        speeds={
            name: _factor(source, f"processor {name}", fastest - slowness.get(name, fastest))
            for name in types
        },
        interference=_factor(source, "a neighbours' score of 1", slowdown or 0.0),
        residual=100 * math.expm1(math.sqrt(squares)),
        notes=tuple(notes),
    )


def _fit(runs: Sequence[Measured], met: Sequence[str], types: Sequence[str]) -> Fit:
    """Return the fit of all logarithms: of levels, of processor types, of the interference."""
    column = {name: i for i, name in enumerate(met)}
    type_column = {name: len(met) + i for i, name in enumerate(types)}
    design = np.zeros((len(runs), len(met) + len(types) + 1))
    numbers: dict[str, int] = {}
    for row, run in enumerate(runs):
        numbers.setdefault(run.job, len(numbers))
        design[row, column[run.level]] = 1.0
        if run.processor is not None:
            design[row, type_column[run.processor]] = 1.0
        design[row, -1] = run.score or 0.0
    seconds = np.log([run.seconds for run in runs])
    return least_squares.fitted(design, seconds, [numbers[run.job] for run in runs])


def _relative(fit: Fit, names: Sequence[str], first: int) -> dict[str, float]:
    """Return the logarithms of those that can be compared with each other, the first's being 0.

    :param first: the column of the first name
    """
    columns = fit.comparable(range(first, first + len(names)))
    return {
        names[column - first]: float(fit.coefficients[column] - fit.coefficients[columns[0]])
        for column in columns
    }


def _slowdown(fit: Fit) -> float | None:
    """Return the logarithm of the interference, if it is determined."""
    last = np.zeros(len(fit.coefficients))
    last[-1] = 1.0
    return float(fit.coefficients[-1]) if fit.determines(last) else None


def _factor(source: str, what: str, log: float) -> float:
    if abs(log) > math.log(MAX_FACTOR):
        raise exceptions.CalibrationError(
            f"{source}: {what}: expected times that differ by a factor of at most "
            f"{MAX_FACTOR:g}, found one of {'' if log > 0 else '1 / '}e^{abs(log):.3g}"
        )
    return math.exp(log)
