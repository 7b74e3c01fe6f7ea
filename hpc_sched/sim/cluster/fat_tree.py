"""Generated fat trees: levels, switches of one size, oversubscription."""

import math
from dataclasses import dataclass
from typing import Any

from hpc_sched import exceptions
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

    :raises exceptions.SimulationError: for a fabric that cannot be built
    """

    levels: int = 3
    radix: int = 36
    oversubscription: float = 1.0
    hosts: int | None = None  # the fabric has only the leaves that these need; None: all hosts

    def __post_init__(self) -> None:
        def check(is_valid: bool, name: str, expected: str, found: float) -> None:
            if not is_valid:
                raise exceptions.SimulationError(
                    f"fabric: {name}: expected {expected}, found {found}"
                )

        levels, radix, ratio = self.levels, self.radix, self.oversubscription
        check(1 <= levels <= MOST_LEVELS, "levels", f"1 to {MOST_LEVELS}", levels)
        check(2 <= radix <= MOST_HOSTS, "radix", f"2 to {MOST_HOSTS} ports", radix)
        check(0 < ratio < math.inf, "oversubscription", "a ratio above 0", ratio)
        ports = f"a ratio that leaves a port up and one down of {radix}"
        check(levels == 1 or 1 <= self.down < radix, "oversubscription", ports, ratio)
        hosts, most = self.most if self.hosts is None else self.hosts, self.most
        check(hosts <= MOST_HOSTS, "hosts", f"at most {MOST_HOSTS}", hosts)
        check(1 <= hosts <= most, "hosts", f"1 to {most}, which is all it holds", hosts)

    @property
    def down(self) -> int:
        """Ports of a switch below the roots that lead down."""
        return round(self.radix * self.oversubscription / (1 + self.oversubscription))

    @property
    def most(self) -> int:
        """Hosts of the whole fabric."""
        return int(self.radix * self.down ** (self.levels - 1))

    def topology(self) -> Topology:
        """Return the topology; hosts are named n0001.., switches sw, level and number."""
        total = self.most if self.hosts is None else self.hosts
        width = len(str(total))
        names = iter([f"n{number:0{width}}" for number in range(1, total + 1)])
        numbers = [0] * (self.levels + 1)

        def below(level: int, left: int) -> Any:
            """Return the children of a switch of a level, with ``left`` hosts below them."""
            if level == 1:
                return [next(names) for _ in range(left)]
            holds = self.down ** (level - 1)
            children: dict[str, Any] = {}
            while left > 0:
                numbers[level - 1] += 1
                here = min(left, holds)
                children[f"sw{level - 1}-{numbers[level - 1]:04}"] = below(level - 1, here)
                left -= here
            return children

        return Topology.from_tree({f"sw{self.levels}-0001": below(self.levels, total)})


def read(text: str, what: str) -> FatTree:
    """Return the fabric stated by a text such as ``levels=3,radix=48,hosts=10000``.

    :raises exceptions.SimulationError: stating what was expected
    """
    stated: dict[str, Any] = {}
    for part in text.split(","):
        name, equals, value = part.strip().partition("=")
        if name not in ("levels", "radix", "oversubscription", "hosts") or not equals:
            raise exceptions.SimulationError(f"{what}: expected {FORM}, found {part.strip()!r}")
        if name in stated:
            raise exceptions.SimulationError(f"{what}: {name} is stated twice")
        try:
            stated[name] = float(value) if name == "oversubscription" else int(value)
        except ValueError:
            text = f"{what}: {name}: expected a number, found {value!r}"
            raise exceptions.SimulationError(text) from None
    return FatTree(**stated)
