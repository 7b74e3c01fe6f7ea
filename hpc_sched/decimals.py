"""Decimal numbers in files: read strictly, written without exponent."""

import math
import re
from decimal import Decimal

# float() also accepts nan, inf, 1_6 and digits of other scripts.
_NUMBER = re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d{1,3})?", re.ASCII)


def number_in(text: str) -> float | None:
    """Return the finite number of a text, or None."""
    if _NUMBER.fullmatch(text) is None:
        return None
    number = float(text)
    return number if math.isfinite(number) else None


def text_of(number: float) -> str:
    """Return the shortest decimal of a number: ``29.4``, ``100``, ``0.00001``."""
    # Adding 0 removes the sign of -0.0.
    return format(Decimal(repr(number + 0.0)), "f").removesuffix(".0")
