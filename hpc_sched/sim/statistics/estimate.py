"""The mean of a number over seeds, with its confidence interval."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from hpc_sched.sim.statistics import student_t

LEAST_SEEDS = 10  # for a confidence interval
CONFIDENCE = 0.95
_ROUNDING = 1e-9  # relative difference of numbers that count as equal


@dataclass(frozen=True, slots=True)
class Estimate:
    """The mean of a number over seeds."""

    mean: float
    half_width: float | None  # of its confidence interval; 0 if nothing is drawn; None: too few
    least: float
    most: float
    seeds: int

    @classmethod
    def of(cls, values: Sequence[float], *, is_drawn: bool) -> "Estimate | None":
        """Return the estimate from a value of each seed, or None without values."""
        if not values:
            return None
        # Relative to the first: equal values have exactly their mean, and the width 0.
        apart = np.array([difference(value, values[0]) for value in values])
        half_width: float | None = 0.0
        if is_drawn and len(values) < LEAST_SEEDS:
            half_width = None
        elif is_drawn:
            error = float(apart.std(ddof=1)) / len(values) ** 0.5
            half_width = student_t.quantile(CONFIDENCE, len(values) - 1) * error
        mean = values[0] + float(apart.mean())
        return cls(mean, half_width, min(values), max(values), len(values))


def difference(a: float, b: float) -> float:
    """Return a - b; 0 if they differ by the rounding of sums only."""
    return 0.0 if abs(a - b) <= _ROUNDING * max(abs(a), abs(b)) else a - b
