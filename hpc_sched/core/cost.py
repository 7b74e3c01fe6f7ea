"""What VMs and the hosts that run them cost: core-hours, their prices, the revenue.

Gupta2013 has both ways to save: a placement that makes a job of N cores shorter by a fifth saves a
fifth of its time times N core-hours (section VI-A), and VMs packed on fewer hosts earn more an
hour of each host (section II, Table I).
"""

import math
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
        """Return the prices as :func:`prices_in` reads them."""
        others = [] if self.others is None else [decimals.text_of(self.others)]
        named = ((name, self.by_class.get(name)) for name in APP_CLASSES)
        parts = (f"{name}={decimals.text_of(price)}" for name, price in named if price is not None)
        return ",".join([*others, *parts])


@dataclass(frozen=True, slots=True)
class Usage:
    """What VMs have used in some time, and the hosts that ran them.

    A host is in use while it has at least one VM, whatever the VM's size. Its cores are the vcpus
    that it offers to VMs, allocation ratio included.
    """

    core_hours: Mapping[str, float]  # application class to vcpus of its VMs times hours
    host_hours: float  # of the hosts in use
    host_core_hours: float  # of all cores of these hosts, with and without a VM

    @property
    def all_core_hours(self) -> float:
        """Core-hours of VMs of all classes."""
        return math.fsum(self.core_hours.values())

    def revenue(self, prices: Prices) -> float:
        """Return what users pay for the core-hours of their VMs.

        A VM pays for its own vcpus, also one of class ``extreme``, which keeps the rest of its
        hosts empty: where users pay for that, the price of the class says so.
        """
        return math.fsum(hours * prices.of(name) for name, hours in self.core_hours.items())

    def revenue_per_host_hour(self, prices: Prices) -> float | None:
        """Return the revenue of one host in use in one hour; None without a host in use."""
        return self.revenue(prices) / self.host_hours if self.host_hours else None

    def revenue_per_host_core_hour(self, prices: Prices) -> float | None:
        """Return the revenue of one core of a host in use in one hour; None without a core."""
        return self.revenue(prices) / self.host_core_hours if self.host_core_hours else None


def prices_in(text: str, what: str) -> Prices:
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
            raise _error(what, f"{FORM}, each PRICE a number from 0 to {_HIGHEST:g}", part.strip())
        if name in found:
            raise _error(what, f"{name or 'a price without a class'} once", text)
        found[name] = price
    others = found.pop(_OTHERS, None)
    return Prices(found, others)


def _error(what: str, expected: str, found: str) -> exceptions.ConfigError:
    return exceptions.ConfigError(f"{what}: expected {expected}, found {found[:80]!r}")
