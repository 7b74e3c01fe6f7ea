"""Last-level cache misses from the output of ``perf stat -x,``.

A line is, after perf-stat(1), "CSV FORMAT"::

    [time stamp of -I,][CPU, core or socket of -A and --per-*,[CPUs in it,]]
    value,unit,event[,cgroup][,variance of -r],run time of the counter,percentage[,metric...]

perf does not quote: a line is read around the name of the event, whatever comes before it.
"""

import re
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import pairwise

from hpc_sched import decimals, exceptions

LOADS, STORES = "LLC-load-misses", "LLC-store-misses"
COMMAND = f"perf stat -e {LOADS},{STORES},duration_time -x, -o FILE"
# perf estimates what it did not count; below this share of the time that is a warning.
ENOUGH_PERCENT = 50.0

# With modifiers (LLC-load-misses:u) and the PMU of hybrid processors (cpu_core/LLC-load-misses/).
_EVENT = re.compile(rf"(?:(\w+)/)?({LOADS}|{STORES}|duration_time)(?::(\w+))?(?:/(\w*))?", re.ASCII)
_TIME_STAMP = re.compile(r"\d+\.\d+", re.ASCII)
_NOT_COUNTED = "perf had no counter for it, or nothing ran while it counted"
_NOT_SUPPORTED = (
    "this processor, or the hypervisor of this VM, does not count it; leave an event of stores "
    "out of -e, count loads elsewhere"
)
_LINE = "value,unit,event,... as perf stat -x, writes them"


@dataclass(frozen=True, slots=True)
class PerfOutput:
    """Counts, summed over CPUs, sockets and intervals."""

    misses: float  # loads plus stores
    seconds: float | None  # wall time, if the output has it
    run_seconds: float | None  # the counters' own time, used where the wall time is missing
    warnings: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _Count:
    line: int
    event: str
    pmu: str  # performance monitoring unit, on processors with cores of two kinds
    modifier: str  # such as u for user space alone
    value: float
    stamp: float | None  # seconds since perf began, at the end of the interval
    run_seconds: float | None = None  # enabled time of the counter, over all threads and CPUs
    percent: float | None = None  # share of the time in which the event was counted


def read(text: str, name: str) -> PerfOutput:
    """Return the counts in an output of perf.

    The seconds are those of the event ``duration_time``, else the last time stamp of ``-I``.
    The run times of counters equal the wall time only for a process of one thread: perf adds
    them up over all threads or CPUs.

    :param name: of the output, in errors
    :raises exceptions.InterferenceError: naming the line and what was expected
    """
    counts = list(_counts(text, name))
    # --summary adds the sums of all intervals, without a time stamp.
    counts = [count for count in counts if count.stamp is not None] or counts
    loads, stores = ([count for count in counts if count.event == e] for e in (LOADS, STORES))
    if not loads:
        raise exceptions.InterferenceError(
            f"{name}: expected a line of {LOADS}, found none; record it by: {COMMAND}"
        )
    for kind in (loads, stores):
        _check_modes(kind, name)
    # Not every processor has the event.
    missing = f"{name}: no line of {STORES}: the score is that of loads alone"
    estimated = [text for kind in (loads, stores) for text in _multiplexed(kind, name)]
    return PerfOutput(
        misses=sum(count.value for count in [*loads, *stores]),
        seconds=_seconds(counts),
        run_seconds=max((c.run_seconds for c in loads if c.run_seconds is not None), default=None),
        warnings=(*(() if stores else (missing,)), *estimated),
    )


def _counts(text: str, name: str) -> Iterator[_Count]:
    for number, line in enumerate(text.split("\n"), start=1):
        content = line.strip()
        if not content or content.startswith("#"):
            continue
        cells = [cell.strip() for cell in content.split(",")]
        events = enumerate(map(_EVENT.fullmatch, cells))
        found = next(((i, event) for i, event in events if event), None)
        # Lines of other events are skipped, lines that are no CSV are errors.
        if len(cells) < 3 or (found is None and (LOADS in content or STORES in content)):
            raise _error(name, number, f"expected {_LINE}, found {content[:60]!r}")
        if found is not None:
            yield _count(cells, *found, name, number)


def _count(cells: list[str], place: int, named: re.Match[str], name: str, line: int) -> _Count:
    pmu, event, *modifiers = named.groups("")
    value = cells[place - 2] if place >= 2 else ""
    if value.startswith("<not "):
        why = _NOT_SUPPORTED if value == "<not supported>" else _NOT_COUNTED
        raise _error(name, line, f"expected a count of {cells[place]}, found {value}: {why}")
    number = decimals.number_in(value)
    if number is None or number < 0:
        raise _error(name, line, f"expected a count of {cells[place]}, found {value!r}")
    if event == "duration_time" and cells[place - 1] not in ("", "ns"):
        raise _error(name, line, f"expected duration_time in ns, found {cells[place - 1]!r}")
    stamp = float(cells[0]) if place > 2 and _TIME_STAMP.fullmatch(cells[0]) else None
    found = _Count(line, event, pmu, "".join(modifiers), number, stamp)
    # The first whole number behind the event is the counter's run time, in ns, then a percentage.
    for run_time, share in pairwise(cells[place + 1 :]):
        if run_time.isdecimal() and len(run_time) < 20:
            percent, seconds = decimals.number_in(share), int(run_time) / 1e9
            enabled = seconds * 100 / percent if percent else seconds
            return replace(found, run_seconds=enabled, percent=percent)
    return found


def _check_modes(counts: list[_Count], name: str) -> None:
    """Check that no miss was counted twice, as with :u and without modifier."""
    before: defaultdict[str, set[str]] = defaultdict(set)
    for count in counts:
        if any(_overlap(count.modifier, other) for other in before[count.pmu]):
            raise exceptions.InterferenceError(
                f"{name}:{count.line}: expected each mode of {count.event} once, found some "
                "counted again: leave the lines with modifiers out, or those without"
            )
        before[count.pmu].add(count.modifier)


def _overlap(one: str, other: str) -> bool:
    """True if two different modifiers count the same misses.

    User space, kernel and hypervisor are disjoint, and so are guests and the host. A modifier
    that names none of them counts all.
    """
    return one != other and all(
        (set(of) & set(one) or set(of)) & (set(of) & set(other) or set(of)) for of in ("ukh", "GH")
    )


def _multiplexed(counts: list[_Count], name: str) -> list[str]:
    least = min(counts, key=lambda c: 100.0 if c.percent is None else c.percent, default=None)
    if least is None or least.percent is None or least.percent >= ENOUGH_PERCENT:
        return []
    return [
        f"{name}:{least.line}: {least.event} was counted {decimals.text_of(least.percent)} % of "
        "the time, the rest is perf's estimate: count fewer events at a time"
    ]


def _seconds(counts: list[_Count]) -> float | None:
    # One wall time an interval, although perf may write it for every CPU or socket.
    durations: defaultdict[float | None, float] = defaultdict(float)
    for count in counts:
        if count.event == "duration_time":
            durations[count.stamp] = max(durations[count.stamp], count.value)
    if durations:
        return sum(durations.values()) / 1e9
    return max((count.stamp for count in counts if count.stamp is not None), default=None)


def _error(name: str, line: int, text: str) -> exceptions.InterferenceError:
    return exceptions.InterferenceError(f"{name}:{line}: {text}")
