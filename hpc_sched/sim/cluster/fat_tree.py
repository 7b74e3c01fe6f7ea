"""Generated fat trees: levels, switches of one size, oversubscription."""

import math
from dataclasses import dataclass
from typing import Any

from hpc_sched import exceptions
from hpc_sched.sim import named_values
from hpc_sched.topology.model import Topology

# Bounds that keep a typing error from filling the memory.
MOST_HOSTS = 1_000_000
MOST_LEVELS = 8

FORM = "levels=3,radix=48,oversubscription=2,hosts=10000"


@dataclass(frozen=True, slots=True)
class FatTree:
    """A fabric of equal switches.

    ::

                    radix children             the level of the roots, as one switch
                  /       |        \\
           down children  ..        ..         down : up = oversubscription
             /    |    \\
        down hosts ..   ..                     leaf switches

    A switch below the roots has ``radix`` ports, of which oversubscription / (1 +
    oversubscription) lead down. Switches of a level that connect the same ones below are
    one switch of the tree, as in every topology driver.

    :raises exceptions.ConfigError: for a fabric that cannot be built
    """

    levels: int = 3
    radix: int = 36
    oversubscription: float = 1.0
    hosts: int | None = None  # the fabric has only the leaves that these need; None: all hosts

    def __post_init__(self) -> None:
        def check(is_valid: bool, name: str, expected: str) -> None:
            if not is_valid:
                found = self.total if name == "hosts" else getattr(self, name)
                raise exceptions.ConfigError(f"fabric: {name}: expected {expected}, found {found}")

        ports = f"a ratio that leaves a port up and one down of {self.radix}"
        check(1 <= self.levels <= MOST_LEVELS, "levels", f"1 to {MOST_LEVELS}")
        check(2 <= self.radix <= MOST_HOSTS, "radix", f"2 to {MOST_HOSTS} ports")
        check(0 < self.oversubscription < math.inf, "oversubscription", "a ratio above 0")
        check(self.levels == 1 or 1 <= self.down < self.radix, "oversubscription", ports)
        check(self.total <= MOST_HOSTS, "hosts", f"at most {MOST_HOSTS}")
        check(1 <= self.total <= self.most, "hosts", f"1 to {self.most}, which is all it holds")

    @property
    def down(self) -> int:
        """Ports of a switch below the roots that lead down."""
        return round(self.radix * self.oversubscription / (1 + self.oversubscription))

    @property
    def up(self) -> int:
        """Ports of a switch below the roots that lead up."""
        return self.radix - self.down

    @property
    def down_to_up(self) -> float | None:
        """Ports down over ports up of a switch below the roots; None without such a switch."""
        return None if self.levels == 1 else self.down / self.up

    @property
    def most(self) -> int:
        """Hosts of the whole fabric."""
        return int(self.radix * self.down ** (self.levels - 1))

    @property
    def total(self) -> int:
        """Hosts of this fabric."""
        return self.most if self.hosts is None else self.hosts

    def topology(self) -> Topology:
        """Return the topology; hosts are named n0001.., switches sw, level and number."""
        width = len(str(self.total))
        hosts = [f"n{number:0{width}}" for number in range(1, self.total + 1)]
        # Children of each switch of a level, from the leaf switches up.
        switches: list[Any] = _chunks(hosts, self.total if self.levels == 1 else self.down)
        for level in range(1, self.levels):
            named = [(f"sw{level}-{n:04}", below) for n, below in enumerate(switches, start=1)]
            ports = self.down if level + 1 < self.levels else self.radix
            switches = list(map(dict, _chunks(named, ports)))
        return Topology.from_tree({f"sw{self.levels}-0001": switches[0]})


def _chunks(items: list[Any], size: int) -> list[list[Any]]:
    return [items[i : i + size] for i in range(0, len(items), size)]


def read(text: str, what: str) -> FatTree:
    """Return the fabric stated by a text such as ``levels=3,radix=48,hosts=10000``.

    :raises exceptions.ConfigError: stating what was expected
    """
    kinds = {"levels": int, "radix": int, "oversubscription": float, "hosts": int}
    stated: dict[str, Any] = {}
    for name, value in named_values.texts(text, what, kinds, FORM).items():
        try:
            stated[name] = kinds[name](value)
        except ValueError:
            raise named_values.error(f"{what}: {name}", "a number", value) from None
    return FatTree(**stated)
