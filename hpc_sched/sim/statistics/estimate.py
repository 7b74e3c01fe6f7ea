"""The mean of a number over seeds, with its confidence interval."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np

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
        half_width: float | None = None if is_drawn else 0.0
        if is_drawn and len(values) >= LEAST_SEEDS:
            half_width = student_t_quantile(CONFIDENCE, len(values) - 1) * (
                float(apart.std(ddof=1)) / len(values) ** 0.5
            )
        return cls(
            mean=values[0] + float(apart.mean()),
            half_width=half_width,
            least=min(values),
            most=max(values),
            seeds=len(values),
        )

    @classmethod
    def of_drawn(cls, values: Sequence[float]) -> "Estimate":
        """Return the estimate from a value of each of one or more drawn runs."""
        found = cls.of(values, is_drawn=True)
        assert found is not None
        return found

    def is_above(self, bound: float) -> bool:
        """True if the whole interval is above a number; False without an interval."""
        return self.half_width is not None and self.mean - self.half_width > bound

    def is_below(self, bound: float) -> bool:
        """True if the whole interval is below a number; False without an interval."""
        return self.half_width is not None and self.mean + self.half_width < bound


def difference(a: float, b: float) -> float:
    """Return a - b; 0 if they differ by the rounding of sums only."""
    return 0.0 if abs(a - b) <= _ROUNDING * max(abs(a), abs(b)) else a - b


@cache
def student_t_quantile(confidence: float, freedom: int) -> float:
    """Return t such that a variate of Student's t is within -t and t with ``confidence``.

    By bisection to the last digits of a double, as SciPy is no dependency. O(freedom).

    :param confidence: above 0 and below 1
    :param freedom: degrees of freedom, at least 1
    :raises ValueError: for an argument out of bounds
    """
    if not 0 < confidence < 1 or freedom < 1:
        raise ValueError(f"no quantile for {confidence} with {freedom} degrees of freedom")
    low, high = 0.0, math.pi / 2
    while low < (middle := (low + high) / 2) < high:
        if _probability(middle, freedom) < confidence:
            low = middle
        else:
            high = middle
    return math.tan(high) * math.sqrt(freedom)


def _probability(angle: float, freedom: int) -> float:
    """Return the probability of a variate within -t and t, t = tan(angle) * sqrt(freedom).

    The finite series of Abramowitz and Stegun (1964), 26.7.3 and 26.7.4.
    """
    cosine = math.cos(angle)
    is_odd = freedom % 2
    term = cosine if is_odd else 1.0
    total = term if freedom > 1 else 0.0
    for number in range(2 + is_odd, freedom - 1, 2):
        term *= cosine * cosine * (number - 1) / number
        total += term
    inner = math.sin(angle) * total
    return 2 / math.pi * (angle + inner) if is_odd else inner
