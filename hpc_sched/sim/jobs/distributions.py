"""Distributions of the numbers that the simulator draws, as short texts.

======================  =========================================================
``constant:5``          always 5
``uniform:0:30``        evenly between 0 and 30
``exponential:600``     with the mean 600
``lognormal:60:1.5``    with the median 60 and the standard deviation 1.5 of its logarithm
``choice:1:2:4``        one of these, equally often
``choice:1=0.9:8=0.1``  one of these, by weight
======================  =========================================================

Application classes, and names of applications, are drawn by their shares: ``sync=3,none=1``.
"""

import math
import operator
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from hpc_sched import decimals, exceptions
from hpc_sched.core import extra_spec_names
from hpc_sched.core.extra_spec_names import APP_CLASSES
from hpc_sched.sim import named_values

Numbers = tuple[float, ...]

MAX_NUMBER = 1e15  # differences and products of numbers up to this one are finite
LEAST = 1 / MAX_NUMBER  # of what must be above 0: its inverse is finite too
MAX_SIGMA = 20.0  # exp(20 * 8) times a median is finite

# Per kind: its form, and what its numbers must be.
_KINDS: dict[str, tuple[str, str, Callable[[Numbers], bool]]] = {
    "constant": ("constant:NUMBER", "", lambda _: True),
    "uniform": ("uniform:LOW:HIGH", "LOW not above HIGH", lambda found: found[0] <= found[1]),
    "exponential": ("exponential:MEAN", "a MEAN above 0", lambda found: found[0] >= LEAST),
    "lognormal": (
        "lognormal:MEDIAN:SIGMA",
        f"a MEDIAN above 0 and a SIGMA of 0 to {MAX_SIGMA:g}",
        lambda found: found[0] > 0 and 0 <= found[1] <= MAX_SIGMA,
    ),
}
_CHOICE = "choice:NUMBER:... or choice:NUMBER=WEIGHT:..."

_APPLICATIONS = "NAME=SHARE,..."
_MAX_SHARE = 1e9


@dataclass(frozen=True, slots=True)
class Distribution:
    """A distribution of numbers. Equal distributions draw the same numbers."""

    kind: str  # a key of _KINDS, or choice
    numbers: Numbers
    weights: Numbers = ()  # of a choice: one per number, above 0

    @property
    def lowest(self) -> float:
        """Lower bound of the numbers drawn."""
        return 0.0 if self.kind in ("exponential", "lognormal") else min(self.numbers)

    @property
    def mean(self) -> float:
        """Mean of the numbers drawn, in closed form."""
        match self.kind:
            case "choice":
                weighted = map(operator.mul, self.numbers, self.weights)
                return math.fsum(weighted) / math.fsum(self.weights)
            case "uniform":
                return math.fsum(self.numbers) / 2
            case "lognormal":
                median, sigma = self.numbers
                return median * math.exp(sigma**2 / 2)
        return self.numbers[0]

    @property
    def is_constant(self) -> bool:
        """True if all numbers drawn are equal."""
        if self.kind == "lognormal":
            return self.numbers[1] == 0
        return self.kind != "exponential" and len(set(self.numbers)) == 1

    @property
    def text(self) -> str:
        """The text that :func:`read` reads this distribution from."""
        numbers = map(decimals.text_of, self.numbers)
        if set(self.weights) - {1.0}:
            weights = map(decimals.text_of, self.weights)
            numbers = map("=".join, zip(numbers, weights, strict=True))
        return ":".join((self.kind, *numbers))

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

    kind, *stated = text.strip().split(":")
    if kind == "choice":
        pairs = [each.partition("=") for each in stated]
        is_weighted = any(equals for _, equals, _ in pairs)
        numbers = _numbers([number for number, _, _ in pairs])
        weights = _numbers([weight if is_weighted else "1" for _, _, weight in pairs])
        if not numbers or not weights or min(weights) < LEAST:
            raise error(f"{_CHOICE} with weights above 0")
    elif kind in _KINDS:
        form, needed, is_valid = _KINDS[kind]
        numbers, weights = _numbers(stated), ()
        if len(numbers) != form.count(":"):
            raise error(form)
        if not is_valid(numbers):
            raise error(f"{form} with {needed}")
    else:
        raise error(f"one of {', '.join([*(form for form, _, _ in _KINDS.values()), _CHOICE])}")
    found = Distribution(kind, numbers, weights)
    if at_least is not None and found.lowest < at_least:
        raise error(f"numbers of at least {decimals.text_of(at_least)}")
    return found


def _numbers(texts: Sequence[str]) -> Numbers:
    """Return the numbers of texts; none if one is no number or too large."""
    found = [decimals.number_in(text.strip()) for text in texts]
    numbers = tuple(each for each in found if each is not None and abs(each) <= MAX_NUMBER)
    return numbers if len(numbers) == len(texts) else ()


@dataclass(frozen=True, slots=True)
class Mix:
    """Shares of names: above 0, together 1. Equal mixes draw the same names."""

    shares: tuple[tuple[str, float], ...]

    @property
    def is_constant(self) -> bool:
        """True if all jobs have the same name."""
        return len(self.shares) == 1

    def draw(self, rng: random.Random) -> str:
        """Return the next name."""
        return str(rng.choices(*zip(*self.shares, strict=True))[0])


ALL_SYNC = Mix((("sync", 1.0),))


def read_mix(text: str, what: str) -> Mix:
    """Return the mix of application classes stated by a text, in any order.

    Shares are divided by their sum. The mix is in the order of the vocabulary.

    :raises exceptions.ConfigError: stating what was expected
    """
    return mix_of(text, what, APP_CLASSES, "CLASS=SHARE,...")


def read_applications(text: str, what: str) -> Mix:
    """Return the mix of named applications stated by a text; shares are divided by their sum.

    :raises exceptions.ConfigError: stating what was expected
    """
    names = sorted({part.rpartition("=")[0].strip() for part in text.split(",")})
    if not all(map(extra_spec_names.is_name, names)):
        raise named_values.error(what, f"{_APPLICATIONS} with {extra_spec_names.EXPECTED}", text)
    return mix_of(text, what, names, _APPLICATIONS)


def mix_of(text: str, what: str, names: Sequence[str], form: str) -> Mix:
    """Return the mix of names stated by a text, in the order of the names.

    :raises exceptions.ConfigError: stating what was expected, with the form of the text
    """
    stated = named_values.numbers(text, what, names, form, 0.0, _MAX_SHARE)
    total = math.fsum(stated.values())
    # A sum of tiny shares would lose them to rounding.
    if total < 1 / _MAX_SHARE:
        raise exceptions.ConfigError(f"{what}: expected {form} with a share above 0")
    # Shares whose sum differs from 1 by rounding only are not changed.
    if abs(total - 1.0) <= 1e-9:
        total = 1.0
    shares = ((name, stated.get(name, 0.0) / total) for name in names)
    return Mix(tuple((name, share) for name, share in shares if share > 0))
