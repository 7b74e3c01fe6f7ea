"""The rates of the fragmentation price, as the option ``fragmentation_price`` states them."""

from dataclasses import dataclass
from fractions import Fraction

from hpc_sched import decimals, exceptions

FORM = "LEAF,POD"
MOST = 1000  # far above rates at which the Hop-Byte counts nothing


@dataclass(frozen=True, slots=True)
class FragmentationRates:
    """What free slots cost on leaves and pods that take VMs, in hops; see FragmentationPrice."""

    leaf: Fraction
    pod: Fraction

    def __bool__(self) -> bool:
        return bool(self.leaf or self.pod)

    def as_list(self) -> list[float]:
        """Return the rates as JSON has them."""
        return [float(self.leaf), float(self.pod)]

    def __str__(self) -> str:
        return f"{float(self.leaf):g},{float(self.pod):g}" if self else "0"


NO_PRICE = FragmentationRates(Fraction(0), Fraction(0))
# Measured: docs/placement.rst has the table, and the command that prints it.
DEFAULT = FragmentationRates(Fraction(1, 10), Fraction(1, 5))


def read(text: str) -> FragmentationRates:
    """Return the rates of a text: ``0.1,0.2``, or ``0`` for no price.

    :raises exceptions.ConfigError: stating what was expected
    """
    stated = [decimals.number_in(part.strip()) for part in text.split(",")]
    numbers = [number for number in stated if number is not None and 0 <= number <= MOST]
    if stated == [0]:
        return NO_PRICE
    if len(numbers) != 2 or len(stated) != 2:
        raise exceptions.ConfigError(
            f"expected {FORM}, two numbers from 0 to {MOST}, or 0; found {text[:80]!r}"
        )
    return rates_of(*numbers)


def rates_of(leaf: float, pod: float) -> FragmentationRates:
    """Return two rates as they are written, to nine digits of their fractions."""
    return FragmentationRates(
        *(Fraction(str(number)).limit_denominator(10**9) for number in (leaf, pod))
    )
