"""Decimal numbers on the command line."""

import argparse
from collections.abc import Callable

from hpc_sched import decimals


def above_zero(text: str) -> float:
    """Return the number of an argument that is greater than 0."""
    number = decimals.number_in(text)
    if number is None or number <= 0:
        raise _unexpected("> 0", text)
    return number


def at_least_zero(text: str) -> float:
    """Return the number of an argument that is not negative."""
    number = decimals.number_in(text)
    if number is None or number < 0:
        raise _unexpected(">= 0", text)
    return number


def share(text: str) -> float:
    """Return the number of an argument from 0 to 1."""
    number = decimals.number_in(text)
    if number is None or not 0 <= number <= 1:
        raise _unexpected("from 0 to 1", text)
    return number


def _unexpected(expected: str, text: str) -> argparse.ArgumentTypeError:
    return argparse.ArgumentTypeError(f"expected a number {expected}, found {text!r}")


_MOST_DIGITS = 9


def at_least(least: int) -> Callable[[str], int]:
    """Return the type of an argument: a whole number that is not smaller."""

    def number(text: str) -> int:
        is_number = text.isascii() and text.isdecimal() and len(text) <= _MOST_DIGITS
        if not is_number or int(text) < least:
            raise argparse.ArgumentTypeError(f"expected a whole number >= {least}, found {text!r}")
        return int(text)

    return number
