"""Types of command-line arguments, and options with numbers."""

import argparse
from collections.abc import Callable
from typing import TypeVar

from hpc_sched import decimals
from hpc_sched.core.constraints.extra_spec import number_up_to
from hpc_sched.core.cost import prices

_MAX_DIGITS = 9
_Value = TypeVar("_Value")


def _number(
    expected: str, read: Callable[[str], _Value | None], is_valid: Callable[[_Value], bool]
) -> Callable[[str], _Value]:
    def number(text: str) -> _Value:
        found = read(text)
        if found is None or not is_valid(found):
            raise argparse.ArgumentTypeError(f"expected {expected}, found {text!r}")
        return found

    return number


def _whole(text: str) -> int | None:
    is_whole = text.isascii() and text.isdecimal() and len(text) <= _MAX_DIGITS
    return int(text) if is_whole else None


above_zero = _number("a number > 0", decimals.number_in, lambda number: number > 0)
at_least_zero = _number("a number >= 0", decimals.number_in, lambda number: number >= 0)
share = _number("a number from 0 to 1", decimals.number_in, lambda number: 0 <= number <= 1)
ZERO_OR_MORE = _number("a whole number >= 0", _whole, lambda number: number >= 0)
ONE_OR_MORE = _number("a whole number >= 1", _whole, lambda number: number >= 1)


def from_one_to(most: int) -> Callable[[str], int]:
    """Return the type of a whole number that an extra spec bounds."""
    return _number(number_up_to(most), _whole, lambda number: 1 <= number <= most)


def add_flag(group: argparse._ActionsContainer, name: str, what: str) -> None:
    """Add an option without a value."""
    group.add_argument(name, action="store_true", help=what)


def add_number(
    group: argparse._ActionsContainer,
    name: str,
    what: str,
    type_: Callable[[str], float] = ONE_OR_MORE,
    metavar: str = "N",
    default: float | None = None,
) -> None:
    """Add an option with a number; its default is added to ``what``, the help text."""
    shown = "" if default is None else f" (default: {default:g})"
    group.add_argument(name, type=type_, metavar=metavar, default=default, help=what + shown)


def parsed_by(read: Callable[[str], _Value], prefix: str = "") -> Callable[[str], _Value]:
    """Return a type that ``read`` parses; its ValueError, less ``prefix``, is the usage error."""

    def typed(text: str) -> _Value:
        try:
            return read(text)
        except ValueError as failure:
            raise argparse.ArgumentTypeError(str(failure).removeprefix(prefix)) from failure

    return typed


def add_price(group: argparse._ActionsContainer) -> None:
    """Add ``--price``, the prices of core-hours."""
    group.add_argument(
        "--price",
        type=parsed_by(lambda text: prices.read(text, "--price"), prefix="--price: "),
        metavar="PRICES",
        help="price of a core-hour, which is one vcpu of a VM for an hour, in any currency: a "
        "number, or one per application class, as in sync=0.03,async=0.07; 0.05,sync=0.03 has "
        "one for the other classes too (default: no revenue)",
    )
