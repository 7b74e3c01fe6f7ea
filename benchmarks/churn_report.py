"""The statistics of benchmarks/churn.py: paired differences and their confidence intervals."""

import math
import statistics
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

# What is compared, by its name in the table: a key of an outcome.
MEASURES = {"Hop-Byte": "hop_bytes", "normalised": "normalised"}
COLUMNS = "{:<13} {:<10} {:>8} {:<11} {:>11} {:>11} {:>11} {:>18}  {}"
TITLES = (
    *("sizes", "load", "occupied", "measure"),
    *("this", "other", "difference", "95 %", "significant"),
)


@dataclass(frozen=True)
class Comparison:
    """A measure of one workload on both sides."""

    sizes: str
    load: str
    measure: str
    occupied: float  # mean share of hosts with a VM
    this: list[float]  # by seed
    other: list[float]

    @property
    def differences(self) -> list[float]:
        """Percent of the other side's, by seed."""
        pairs = zip(self.this, self.other, strict=True)
        return [100 * (this / other - 1) for this, other in pairs]

    @property
    def interval(self) -> tuple[float, float]:
        """The 95 % confidence interval of the mean difference; infinite for a single seed."""
        found = self.differences
        if len(found) < 2:
            return -math.inf, math.inf
        mean, error = statistics.fmean(found), statistics.stdev(found) / math.sqrt(len(found))
        reach = student_t(len(found) - 1) * error
        return mean - reach, mean + reach

    @property
    def is_significant(self) -> bool:
        """True if the interval does not contain 0."""
        low, high = self.interval
        return low > 0 or high < 0

    def cells(self) -> Iterator[str]:
        """Yield the columns of the table."""
        low, high = self.interval
        yield from (self.sizes, self.load, f"{self.occupied:.1%}", self.measure)
        yield from (f"{statistics.fmean(side):.5g}" for side in (self.this, self.other))
        yield f"{statistics.fmean(self.differences):+.2f} %"
        yield f"{low:+.2f} to {high:+.2f}"
        yield "yes" if self.is_significant else "no"

    def as_dict(self) -> dict[str, Any]:
        """Return the numbers with those derived from them."""
        low, high = self.interval
        return {
            **asdict(self),
            "differences_percent": self.differences,
            "mean_difference_percent": statistics.fmean(self.differences),
            "interval_95_percent": [low, high] if math.isfinite(low) else None,
            "significant": self.is_significant,
        }


def compared(
    sizes: str, load: str, outcomes: Sequence[tuple[dict[str, Any], dict[str, Any]]]
) -> list[Comparison]:
    """Return the comparisons of one workload.

    :param outcomes: of both sides, by seed
    :raises RuntimeError: if the sides have not started the same groups at the same times
    """
    if any(this["sequence"] != other["sequence"] for this, other in outcomes):
        raise RuntimeError(f"{sizes}, {load}: the sides have not started the same groups")
    occupied = statistics.fmean(this["occupied"] for this, _ in outcomes)
    return [
        Comparison(
            sizes=sizes,
            load=load,
            measure=measure,
            occupied=occupied,
            this=[this[key] for this, _ in outcomes],
            other=[other[key] for _, other in outcomes],
        )
        for measure, key in MEASURES.items()
    ]


def student_t(degrees: int, confidence: float = 0.95) -> float:
    """Return the t that Student's distribution exceeds, to both sides, in 1 - confidence."""
    scale = 2 * math.exp(math.lgamma((degrees + 1) / 2) - math.lgamma(degrees / 2))
    scale /= math.sqrt(math.pi)

    def within(t: float) -> float:
        # With t = sqrt(degrees) tan(a) the density is a power of the cosine of a.
        angles = np.linspace(0.0, math.atan(t / math.sqrt(degrees)), 2001)
        return scale * float(np.trapezoid(np.cos(angles) ** (degrees - 1), angles))

    low, high = 0.0, 1e3
    while high - low > 1e-6:
        middle = (low + high) / 2
        low, high = (middle, high) if within(middle) < confidence else (low, middle)
    return high
