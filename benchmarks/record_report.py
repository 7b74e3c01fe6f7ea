"""The table of benchmarks/record.py."""

import statistics
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from choice_report import median_interval

FORM = "{:<40} {:>9} {:>9} {:>7} {:>13} {:>9} {:>7}"
HEAD = ("row", "this", "other", "ratio", "95 %", "per s", "MB")


@dataclass
class Compared:
    """A row on both sides: by pair what each has measured."""

    name: str
    unit: str
    this: list[dict[str, float]] = field(default_factory=list)
    other: list[dict[str, float]] = field(default_factory=list)

    @property
    def ratios(self) -> list[float]:
        """What this side took of the other's, by pair."""
        pairs = zip(self.this, self.other, strict=True)
        return [this["took"] / other["took"] for this, other in pairs]

    def cells(self) -> list[str]:
        """Return the columns of the table."""
        interval = median_interval(self.ratios)
        last = self.this[-1]
        return [
            self.name,
            *(_text(_median(side, "took"), self.unit) for side in (self.this, self.other)),
            f"{statistics.median(self.ratios):.3f}",
            "" if interval is None else "{:.3f}-{:.3f}".format(*interval),
            f"{last['number'] / _median(self.this, 'took'):,.0f}" if "number" in last else "",
            f"{last['megabytes']:.0f}" if "megabytes" in last else "",
        ]

    def as_dict(self) -> dict[str, Any]:
        """Return what is written as JSON."""
        return asdict(self) | {
            "ratio": statistics.median(self.ratios),
            "interval": median_interval(self.ratios),
        }


def table(rows: Sequence[Compared], *, with_head: bool = True) -> str:
    """Return rows as text, a line each."""
    lines = [FORM.format(*HEAD).rstrip()] if with_head else []
    return "\n".join([*lines, *(FORM.format(*row.cells()).rstrip() for row in rows)])


def _median(side: Sequence[dict[str, float]], key: str) -> float:
    return statistics.median(each[key] for each in side)


def _text(took: float, unit: str) -> str:
    scaled = took * 1000 if unit == "ms" else took
    return f"{scaled:.2f} {unit}".rstrip()
