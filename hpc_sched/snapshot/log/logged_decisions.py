"""The records of a decision log, read from its end. Each line is a JSON object."""

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any, Self, get_type_hints

import msgspec

from hpc_sched import exceptions, files
from hpc_sched.core.logged.decision_entry import DecisionEntry
from hpc_sched.core.logged.decision_summary import LANDED, SHADOW, LoggedScheduler
from hpc_sched.json_values import ValueCounter
from hpc_sched.snapshot.log import log_lines

# As JSON has it: fields of newer releases pass through to a snapshot and to explain --json.
Record = Mapping[str, Any]
Wanted = Callable[[DecisionEntry], bool]

_TYPES = get_type_hints(DecisionEntry)
_SCHEDULER_TYPES = get_type_hints(LoggedScheduler)
_REQUIRED = {"time": "", "request_id": None, "instance": None, "group": None, "decision": ""}
# Of all records that are found: a decision among 10,000 hosts has some 3,000.
MAX_VALUES = 5_000_000


@dataclass(frozen=True, slots=True)
class LogRecords:
    """Records of a log."""

    records: tuple[Record, ...]  # oldest first
    # Whether older ones are left out, with which they have more than MAX_VALUES values.
    is_cut: bool = False

    @classmethod
    def of(cls, newest_first: Iterable[Record]) -> Self:
        """Return the records, up to the limit."""
        found: list[Record] = []
        is_cut = False
        try:
            found.extend(newest_first)
        except _LimitError:
            is_cut = True
        return cls(tuple(reversed(found)), is_cut)

    def notes(self, path: files.Path) -> Iterator[str]:
        """Yield a sentence about the records that are left out, if there are any."""
        if self.is_cut:
            oldest = f"before {entry_of(self.records[0]).time} " if self.records else ""
            yield (
                f"{os.fspath(path)}: records {oldest}are left out: with them there are more than "
                f"{MAX_VALUES} JSON values"
            )


class _LimitError(exceptions.SnapshotError):
    """The records have more than ``MAX_VALUES`` values."""


def newest(path: files.Path, count: int) -> LogRecords:
    """Return the newest records of a log; raises as :func:`found_in` does."""
    return LogRecords.of(islice(_records(path, (b"",), count), count))


def recent(path: files.Path, most: int) -> Iterator[Record]:
    """Yield the records in the last bytes of a log, newest first; raises as :func:`found_in` does.

    Rotated files are read too as far as they are not compressed.

    :param most: number of bytes
    """
    for line in log_lines.newest_first(os.fspath(path), (b"",), None, with_compressed=False):
        most -= len(line) + 1
        if most < 0:
            return
        yield from parsed(line)


def found_in(
    path: files.Path, needles: Sequence[str], wanted: Sequence[Wanted], *, last: bool = False
) -> LogRecords:
    """Return the records that :func:`first_wanted` chooses of the newest that have a needle.

    Only lines that contain a needle are parsed. Linear in the log, which is read once; with
    ``last`` reading ends at the newest decision for which the first condition holds.

    :param needles: texts, one of which the line of every wanted record contains
    :raises exceptions.SnapshotError: if the file cannot be read
    """
    # An argument of the command line need not be valid text; no record contains such bytes.
    sought = [needle.encode(errors="surrogateescape") for needle in needles]

    def candidates() -> Iterator[Record]:
        for record in _records(path, sought):
            entry = entry_of(record)
            if any(is_wanted(entry) for is_wanted in wanted):
                yield record
                if last and entry.decision != LANDED and wanted[0](entry):
                    return

    found = LogRecords.of(candidates())
    return replace(found, records=first_wanted(found.records, wanted))


def first_wanted(records: Iterable[Record], wanted: Sequence[Wanted]) -> tuple[Record, ...]:
    """Return the records for which a condition holds: the first that holds for any of them."""
    entries = [(record, entry_of(record)) for record in records]
    found = (tuple(one for one, entry in entries if is_wanted(entry)) for is_wanted in wanted)
    return next(filter(None, found), ())


def with_landings(
    records: Sequence[Record], *, last: bool = False
) -> list[tuple[Record, Record | None]]:
    """Return each decision with the record of where its VMs landed, or None; in their order.

    :param records: oldest first; a landing without its decision is an item of its own
    :param last: only the newest decision
    """
    found: list[tuple[Record, Record | None]] = []
    decided: dict[object, list[int]] = {}  # request to the indices of its decisions
    for record in records:
        entry = entry_of(record)
        same = decided.setdefault((entry.request_id, entry.instance), [])
        if entry.decision == LANDED and same:
            at = same.pop(0)
            found[at] = (found[at][0], record)
        else:
            if entry.decision != LANDED:
                if entry.mode != SHADOW:
                    # Not each decision has a landing.
                    same.clear()
                same.append(len(found))
            found.append((record, None))
    if not last:
        return found
    return [pair for pair in found if entry_of(pair[0]).decision != LANDED][-1:] or found[-1:]


def entry_of(record: Record) -> DecisionEntry:
    """Return a record's fields; those that are absent or of another type have their default.

    Never raises: the record may be of an older or newer release, or be damaged.
    """
    found = _REQUIRED | _fields(record, _TYPES)
    scheduler = record.get("scheduler")
    if isinstance(scheduler, Mapping):
        found["scheduler"] = LoggedScheduler(**_fields(scheduler, _SCHEDULER_TYPES))
    return DecisionEntry(**found)


def _fields(values: Mapping[str, Any], types: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values that have the type of their field."""
    found: dict[str, Any] = {}
    for name in types.keys() & values.keys():
        # UnicodeError for a lone surrogate; SystemError, before msgspec 0.22, for an integer that
        # is too large for a float.
        with suppress(msgspec.ValidationError, UnicodeError, SystemError):
            found[name] = msgspec.convert(values[name], types[name])
    return found


def _records(
    path: files.Path, needles: Sequence[bytes], most: int | None = None
) -> Iterator[Record]:
    """Yield records, newest first, of ``most`` lines of a compressed file; skip other lines.

    :raises _LimitError: where the records have more than ``MAX_VALUES`` values in all
    """
    count = ValueCounter(os.fspath(path), MAX_VALUES, _LimitError)
    for line in log_lines.newest_first(os.fspath(path), needles, most):
        count.add(line)
        count.end()
        yield from parsed(line)


def parsed(line: bytes) -> Iterator[Record]:
    """Yield the record of a line, or nothing: it may be the first half of one being written."""
    with suppress(msgspec.DecodeError, RecursionError, UnicodeDecodeError):
        yield msgspec.json.decode(line, type=dict[str, Any])
