"""Job traces in the Standard Workload Format, as they occur in archives and at sites.

A row has 18 numbers, -1 for an unknown one; ``;`` begins a comment::

    ; MaxProcs: 100
    ;  number submit wait runtime procs cpu memory req.procs req.time req.memory status ...
    15 599850 192180 3477 4 -1 -1 4 53940 -1 1 12 12 -1 -1 -1 -1 -1

(D. Feitelson et al., "Parallel Workloads Archive", https://www.cs.huji.ac.il/labs/parallel/)
"""

import enum
import gzip
import heapq
import io
import math
import os
import zlib
from collections import Counter
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from operator import itemgetter

from hpc_sched import exceptions, files
from hpc_sched.topology import plurals

FIELDS = 18
MAX_NUMBER = 1e15  # sums of larger numbers lose whole seconds, and no field means anything there
HELD = 100_000  # rows held back, to be put in order
# Characters. A row of 18 fields has some 120; a longer line is no row, and is not held in memory.
MAX_LINE = 10_000

_GZIP = b"\x1f\x8b"
# Fields that must be numbers: number, submit, wait, runtime, processors, memory, requested
# processors, time and memory, status, user, application, queue, partition; the format counts
# from 1.
_wanted = itemgetter(0, 1, 2, 3, 4, 6, 7, 8, 9, 10, 11, 13, 14, 15)


@dataclass(frozen=True, slots=True)
class TraceRow:
    """A job as a trace has it; None for what the trace does not state."""

    line: int  # of the file
    submit: float  # s
    runtime: float  # s, at least 0
    processors: int  # allocated, else requested; at least 1
    requested_time: float | None  # s
    memory_kb: int | None  # used, else requested; a processor's, in some traces the job's
    application: int | None  # the number of its executable
    partition: int | None
    number: int | None = None  # of the job; not unique in every trace
    user: int | None = None


class Reason(enum.StrEnum):
    """Why a row cannot be used."""

    WIDTH = "fewer than 18 fields"
    NUMBER = "a field that is not a number"
    SUBMIT = "no submit time"
    RUNTIME = "no runtime"
    PROCESSORS = "no processors"
    ORDER = f"submitted before a row that stands more than {HELD} rows earlier"
    LENGTH = "a line too long for a row"


@dataclass(slots=True)
class TraceStatistics:
    """Counts of rows, updated while a trace is read; final at its end.

    Every row is counted once: ``rows == usable + elsewhere + unusable.total()``.
    """

    rows: int = 0  # without comments and blank lines
    usable: int = 0
    elsewhere: int = 0  # usable, but of another partition than those wanted
    unusable: Counter[Reason] = field(default_factory=Counter)
    first: dict[Reason, int] = field(default_factory=dict)  # line of the first row

    def drop(self, reason: Reason, line: int) -> None:
        """Count a row that cannot be used."""
        self.unusable[reason] += 1
        self.first.setdefault(reason, line)

    def sentences(self) -> list[str]:
        """Return a text for each reason, most rows first."""
        return [
            f"{plurals.text(self.unusable[reason], 'row')} ({reason}), first on line {line}"
            for reason, line in sorted(
                self.first.items(), key=lambda item: (-self.unusable[item[0]], item[1])
            )
        ]


def read(
    path: files.Path,
    *,
    limit: int | None = None,
    partitions: Collection[int] = (),
    statistics: TraceStatistics | None = None,
) -> Iterator[TraceRow]:
    """Yield the usable rows of a trace by (submit time, line), while it is being read.

    Memory is bounded: ``HELD`` rows are put in order. A row that belongs before one already
    yielded cannot be used.

    :param limit: number of usable rows after which to stop, at least 1
    :raises exceptions.TraceError: naming file and line of what cannot be read, or the reasons
        why no row can be used
    """
    counts = TraceStatistics() if statistics is None else statistics
    held: list[tuple[float, int, TraceRow]] = []
    past = -math.inf  # submit time of the last row yielded
    for line, text in _numbered_lines(path):
        start = text.lstrip()
        if start.startswith(";") or (not start and len(text) <= MAX_LINE):
            continue
        counts.rows += 1
        found = _row(line, text)
        if isinstance(found, Reason):
            counts.drop(found, line)
        elif partitions and found.partition not in partitions:
            counts.elsewhere += 1
        elif found.submit < past:
            counts.drop(Reason.ORDER, line)
        else:
            counts.usable += 1
            heapq.heappush(held, (found.submit, line, found))
            if len(held) > HELD:
                past, _, first = heapq.heappop(held)
                yield first
            if limit is not None and counts.usable >= limit:
                break
    if not counts.usable:
        why = (
            f"expected jobs of partition {', '.join(map(str, sorted(partitions)))}, found "
            f"{counts.elsewhere} of other partitions"
            if counts.elsewhere
            else f"expected rows of {FIELDS} numbers, found "
            f"{'; '.join(counts.sentences()) or 'none'}"
        )
        raise exceptions.TraceError(f"{os.fspath(path)}: {why}")
    while held:
        yield heapq.heappop(held)[2]


def _row(line: int, text: str) -> TraceRow | Reason:
    """Return what a row states, or why it cannot be used."""
    if len(text) > MAX_LINE:
        return Reason.LENGTH
    fields = text.split()
    if len(fields) < FIELDS:
        return Reason.WIDTH
    # float() would accept 1_6 and the digits of other scripts.
    if not text.isascii() or "_" in text:
        return Reason.NUMBER
    try:
        values = [float(each) for each in _wanted(fields)]
    except ValueError:
        return Reason.NUMBER
    # The sum finds a nan, which compares with nothing.
    if not sum(map(abs, values)) <= MAX_NUMBER:
        return Reason.NUMBER
    number, submit, _, runtime, used, memory, processors, time, requested = values[:9]
    if submit < 0:
        return Reason.SUBMIT
    if runtime < 0:
        return Reason.RUNTIME
    allocated = used if used > 0 else processors
    if allocated <= 0:
        return Reason.PROCESSORS
    return TraceRow(
        line=line,
        submit=submit,
        runtime=runtime,
        processors=math.ceil(allocated),
        requested_time=time if time >= 0 else None,
        memory_kb=_whole(memory if memory >= 0 else requested),
        application=_whole(values[11]),
        partition=_whole(values[13]),
        number=_whole(number),
        user=_whole(values[10]),
    )


def _whole(value: float) -> int | None:
    return math.ceil(value) if value >= 0 else None


def _numbered_lines(path: files.Path) -> Iterator[tuple[int, str]]:
    """Yield the lines of a file, gzipped or not, with their numbers, from 1; in constant memory.

    A line longer than ``MAX_LINE`` is cut after ``MAX_LINE + 1`` characters.
    """
    number = 0
    try:
        with open(path, "rb") as plain:
            is_compressed = plain.peek(len(_GZIP)).startswith(_GZIP)
            content = gzip.GzipFile(fileobj=plain) if is_compressed else plain
            stream = io.TextIOWrapper(content, encoding="utf-8-sig", errors="replace")
            while line := stream.readline(MAX_LINE + 1):
                number += 1
                yield number, line
                while len(line) > MAX_LINE and not line.endswith("\n"):
                    line = stream.readline(MAX_LINE + 1)
    except (OSError, EOFError, ValueError, zlib.error) as failure:
        why = getattr(failure, "strerror", None) or failure
        where, when = (f":{number}", " after this line") if number else ("", "")
        raise exceptions.TraceError(
            f"{os.fspath(path)}{where}: cannot be read{when}: {why}"
        ) from failure
