"""Job traces in the Standard Workload Format, as they occur in archives and at sites.

A row has 18 numbers, -1 where something is not known; ``;`` begins a comment::

    ; MaxProcs: 100
    ;  number submit wait runtime procs cpu memory req.procs req.time req.memory status ...
    15 599850 192180 3477 4 -1 -1 4 53940 -1 1 12 12 -1 -1 -1 -1 -1

(D. Feitelson et al., "Parallel Workloads Archive", https://www.cs.huji.ac.il/labs/parallel/)
"""

import gzip
import heapq
import io
import math
import os
import zlib
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from operator import itemgetter

from hpc_sched import exceptions, files
from hpc_sched.sim.jobs.trace_statistics import HELD, Reason, TraceStatistics

FIELDS = 18
# Beyond it sums lose whole seconds, and no field means anything.
MAX_NUMBER = 1e15

# number, submit, wait, runtime, processors, memory, requested processors, time and memory,
# status, user, application, queue, partition; the format counts from 1.
_wanted = itemgetter(0, 1, 2, 3, 4, 6, 7, 8, 9, 10, 11, 13, 14, 15)


@dataclass(frozen=True, slots=True)
class TraceRow:
    """A job as a trace has it; None where the trace does not say."""

    line: int  # of the file
    number: int | None
    submit: float  # s
    wait: float | None  # s
    runtime: float  # s, at least 0
    processors: int  # allocated, else requested; at least 1
    requested_time: float | None  # s
    memory_kb: int | None  # used, else requested; a processor's, in some traces the job's
    status: int | None  # 1: completed
    user: int | None
    application: int | None  # the number of its executable
    queue: int | None
    partition: int | None


def read(
    path: files.Path,
    *,
    limit: int | None = None,
    partitions: Collection[int] = (),
    tally: TraceStatistics | None = None,
) -> Iterator[TraceRow]:
    """Return the usable rows of a trace by (submit time, line), while it is being read.

    Memory is bounded: ``HELD`` rows are put in order, and a row that would have had to come
    before one already handed on cannot be used.

    :param limit: at least 1: no more is read when so many rows can be used
    :param partitions: those whose rows are wanted; none for all
    :param tally: counts the rows, those that cannot be used by their reason
    :raises exceptions.TraceError: naming file and line of what cannot be read, or the reasons
        why no row can be used
    """
    tally = TraceStatistics() if tally is None else tally
    held: list[tuple[float, int, TraceRow]] = []
    past = -math.inf  # the submit time of the row handed on last
    for line, text in numbered_lines(path):
        start = text.lstrip()
        if start.startswith(";"):
            tally.comment(start)
            continue
        if not start and len(text) <= MAX_LINE:
            continue
        tally.rows += 1
        found = _record(line, text)
        if isinstance(found, Reason):
            tally.drop(found, line)
        elif partitions and found.partition not in partitions:
            tally.elsewhere += 1
        elif found.submit < past:
            tally.drop(Reason.ORDER, line)
        else:
            tally.usable += 1
            entry = (found.submit, line, found)
            if len(held) < HELD:
                heapq.heappush(held, entry)
            else:
                past, _, first = heapq.heappushpop(held, entry)
                yield first
            if limit is not None and tally.usable >= limit:
                break
    if not tally.usable:
        raise exceptions.TraceError(f"{os.fspath(path)}: {_why_none(tally, partitions)}")
    while held:
        yield heapq.heappop(held)[2]


def _record(line: int, text: str) -> TraceRow | Reason:
    """Return what a row says, or why it cannot be used."""
    if len(text) > MAX_LINE:
        return Reason.LENGTH
    fields = text.split()
    if len(fields) < FIELDS:
        return Reason.WIDTH
    # float() would take 1_6 and the digits of other scripts.
    if not text.isascii() or "_" in text:
        return Reason.NUMBER
    try:
        values = [float(each) for each in _wanted(fields)]
    except ValueError:
        return Reason.NUMBER
    # The sum finds a nan, which compares with nothing.
    if not sum(map(abs, values)) <= MAX_NUMBER:
        return Reason.NUMBER
    number, submit, wait, runtime, used, memory, processors, time, requested = values[:9]
    if submit < 0:
        return Reason.SUBMIT
    if runtime < 0:
        return Reason.RUNTIME
    if used <= 0:
        used = processors
    if used <= 0:
        return Reason.PROCESSORS
    return TraceRow(
        line,
        _whole(number),
        submit,
        _known(wait),
        runtime,
        math.ceil(used),
        _known(time),
        _whole(memory if memory >= 0 else requested),
        *map(_whole, values[9:]),
    )


def _known(value: float) -> float | None:
    return value if value >= 0 else None


def _whole(value: float) -> int | None:
    return math.ceil(value) if value >= 0 else None


def _why_none(tally: TraceStatistics, partitions: Collection[int]) -> str:
    if tally.elsewhere:
        wanted = ", ".join(map(str, sorted(partitions)))
        return f"expected jobs of partition {wanted}, found {tally.elsewhere} of other partitions"
    if not tally.rows:
        return f"expected rows of {FIELDS} numbers, found none"
    return f"expected rows of {FIELDS} numbers, found {'; '.join(tally.sentences())}"


# A row of 18 fields takes some 120 characters. What is longer is no row, and must not be held.
MAX_LINE = 10_000

_GZIP = b"\x1f\x8b"


def numbered_lines(path: files.Path) -> Iterator[tuple[int, str]]:
    """Return the lines of a file with their numbers, from 1; in constant memory.

    What is compressed with gzip is known by its content. Bytes that are not UTF-8 are replaced,
    and of a line that is longer than ``MAX_LINE`` come the first ``MAX_LINE + 1`` characters.

    :raises exceptions.TraceError: naming the file that cannot be read and the line reached
    """
    number = 0
    try:
        with open(path, "rb") as plain, _text(plain) as stream:
            while line := stream.readline(MAX_LINE + 1):
                number += 1
                yield number, line
                while len(line) > MAX_LINE and not line.endswith("\n"):
                    line = stream.readline(MAX_LINE + 1)
    except (OSError, EOFError, ValueError, zlib.error) as failure:
        why = getattr(failure, "strerror", None) or str(failure)
        where, when = (f":{number}", " after this line") if number else ("", "")
        raise exceptions.TraceError(
            f"{os.fspath(path)}{where}: cannot be read{when}: {why}"
        ) from failure


def _text(plain: io.BufferedReader) -> io.TextIOWrapper:
    is_compressed = plain.peek(len(_GZIP)).startswith(_GZIP)
    content = gzip.GzipFile(fileobj=plain) if is_compressed else plain
    return io.TextIOWrapper(content, encoding="utf-8-sig", errors="replace")
