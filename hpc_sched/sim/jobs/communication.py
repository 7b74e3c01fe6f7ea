"""What jobs communicate: patterns and shares of the runtime, drawn or stated by a file.

The file is CSV. The header names the columns, in any order; ``job`` is the number in the trace,
and ``application`` the name of an application, which in a trace is a number. Jobs that no row
names do not communicate::

    # what the applications of this cluster do
    application, pattern, communication
    WRF, halo2, 0.25
    LU, bt, 0.3
"""

import os
import random
from collections.abc import Mapping
from dataclasses import dataclass, field

from hpc_sched import decimals, exceptions, files, table_file
from hpc_sched.core.traffic.patterns import NONE, PATTERNS, sends
from hpc_sched.sim import named_values
from hpc_sched.sim.jobs.distributions import Distribution, Mix, mix_of, read

MAX_BYTES = 50_000_000
MIX_FORM = "PATTERN=SHARE,..."
_LEAST_SHARE = 1e-12  # below it a job is not slowed down, and (1 - share) / share overflows
_ALL_NONE = Mix(((NONE, 1.0),))
USUAL = Distribution("constant", (0.3,))
_JOB, _APPLICATION = "job", "application"
_HEADER = f"a header of pattern, communication, and {_JOB} or {_APPLICATION}"


@dataclass(frozen=True, slots=True)
class Communication:
    """A pattern, and the part of the job's runtime that it takes."""

    pattern: str  # a key of PATTERNS
    share: float  # 0 to 1, of the stated runtime, which is that of the job alone on its best hosts

    def is_of(self, ranks: int) -> bool:
        """Return whether this many ranks communicate, so that a network can slow them down."""
        return self.share >= _LEAST_SHARE and sends(self.pattern, ranks)


NO_COMMUNICATION = Communication(NONE, 0.0)


@dataclass(frozen=True, slots=True)
class Communications:
    """How jobs communicate: as drawn, or as a file states."""

    patterns: Mix = _ALL_NONE
    shares: Distribution = USUAL  # numbers above 1 count as 1
    stated: Mapping[str, Communication] = field(default_factory=dict)
    stated_by: str | None = None  # job or application; None: drawn

    @property
    def draws(self) -> bool:
        """True if the jobs of two seeds may differ."""
        drawn = not (self.patterns.is_constant and self.shares.is_constant)
        return self.stated_by is None and drawn

    def of(
        self, seed: int, number: int, trace_job: int | None, application: str | None
    ) -> Communication:
        """Return what a job communicates; drawn apart from all other values of the job."""
        if self.stated_by is not None:
            key = application if self.stated_by == _APPLICATION else str(trace_job)
            return self.stated.get(key or "", NO_COMMUNICATION)
        rng = random.Random(f"{seed} {number} network")
        return Communication(self.patterns.draw(rng), min(self.shares.draw(rng), 1.0))


def read_patterns(text: str, what: str) -> Mix:
    """Return the mix of patterns stated by a text; shares are divided by their sum.

    :raises exceptions.ConfigError: stating what was expected
    """
    return mix_of(text, what, tuple(PATTERNS), MIX_FORM)


def read_shares(text: str, what: str) -> Distribution:
    """Return the distribution of shares stated by a text; numbers above 1 will count as 1.

    :raises exceptions.ConfigError: stating what was expected
    """
    found = read(text, what, at_least=0)
    if found.kind != "lognormal" and found.mean > 1:
        raise named_values.error(what, "shares of the runtime, from 0 to 1", text)
    return found


def read_file(path: files.Path) -> Communications:
    """Return the communications that a file states.

    :raises exceptions.SimulationError: naming file, line and what was expected
    """
    error, name = exceptions.SimulationError, os.fspath(path)
    text = files.decode(files.read_bytes(path, error, MAX_BYTES), name, error)
    lines = list(table_file.csv_lines(text, name, error))
    line, header = lines[0] if lines else (1, ())
    keys = {_JOB, _APPLICATION} & set(header)
    if len(keys) != 1 or sorted(header) != sorted({"pattern", "communication", *keys}):
        raise error(f"{name}:{line}: expected {_HEADER}, found {', '.join(header)[:80]!r}")
    (key,) = keys
    stated: dict[str, Communication] = {}
    for line, cells in lines[1:]:
        if len(cells) != len(header):
            raise error(f"{name}:{line}: expected {len(header)} columns, found {len(cells)}")
        row = dict(zip(header, cells, strict=True))
        share = decimals.number_in(row["communication"])
        whose, what = row[key], "a name"
        if key == _JOB:
            # A trace may write 007, too.
            whose, what = _number(whose), "a job's number"
        for column, is_valid, expected in (
            (key, bool(whose) and whose not in stated, f"{what} that no other row has"),
            ("pattern", row["pattern"] in PATTERNS, f"one of {', '.join(PATTERNS)}"),
            ("communication", share is not None and 0 <= share <= 1, "a number from 0 to 1"),
        ):
            if not is_valid:
                cell = row[column][:80]
                raise error(f"{name}:{line}: {column}: expected {expected}, found {cell!r}")
        stated[whose] = Communication(row["pattern"], share or 0.0)
    return Communications(stated=stated, stated_by=key)


def _number(text: str) -> str:
    """Return a job's number without leading zeros; empty for a text that is none."""
    digits = text.isascii() and text.isdecimal()
    return (text.lstrip("0") or "0") if digits else ""
