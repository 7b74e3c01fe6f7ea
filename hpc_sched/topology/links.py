"""The links of a switch: cables by data rate, and how far the rates up are below those down."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from hpc_sched import decimals


@dataclass(frozen=True, slots=True)
class Cables:
    """Parallel cables: the data rate of one in Gb/s, None where unknown, and how many have it.

    Fastest first, unknown ones last. Made by :meth:`of` or :meth:`total`.
    """

    counts: tuple[tuple[float | None, int], ...] = ()

    @classmethod
    def of(cls, rates: Iterable[float | None]) -> "Cables":
        """Return cables of these rates, one each."""
        return cls._counted(Counter(rates))

    @classmethod
    def total(cls, parts: Iterable["Cables"]) -> "Cables":
        """Return all cables of several bundles."""
        found: Counter[float | None] = Counter()
        for part in parts:
            found.update(dict(part.counts))
        return cls._counted(found)

    @classmethod
    def _counted(cls, counts: Counter[float | None]) -> "Cables":
        order = sorted(counts.items(), key=lambda one: (one[0] is None, -(one[0] or 0.0)))
        return cls(tuple(order))

    @property
    def number(self) -> int:
        """The number of cables."""
        return sum(number for _, number in self.counts)

    @property
    def rate(self) -> float | None:
        """The sum of the rates in Gb/s; None if that of a cable is unknown."""
        total = 0.0
        for rate, number in self.counts:
            if rate is None:
                return None
            total += rate * number
        return total

    def parts(self) -> list[str]:
        """Return ``NUMBER x RATE`` for each rate, the number alone where it is unknown."""
        return [
            f"{number}" if rate is None else f"{number} x {decimals.text_of(rate)}"
            for rate, number in self.counts
        ]

    def __str__(self) -> str:
        """Return the cables in short: ``4 x 100``, ``2 x 200 + 2 x 100``, ``4``, ``0``."""
        return " + ".join(self.parts()) or "0"

    @property
    def text(self) -> str:
        """The cables with their unit: ``4 x 100 Gb/s``, ``4 of unknown rate``, ``none``."""
        known = Cables(tuple(one for one in self.counts if one[0] is not None))
        unknown = self.number - known.number
        texts = [f"{known} Gb/s"] if known.counts else []
        texts += [f"{unknown} of unknown rate"] if unknown else []
        return " + ".join(texts) or "none"


@dataclass(frozen=True, slots=True)
class Links:
    """The links of a switch."""

    down: float | None  # Gb/s of all to its hosts, or to the switches below; None where unknown
    uplinks: Cables  # to the switches above it

    @property
    def up(self) -> float | None:
        """The sum of the rates up in Gb/s; None if that of a cable is unknown."""
        return self.uplinks.rate

    @property
    def oversubscription(self) -> float | None:
        """Ratio of the rates down and up; None without links up, or where a rate is unknown."""
        return self.down / self.up if self.up and self.down is not None else None

    @classmethod
    def total(cls, parts: Iterable["Links"]) -> "Links":
        """Return the sum of several switches' links."""
        known = list(parts)
        downs = [part.down for part in known if part.down is not None]
        down = sum(downs) if len(downs) == len(known) else None
        return cls(down, Cables.total(part.uplinks for part in known))


def ratio_text(ratio: float) -> str:
    """Return an oversubscription in words, such as ``2:1``."""
    return f"{ratio:g}:1"
