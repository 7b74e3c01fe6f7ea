"""Student's t distribution, for a few values per sweep: SciPy is no dependency for that."""

import math
from functools import cache


@cache
def quantile(confidence: float, freedom: int) -> float:
    """Return t such that a variate is within -t and t with a probability of ``confidence``.

    By bisection to the last digits of a double. O(freedom).

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
