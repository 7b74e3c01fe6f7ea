"""Speeds of processor types: clock frequencies, MIPS, or results of a benchmark.

Gupta2012, section 3.2, distinguishes types by frequency and names cache sizes and MIPS as more
accurate (Gupta2013, section IV-B: MIPS). Any number above 0 will do, in one unit for all types;
greater is faster.
"""

import math
from collections.abc import Mapping
from typing import Any

from hpc_sched import decimals, exceptions

FORM = "TYPE=NUMBER,..."


def read(text: str) -> dict[str, float]:
    """Return the speed of each processor type in a text, by name: ``gold=3000,silver=2130``.

    The last equals sign of an entry is the one in front of the number. A name has no comma.

    :raises exceptions.ConfigError: naming the entry, for another form, a type that is stated
        twice, or a number that is not above 0 and finite
    """
    found: dict[str, float] = {}
    for entry in text.strip().rstrip(",").split(",") if text.strip() else ():
        name, _, number = (part.strip() for part in entry.rpartition("="))
        # An entry of two lines lacks a comma: the number of the first would go into the name.
        if not name or "\n" in name:
            raise exceptions.ConfigError(f"expected {FORM}, found {entry.strip()[:80]!r}")
        if name in found:
            raise exceptions.ConfigError(f"expected each type once, found {name} again")
        found[name] = _checked(name, decimals.number_in(number), number)
    return dict(sorted(found.items()))


def checked(stated: Mapping[Any, Any]) -> dict[str, float]:
    """Return speeds from elsewhere than a text, by name; raises as :func:`read` does."""
    found: dict[str, float] = {}
    for name, number in stated.items():
        if not isinstance(name, str) or not name:
            raise exceptions.ConfigError(f"expected the name of a type, found {name!r}")
        is_number = isinstance(number, int | float) and not isinstance(number, bool)
        found[name] = _checked(name, number if is_number else None, number)
    return dict(sorted(found.items()))


def _checked(name: str, number: float | None, stated: object) -> float:
    try:
        if number is not None and math.isfinite(number) and number > 0:
            return float(number)
    except OverflowError:  # an integer beyond all floats
        pass
    raise exceptions.ConfigError(
        f"{name}: expected a number above 0, found {str(stated)[:80] or 'nothing'}"
    )
