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
        if not 1 <= self.levels <= MOST_LEVELS:
            raise _impossible("levels", f"1 to {MOST_LEVELS}", self.levels)
        if not 2 <= self.radix <= MOST_HOSTS:
            raise _impossible("radix", f"2 to {MOST_HOSTS} ports", self.radix)
        if not 0 < self.oversubscription < math.inf:
            raise _impossible("oversubscription", "a ratio above 0", self.oversubscription)
        if self.levels > 1 and not 1 <= self.down < self.radix:
            raise _impossible(
                "oversubscription",
                f"a ratio that leaves a port up and one down of {self.radix}",
                self.oversubscription,
            )
        wanted = self.most if self.hosts is None else self.hosts
        if wanted > MOST_HOSTS:
            raise _impossible("hosts", f"at most {MOST_HOSTS}", wanted)
        if self.hosts is not None and not 1 <= self.hosts <= self.most:
            raise _impossible("hosts", f"1 to {self.most}, which is all it holds", self.hosts)

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

    :param what: name of the text in errors
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
            raise exceptions.SimulationError(
                f"{what}: {name}: expected a number, found {value!r}"
            ) from None
    return FatTree(**stated)


def _impossible(name: str, expected: str, found: float) -> exceptions.SimulationError:
    return exceptions.SimulationError(f"fabric: {name}: expected {expected}, found {found}")
