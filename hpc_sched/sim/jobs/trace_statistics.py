"""What reading a trace has found: its header, and how many of its rows can be used."""

import enum
import re
from dataclasses import dataclass, field

# Rows that wait until no row before them in time can follow.
HELD = 100_000
# Headers have some 20 fields; a file of comments must not be held.
_MAX_FIELDS = 100

_FIELD = re.compile(r";+\s*([A-Za-z][A-Za-z0-9_]{0,40}):(?:\s+(.*))?")


class Reason(enum.StrEnum):
    """Why a row cannot be used."""

    WIDTH = "fewer than 18 fields"
    NUMBER = "a field that is not a number"
    SUBMIT = "no submit time"
    RUNTIME = "no runtime"
    PROCESSORS = "no processors"
    ORDER = f"submitted before a row that stands more than {HELD} rows earlier"
    LENGTH = "a line too long for a row"


@dataclass(frozen=True, slots=True)
class UnusableRows:
    """How many rows one reason holds for."""

    rows: int
    first: int  # the line of the first one


@dataclass(slots=True)
class TraceStatistics:
    """Counts rows while a trace is read; final when it has been read to its end.

    Every row is counted once: ``rows == usable + elsewhere + unusable_rows``.
    """

    header: dict[str, str] = field(default_factory=dict)  # of fields that repeat, the first
    rows: int = 0  # without comments and blank lines
    usable: int = 0
    elsewhere: int = 0  # usable, but of a partition that is not wanted
    unusable: dict[Reason, UnusableRows] = field(default_factory=dict)

    @property
    def unusable_rows(self) -> int:
        """How many rows cannot be used, for any reason."""
        return sum(each.rows for each in self.unusable.values())

    def drop(self, reason: Reason, line: int) -> None:
        """Count a row that cannot be used."""
        before = self.unusable.get(reason, UnusableRows(0, line))
        self.unusable[reason] = UnusableRows(before.rows + 1, before.first)

    def comment(self, text: str) -> None:
        """Keep what a comment says, where it is a field of the header: ``; MaxProcs: 100``."""
        found = _FIELD.match(text)
        if found is not None and len(self.header) < _MAX_FIELDS:
            self.header.setdefault(found[1], (found[2] or "").strip())

    def sentences(self) -> list[str]:
        """Return what cannot be used, a text for each reason, most rows first.

        ``3 rows (no runtime), first on line 17``
        """
        ordered = sorted(self.unusable.items(), key=lambda item: (-item[1].rows, item[1].first))
        return [
            f"{found.rows} row{'s' if found.rows > 1 else ''} ({reason}), "
            f"first on line {found.first}"
            for reason, found in ordered
        ]
