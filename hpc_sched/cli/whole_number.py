"""Whole numbers on the command line."""

import argparse
from collections.abc import Callable

_MOST_DIGITS = 9


def at_least(least: int) -> Callable[[str], int]:
    """Return the type of an argument: a whole number that is not smaller."""

    def number(text: str) -> int:
        is_number = text.isascii() and text.isdecimal() and len(text) <= _MOST_DIGITS
        if not is_number or int(text) < least:
            raise argparse.ArgumentTypeError(f"expected a whole number >= {least}, found {text!r}")
        return int(text)

    return number
