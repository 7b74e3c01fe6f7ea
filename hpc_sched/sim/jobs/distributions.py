"""Stated distributions: short texts for what the simulator draws.

======================  =========================================================
``constant:5``          always 5
``uniform:0:30``        evenly between 0 and 30
``exponential:600``     with the mean 600
``lognormal:60:1.5``    with the median 60 and the standard deviation 1.5 of its logarithm
``choice:1:2:4``        one of these, equally often
``choice:1=0.9:8=0.1``  one of these, by weight
======================  =========================================================
"""

import math
import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Protocol

from hpc_sched import decimals, exceptions

# Differences and products of such numbers are finite.
MAX_NUMBER = 1e15
# What must be above 0 is at least so much: its inverse is finite too.
_LEAST = 1 / MAX_NUMBER
# exp(20 * 8) times a median is finite.
MAX_SIGMA = 20.0

_FORMS = (
    "constant:NUMBER, uniform:LOW:HIGH, exponential:MEAN, lognormal:MEDIAN:SIGMA, "
    "choice:NUMBER:... or choice:NUMBER=WEIGHT:..."
)


class Distribution(Protocol):
    """Something that numbers are drawn from; equal ones draw the same."""

    @property
    def text(self) -> str:
        """The text that :func:`read` makes it of."""

    @property
    def lowest(self) -> float:
        """No number that is drawn is below."""

    def draw(self, rng: random.Random) -> float:
        """Return the next number."""


@dataclass(frozen=True, slots=True)
class Constant:
    """One number."""

    value: float

    @property
    def text(self) -> str:
        """``constant:5``."""
        return _text("constant", self.value)

    @property
    def lowest(self) -> float:
        """The number."""
        return self.value

    def draw(self, rng: random.Random) -> float:
        """Return the number."""
        return self.value


ZERO = Constant(0.0)


@dataclass(frozen=True, slots=True)
class Uniform:
    """Every number between two, equally often."""

    low: float
    high: float

    @property
    def text(self) -> str:
        """``uniform:0:30``."""
        return _text("uniform", self.low, self.high)

    @property
    def lowest(self) -> float:
        """The lower of the two."""
        return self.low

    def draw(self, rng: random.Random) -> float:
        """Return the next number."""
        return rng.uniform(self.low, self.high)


@dataclass(frozen=True, slots=True)
class Exponential:
    """Times between events that know nothing of each other."""

    mean: float

    @property
    def text(self) -> str:
        """``exponential:600``."""
        return _text("exponential", self.mean)

    @property
    def lowest(self) -> float:
        """0."""
        return 0.0

    def draw(self, rng: random.Random) -> float:
        """Return the next number."""
        return rng.expovariate(1.0 / self.mean)


@dataclass(frozen=True, slots=True)
class LogNormal:
    """Numbers whose logarithms are normal: many small ones, a few very large."""

    median: float
    sigma: float  # of the natural logarithm

    @property
    def text(self) -> str:
        """``lognormal:60:1.5``."""
        return _text("lognormal", self.median, self.sigma)

    @property
    def lowest(self) -> float:
        """0."""
        return 0.0

    def draw(self, rng: random.Random) -> float:
        """Return the next number."""
        return self.median * math.exp(rng.normalvariate(0.0, self.sigma))


@dataclass(frozen=True, slots=True)
class Choice:
    """One of a few numbers, by their weights."""

    values: tuple[float, ...]
    weights: tuple[float, ...]  # as many, each above 0

    @property
    def text(self) -> str:
        """``choice:1:2:4``, or ``choice:1=0.9:8=0.1`` where the weights differ from 1."""
        if set(self.weights) == {1.0}:
            return _text("choice", *self.values)
        pairs = zip(self.values, self.weights, strict=True)
        return ":".join(["choice", *("=".join(map(decimals.text_of, each)) for each in pairs)])

    @property
    def lowest(self) -> float:
        """The lowest of them."""
        return min(self.values)

    def draw(self, rng: random.Random) -> float:
        """Return the next number."""
        return rng.choices(self.values, self.weights)[0]


def read(text: str, what: str, at_least: float | None = None) -> Distribution:
    """Return the distribution that a text states.

    :param what: what errors call it, such as an option's name
    :param at_least: no number that is drawn may be below
    :raises exceptions.ConfigError: telling what was expected
    """
    kind, *stated = text.strip().split(":")
    if kind not in _READERS:
        raise _error(what, f"one of {_FORMS}", text)
    try:
        found = _READERS[kind](stated)
    except _Unexpected as unexpected:
        raise _error(what, str(unexpected), text) from None
    if at_least is not None and found.lowest < at_least:
        raise _error(what, f"numbers of at least {decimals.text_of(at_least)}", text)
    return found


class _Unexpected(Exception):
    """Says what was expected instead."""


def _constant(stated: list[str]) -> Distribution:
    return Constant(*_numbers(stated, "constant:NUMBER", 1))


def _uniform(stated: list[str]) -> Distribution:
    low, high = _numbers(stated, "uniform:LOW:HIGH", 2)
    if low > high:
        raise _Unexpected("uniform:LOW:HIGH with LOW not above HIGH")
    return Uniform(low, high)


def _exponential(stated: list[str]) -> Distribution:
    [mean] = _numbers(stated, "exponential:MEAN", 1)
    if mean < _LEAST:
        raise _Unexpected("exponential:MEAN with a MEAN above 0")
    return Exponential(mean)


def _log_normal(stated: list[str]) -> Distribution:
    median, sigma = _numbers(stated, "lognormal:MEDIAN:SIGMA", 2)
    if not median > 0 or not 0 <= sigma <= MAX_SIGMA:
        limits = f"a MEDIAN above 0 and a SIGMA of 0 to {MAX_SIGMA:g}"
        raise _Unexpected(f"lognormal:MEDIAN:SIGMA with {limits}")
    return LogNormal(median, sigma)


def _choice(stated: list[str]) -> Distribution:
    form = "choice:NUMBER:... or choice:NUMBER=WEIGHT:... with weights above 0"
    pairs = [each.split("=") for each in stated]
    if not pairs or len({len(each) for each in pairs}) != 1 or len(pairs[0]) > 2:
        raise _Unexpected(form)
    columns = [_numbers(list(column), form, len(pairs)) for column in zip(*pairs, strict=True)]
    values, weights = columns if len(columns) == 2 else (columns[0], (1.0,) * len(pairs))
    if min(weights) < _LEAST:
        raise _Unexpected(form)
    return Choice(values, weights)


_READERS: Mapping[str, Callable[[list[str]], Distribution]] = {
    "constant": _constant,
    "uniform": _uniform,
    "exponential": _exponential,
    "lognormal": _log_normal,
    "choice": _choice,
}


def _numbers(stated: list[str], form: str, count: int) -> tuple[float, ...]:
    numbers = [decimals.number_in(each.strip()) for each in stated]
    found = tuple(each for each in numbers if each is not None and abs(each) <= MAX_NUMBER)
    if len(stated) != count or len(found) != count:
        raise _Unexpected(form)
    return found


def _text(kind: str, *numbers: float) -> str:
    return ":".join([kind, *map(decimals.text_of, numbers)])


def _error(what: str, expected: str, text: str) -> exceptions.ConfigError:
    return exceptions.ConfigError(f"{what}: expected {expected}, found {text[:80]!r}")
