"""Shares of the application classes among the jobs of a simulation."""

import math
import random
from dataclasses import dataclass

from hpc_sched import exceptions
from hpc_sched.core.extra_spec_names import APP_CLASSES
from hpc_sched.sim import named_numbers

_FORM = "CLASS=SHARE,..."
_MAX_SHARE = 1e9
# Shares whose sum differs from 1 by rounding only are not changed.
_CLOSE_TO_ONE = 1e-9


@dataclass(frozen=True, slots=True)
class ClassMix:
    """Shares of the application classes: above 0, together 1, in the order of the vocabulary."""

    shares: tuple[tuple[str, float], ...]

    @property
    def text(self) -> str:
        """The text that :func:`read` reads back: ``sync=0.75,none=0.25``."""
        return named_numbers.text_of(dict(self.shares))

    def draw(self, rng: random.Random) -> str:
        """Return the class of the next job."""
        names, weights = zip(*self.shares, strict=True)
        return str(rng.choices(names, weights)[0])


ALL_SYNC = ClassMix((("sync", 1.0),))


def read(text: str, what: str) -> ClassMix:
    """Return the mix stated by a text, ``sync=3,none=1``; shares are divided by their sum.

    The order of the text does not matter.

    :param what: name of the text in errors, such as an option's name
    :raises exceptions.ConfigError: stating what was expected
    """
    stated = named_numbers.read(text, what, APP_CLASSES, _FORM, 0.0, _MAX_SHARE)
    total = math.fsum(stated.values())
    # A sum of tiny shares would lose them to rounding.
    if total < 1 / _MAX_SHARE:
        raise exceptions.ConfigError(f"{what}: expected {_FORM} with a share above 0")
    if abs(total - 1.0) <= _CLOSE_TO_ONE:
        total = 1.0
    shares = ((name, stated.get(name, 0.0) / total) for name in APP_CLASSES)
    return ClassMix(tuple((name, share) for name, share in shares if share > 0))
