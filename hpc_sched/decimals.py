"""Decimal numbers as people write them in files: read strictly, written without exponent."""

import math
import re
from decimal import Decimal

# float() would take nan, inf, 1_6 and digits of other scripts.
_NUMBER = re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d{1,3})?", re.ASCII)


def number_in(text: str) -> float | None:
    """Return the finite number that a text is, None where it is none."""
    if _NUMBER.fullmatch(text) is None:
        return None
    number = float(text)
    return number if math.isfinite(number) else None


def text_of(number: float) -> str:
    """Return the shortest decimal that reads back as the number: ``29.4``, ``100``, ``0.00001``."""
    # Adding 0 takes the sign from -0.0.
    text = format(Decimal(repr(number + 0.0)), "f")
    return text.removesuffix(".0")
