"""Distributions of the numbers that the simulator draws, as short texts.

======================  =========================================================
``constant:5``          always 5
``uniform:0:30``        evenly between 0 and 30
``exponential:600``     with the mean 600
``lognormal:60:1.5``    with the median 60 and the standard deviation 1.5 of its logarithm
``choice:1:2:4``        one of these, equally often
``choice:1=0.9:8=0.1``  one of these, by weight
======================  =========================================================

Application classes are drawn by their shares: ``sync=3,none=1``.
"""

import math
import random
from collections.abc import Sequence
from dataclasses import dataclass

from hpc_sched import decimals, exceptions
from hpc_sched.core.extra_spec_names import APP_CLASSES
from hpc_sched.sim import named_numbers

# Differences and products of numbers up to this one are finite.
MAX_NUMBER = 1e15
# Lower bound of what must be above 0: its inverse is finite too.
_LEAST = 1 / MAX_NUMBER
# exp(20 * 8) times a median is finite.
MAX_SIGMA = 20.0

_KINDS = {
    "constant": "constant:NUMBER",
    "uniform": "uniform:LOW:HIGH",
    "exponential": "exponential:MEAN",
    "lognormal": "lognormal:MEDIAN:SIGMA",
}
_CHOICE = "choice:NUMBER:... or choice:NUMBER=WEIGHT:..."

_MIX = "CLASS=SHARE,..."
_MAX_SHARE = 1e9
# Shares whose sum differs from 1 by rounding only are not changed.
_CLOSE_TO_ONE = 1e-9

Numbers = tuple[float, ...]


@dataclass(frozen=True, slots=True)
class Distribution:
    """A distribution of numbers. Equal distributions draw the same numbers."""

    kind: str  # a key of _KINDS, or choice
    numbers: Numbers
    weights: Numbers = ()  # of a choice: one per number, above 0

    @property
    def text(self) -> str:
        """The text that :func:`read` reads back; without the weights if all are 1."""
        texts = list(map(decimals.text_of, self.numbers))
        if set(self.weights) - {1.0}:
            weights = map(decimals.text_of, self.weights)
            texts = [f"{number}={weight}" for number, weight in zip(texts, weights, strict=True)]
        return ":".join([self.kind, *texts])

    @property
    def lowest(self) -> float:
        """Lower bound of the numbers drawn."""
        return 0.0 if self.kind in ("exponential", "lognormal") else min(self.numbers)

    def draw(self, rng: random.Random) -> float:
        """Return the next number."""
        match self.kind:
            case "choice":
                return rng.choices(self.numbers, self.weights)[0]
            case "uniform":
                return rng.uniform(*self.numbers)
            case "exponential":
                return rng.expovariate(1.0 / self.numbers[0])
            case "lognormal":
                median, sigma = self.numbers
                return median * math.exp(rng.normalvariate(0.0, sigma))
        return self.numbers[0]


ZERO = Distribution("constant", (0.0,))


def read(text: str, what: str = "distribution", at_least: float | None = None) -> Distribution:
    """Return the distribution stated by a text.

    :raises exceptions.ConfigError: stating what was expected
    """

    def error(expected: str) -> exceptions.ConfigError:
        return exceptions.ConfigError(f"{what}: expected {expected}, found {text[:80]!r}")

    name, *stated = text.strip().split(":")
    if name == "choice":
        found = _choice(stated)
        if found is None:
            raise error(f"{_CHOICE} with weights above 0")
    elif form := _KINDS.get(name):
        numbers = _numbers(stated)
        if numbers is None or len(numbers) != form.count(":"):
            raise error(form)
        if needed := _violated(name, numbers):
            raise error(f"{form} with {needed}")
        found = Distribution(name, numbers)
    else:
        raise error(f"one of {', '.join([*_KINDS.values(), _CHOICE])}")
    if at_least is not None and found.lowest < at_least:
        raise error(f"numbers of at least {decimals.text_of(at_least)}")
    return found


def _violated(kind: str, numbers: Numbers) -> str | None:
    """Return what numbers of a kind lack, or None."""
    if kind == "uniform" and numbers[0] > numbers[1]:
        return "LOW not above HIGH"
    if kind == "exponential" and numbers[0] < _LEAST:
        return "a MEAN above 0"
    if kind == "lognormal" and not (numbers[0] > 0 and 0 <= numbers[1] <= MAX_SIGMA):
        return f"a MEDIAN above 0 and a SIGMA of 0 to {MAX_SIGMA:g}"
    return None


def _choice(stated: Sequence[str]) -> Distribution | None:
    pairs = [each.partition("=") for each in stated]
    numbers = _numbers([number for number, _, _ in pairs])
    weights: Numbers | None = (1.0,) * len(pairs)
    if any(equals for _, equals, _ in pairs):
        weights = _numbers([weight for _, _, weight in pairs])
    if not numbers or not weights or min(weights) < _LEAST:
        return None
    return Distribution("choice", numbers, weights)


def _numbers(texts: Sequence[str]) -> Numbers | None:
    """Return the numbers of texts, or None if one is no number or too large."""
    found = [decimals.number_in(text.strip()) for text in texts]
    numbers = tuple(each for each in found if each is not None and abs(each) <= MAX_NUMBER)
    return numbers if len(numbers) == len(texts) else None


@dataclass(frozen=True, slots=True)
class ClassMix:
    """Shares of the application classes: above 0, together 1, in the order of the vocabulary."""

    shares: tuple[tuple[str, float], ...]

    @property
    def text(self) -> str:
        """The text that :func:`read_mix` reads back: ``sync=0.75,none=0.25``."""
        return ",".join(f"{name}={decimals.text_of(share)}" for name, share in self.shares)

    def draw(self, rng: random.Random) -> str:
        """Return the class of the next job."""
        names, weights = zip(*self.shares, strict=True)
        return str(rng.choices(names, weights)[0])


ALL_SYNC = ClassMix((("sync", 1.0),))


def read_mix(text: str, what: str) -> ClassMix:
    """Return the mix stated by a text, in any order; shares are divided by their sum.

    :raises exceptions.ConfigError: stating what was expected
    """
    stated = named_numbers.read(text, what, APP_CLASSES, _MIX, 0.0, _MAX_SHARE)
    total = math.fsum(stated.values())
    # A sum of tiny shares would lose them to rounding.
    if total < 1 / _MAX_SHARE:
        raise exceptions.ConfigError(f"{what}: expected {_MIX} with a share above 0")
    if abs(total - 1.0) <= _CLOSE_TO_ONE:
        total = 1.0
    shares = ((name, stated.get(name, 0.0) / total) for name in APP_CLASSES)
    return ClassMix(tuple((name, share) for name, share in shares if share > 0))
