"""The price of a core-hour, one for all VMs or one per application class."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from hpc_sched import decimals, exceptions
from hpc_sched.core.extra_spec_names import APP_CLASSES

FORM = "PRICE or CLASS=PRICE,..."
_OTHERS = ""  # the key of a price without a class
_HIGHEST = 1e9  # anything beyond is a typing error


@dataclass(frozen=True, slots=True)
class Prices:
    """Prices of a core-hour: one vcpu of a VM for an hour. In any currency, the same for all."""

    by_class: Mapping[str, float] = field(default_factory=dict)
    others: float | None = None  # of the classes that ``by_class`` lacks; None: 0

    def of(self, app_class: str) -> float:
        """Return the price for a class; 0 if it has none."""
        return self.by_class.get(app_class, self.others or 0.0)

    def notes(self, app_classes: Iterable[str]) -> list[str]:
        """Return a sentence on those of some classes that have no price, if there are any."""
        known = APP_CLASSES if self.others is not None else self.by_class
        lacking = sorted(set(app_classes).difference(known), key=APP_CLASSES.index)
        return [f"no price for class {', '.join(lacking)}: counted as 0"] if lacking else []

    def __str__(self) -> str:
        """Return the prices as :func:`read` reads them."""
        others = [] if self.others is None else [decimals.text_of(self.others)]
        named = ((name, self.by_class.get(name)) for name in APP_CLASSES)
        parts = (f"{name}={decimals.text_of(price)}" for name, price in named if price is not None)
        return ",".join([*others, *parts])


def read(text: str, what: str) -> Prices:
    """Return the prices stated by a text: ``0.05``, ``sync=0.03,async=0.07``, ``0.05,sync=0.03``.

    A price without a class is that of all classes which the text does not name.

    :param what: the option, for errors
    :raises exceptions.ConfigError: stating what was expected
    """
    found: dict[str, float] = {}
    for part in text.split(","):
        name, equals, stated = part.rpartition("=")
        name, stated = name.strip(), stated.strip()
        if equals and name not in APP_CLASSES:
            raise _error(what, f"{FORM} with classes of {', '.join(APP_CLASSES)}", name)
        price = decimals.number_in(stated)
        if price is None or not 0 <= price <= _HIGHEST:
            expected = f"{FORM}, each PRICE a number from 0 to {_HIGHEST:g}"
            raise _error(what, expected, part.strip())
        if name in found:
            raise _error(what, f"{name or 'a price without a class'} once", text)
        found[name] = price
    others = found.pop(_OTHERS, None)
    return Prices(found, others)


def _error(what: str, expected: str, found: str) -> exceptions.ConfigError:
    return exceptions.ConfigError(f"{what}: expected {expected}, found {found[:80]!r}")
