"""Distributions of the numbers that the simulator draws, as short texts.

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
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from hpc_sched import decimals, exceptions

# Differences and products of numbers up to this one are finite.
MAX_NUMBER = 1e15
# Lower bound of what must be above 0: its inverse is finite too.
_LEAST = 1 / MAX_NUMBER
# exp(20 * 8) times a median is finite.
MAX_SIGMA = 20.0

Numbers = tuple[float, ...]


@dataclass(frozen=True, slots=True)
class _Kind:
    """What one kind of distribution needs, and how it is drawn."""

    form: str
    lowest: Callable[[Numbers], float]
    draw: Callable[[random.Random, Numbers], float]
    is_valid: Callable[[Numbers], bool] = lambda numbers: True
    valid: str = ""  # what is_valid requires, for error messages


_KINDS: Mapping[str, _Kind] = {
    "constant": _Kind(
        "constant:NUMBER", lowest=lambda numbers: numbers[0], draw=lambda rng, numbers: numbers[0]
    ),
    "uniform": _Kind(
        "uniform:LOW:HIGH",
        lowest=lambda numbers: numbers[0],
        draw=lambda rng, numbers: rng.uniform(*numbers),
        is_valid=lambda numbers: numbers[0] <= numbers[1],
        valid="LOW not above HIGH",
    ),
    "exponential": _Kind(
        "exponential:MEAN",
        lowest=lambda numbers: 0.0,
        draw=lambda rng, numbers: rng.expovariate(1.0 / numbers[0]),
        is_valid=lambda numbers: numbers[0] >= _LEAST,
        valid="a MEAN above 0",
    ),
    "lognormal": _Kind(
        "lognormal:MEDIAN:SIGMA",
        lowest=lambda numbers: 0.0,
        draw=lambda rng, numbers: numbers[0] * math.exp(rng.normalvariate(0.0, numbers[1])),
        is_valid=lambda numbers: numbers[0] > 0 and 0 <= numbers[1] <= MAX_SIGMA,
        valid=f"a MEDIAN above 0 and a SIGMA of 0 to {MAX_SIGMA:g}",
    ),
}
_CHOICE = "choice:NUMBER:... or choice:NUMBER=WEIGHT:..."
_FORMS = ", ".join([*(kind.form for kind in _KINDS.values()), _CHOICE])


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
        if self.kind == "choice":
            return min(self.numbers)
        return _KINDS[self.kind].lowest(self.numbers)

    def draw(self, rng: random.Random) -> float:
        """Return the next number."""
        if self.kind == "choice":
            return rng.choices(self.numbers, self.weights)[0]
        return _KINDS[self.kind].draw(rng, self.numbers)


ZERO = Distribution("constant", (0.0,))


def read(text: str, what: str = "distribution", at_least: float | None = None) -> Distribution:
    """Return the distribution stated by a text.

    :param what: name of the text in errors, such as an option's name
    :param at_least: lower bound that the numbers drawn must keep
    :raises exceptions.ConfigError: stating what was expected
    """

    def error(expected: str) -> exceptions.ConfigError:
        return exceptions.ConfigError(f"{what}: expected {expected}, found {text[:80]!r}")

    name, *stated = text.strip().split(":")
    if name == "choice":
        found = _choice(stated)
        if found is None:
            raise error(f"{_CHOICE} with weights above 0")
    elif name in _KINDS:
        kind, numbers = _KINDS[name], _numbers(stated)
        if numbers is None or len(numbers) != kind.form.count(":"):
            raise error(kind.form)
        if not kind.is_valid(numbers):
            raise error(f"{kind.form} with {kind.valid}")
        found = Distribution(name, numbers)
    else:
        raise error(f"one of {_FORMS}")
    if at_least is not None and found.lowest < at_least:
        raise error(f"numbers of at least {decimals.text_of(at_least)}")
    return found


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
