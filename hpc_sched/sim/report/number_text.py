"""Numbers as texts for readers."""

import math
from collections.abc import Callable, Iterable

from hpc_sched import decimals
from hpc_sched.sim.summary import Result, Summary

DASH = "\N{EN DASH}"

_MINUTE, _HOUR, _DAY = 60, 3600, 86400
# Smaller unit in s, how many make the larger unit, number below which the pair is used, names.
_PAIRS = (
    (1, 60, _HOUR, "min", "s"),
    (_MINUTE, 60, _DAY // _MINUTE, "h", "min"),
    (_HOUR, 24, math.inf, "d", "h"),
)
# Time axes: least length in s, unit in s, name; the first unit that the axis is long enough for.
_UNITS = ((3 * _DAY, _DAY, "d"), (2 * _HOUR, _HOUR, "h"), (2 * _MINUTE, _MINUTE, "min"))


def duration(seconds: float) -> str:
    """Return a time with its two largest units: ``3d 4h``, ``5min 20s``, ``12.5 s``."""
    if seconds < _MINUTE:
        return f"{seconds:.3g} s"
    # Rounded before it is compared: 59min 59.7s is 1h.
    part, parts, _, large, small = next(
        pair for pair in _PAIRS if round(seconds / pair[0]) < pair[2]
    )
    whole, rest = divmod(round(seconds / part), parts)
    return f"{whole:,}{large} {rest}{small}" if rest else f"{whole:,}{large}"


def exact_seconds(seconds: float) -> str:
    """Return a time in s, not rounded."""
    return f"{decimals.text_of(seconds)} s"


def percent(share: float) -> str:
    """Return a share of 1 as per cent, without the sign."""
    return f"{100 * share:.1f}"


def ratio(value: float) -> str:
    """Return a number with two decimals."""
    return f"{value:,.2f}"


def whole(value: float) -> str:
    """Return a count; a mean of counts with one decimal."""
    return f"{value:,.0f}" if value == round(value) else f"{value:,.1f}"


def finite_values(
    results: Iterable[Result], value: Callable[[Summary], float | None]
) -> list[float]:
    """Return the value of each result that has one and can be shown."""
    found = (value(result.summary) for result in results)
    return [each for each in found if each is not None and math.isfinite(each)]


def time_unit(seconds: float) -> tuple[float, str]:
    """Return the unit for an axis of a length in s: its length in s, and its name."""
    for least, unit, name in _UNITS:
        if seconds >= least:
            return float(unit), name
    return 1.0, "s"
