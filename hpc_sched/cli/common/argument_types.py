"""Arguments of commands as values, and the types of what is given for them."""

import argparse
import functools
import operator
from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeVar

from hpc_sched import decimals
from hpc_sched.core.constraints.extra_spec import number_up_to
from hpc_sched.core.cost import prices_in

_MAX_DIGITS = 9
_Value = TypeVar("_Value")

Argument = Callable[[argparse._ActionsContainer], object]  # adds itself to a parser or group


def checked(
    expected: str, read: Callable[[str], _Value | None], is_valid: Callable[[_Value], bool]
) -> Callable[[str], _Value]:
    """Return a type whose usage error says what was expected.

    :param read: returns the value of a text, None for an error
    """

    def typed(text: str) -> _Value:
        found = read(text)
        if found is None or not is_valid(found):
            raise argparse.ArgumentTypeError(f"expected {expected}, found {text!r}")
        return found

    return typed


def _key_and_value(text: str) -> tuple[str, str] | None:
    """Return what is before and behind the first ``=``, None without one."""
    key, equals, value = text.partition("=")
    return (key, value) if equals else None


def _whole(text: str) -> int | None:
    is_whole = text.isascii() and text.isdecimal() and len(text) <= _MAX_DIGITS
    return int(text) if is_whole else None


above_zero = checked("a number > 0", decimals.number_in, lambda number: number > 0)
at_least_zero = checked("a number >= 0", decimals.number_in, lambda number: number >= 0)
ratio = checked("a number >= 1", decimals.number_in, lambda number: 1 <= number < 1e6)
share = checked("a number from 0 to 1", decimals.number_in, lambda number: 0 <= number <= 1)
ZERO_OR_MORE = checked("a whole number >= 0", _whole, lambda number: number >= 0)
ONE_OR_MORE = checked("a whole number >= 1", _whole, lambda number: number >= 1)


LEVEL_AND_KEY = checked("LEVEL=KEY", _key_and_value, all)
PROPERTY = checked("KEY=VALUE", _key_and_value, operator.itemgetter(0))


def from_one_to(most: int) -> Callable[[str], int]:
    """Return the type of a whole number that an extra spec bounds."""
    return checked(number_up_to(most), _whole, lambda number: 1 <= number <= most)


def argument(name: str, what: str, **settings: Any) -> Argument:
    """Return an argument with a help text; ``settings`` are those of argparse."""
    return operator.methodcaller("add_argument", name, help=what, **settings)


def repeated(name: str, what: str, **settings: Any) -> Argument:
    """Return an option that may be given several times; without it the list is empty."""
    return argument(name, what, action="append", default=[], **settings)


def flag(name: str, what: str) -> Argument:
    """Return an option without a value."""
    return argument(name, what, action="store_true")


def exclusive(*arguments: Argument) -> Argument:
    """Return arguments of which one at most may be given."""
    return _grouped("add_mutually_exclusive_group", arguments)


def titled(title: str, *arguments: Argument, about: str | None = None) -> Argument:
    """Return arguments that the help text has below a title."""
    return _grouped("add_argument_group", arguments, title, about)


def _grouped(method: str, arguments: Iterable[Argument], *texts: str | None) -> Argument:
    def add(parser: argparse._ActionsContainer) -> None:
        group = getattr(parser, method)(*texts)
        for one in arguments:
            one(group)

    return add


def number(
    name: str,
    what: str,
    type_: Callable[[str], float] = ONE_OR_MORE,
    metavar: str = "N",
    default: float | None = None,
) -> Argument:
    """Return an option with a number; its default is added to ``what``, the help text."""
    shown = "" if default is None else f" (default: {default:g})"
    return argument(name, what + shown, type=type_, metavar=metavar, default=default)


def several(
    name: str,
    what: str,
    type_: Callable[[str], float],
    metavar: str,
    default: Sequence[float],
) -> Argument:
    """Return an option with one or more numbers; ``what`` is the help text less its defaults."""
    shown = " ".join(f"{number:g}" for number in default)
    return argument(
        *(name, f"{what} (default: {shown})"),
        type=type_,
        nargs="+",
        default=default,
        metavar=metavar,
    )


def parsed_by(read: Callable[[str], _Value], prefix: str = "") -> Callable[[str], _Value]:
    """Return a type that ``read`` parses; its ValueError, less ``prefix``, is the usage error."""

    def typed(text: str) -> _Value:
        try:
            return read(text)
        except ValueError as failure:
            raise argparse.ArgumentTypeError(str(failure).removeprefix(prefix)) from failure

    return typed


PRICE = argument(
    "--price",
    "price of a core-hour, which is one vcpu of a VM for an hour, in any currency: a "
    "number, or one per application class, as in sync=0.03,async=0.07; 0.05,sync=0.03 has "
    "one for the other classes too (default: no revenue)",
    type=parsed_by(functools.partial(prices_in, what="--price"), prefix="--price: "),
    metavar="PRICES",
)
