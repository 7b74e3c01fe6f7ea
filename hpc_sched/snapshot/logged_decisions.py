"""The records of a decision log, read from its end, and their text for operators.

Each line is a JSON object. The file may be large, rotated to FILE.1, FILE.2.gz or FILE-20260131,
and still be written to.
"""

import gzip
import os
import re
import zlib
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from itertools import islice
from typing import Any, BinaryIO, get_type_hints

import msgspec

from hpc_sched import exceptions, files, terminal_text
from hpc_sched.core.decision_entry import (
    LANDED,
    DecisionEntry,
    LeafCandidates,
    LoggedClaim,
    LoggedLanding,
    LoggedPlan,
    LoggedShunned,
)
from hpc_sched.snapshot.json_values import ValueCounter
from hpc_sched.topology import hostlist, plurals

# As JSON has it: fields of newer releases pass through to a snapshot and to explain --json.
Record = Mapping[str, Any]

_TYPES = get_type_hints(DecisionEntry)
_REQUIRED = {"time": "", "request_id": None, "instance": None, "group": None, "decision": ""}
# Leaves listed one by one; the rest is summed up.
MAX_LEAVES = 24
_BLOCK = 1 << 16
# Longer lines are no records.
MAX_LINE = 1 << 22
# Of all records that are found: a decision among 10,000 hosts has some 2,000 values and 25 kB.
MAX_BYTES = 500_000_000
MAX_VALUES = 5_000_000
_error = exceptions.SnapshotError


def newest(path: files.Path, count: int) -> tuple[Record, ...]:
    """Return the newest records of a log, oldest first; raises as :func:`found_in` does."""
    return tuple(islice(_records(path, b"", count), count))[::-1]


def recent(path: files.Path, most: int) -> Iterator[Record]:
    """Yield the records in the last bytes of a log, newest first; raises as :func:`found_in` does.

    Rotated files are read too as far as they are not compressed.

    :param most: number of bytes
    """
    for line in _log_lines(os.fspath(path), b"", None, with_compressed=False):
        most -= len(line) + 1
        if most < 0:
            return
        yield from parsed(line)


def found_in(
    path: files.Path, needle: str, is_wanted: Callable[[DecisionEntry], bool], *, last: bool = False
) -> list[Record]:
    """Return the records whose entries are wanted, oldest first.

    Only lines that contain the needle are parsed. Linear in the log; with ``last`` reading ends
    at the newest decision found.

    :param needle: text that the line of every wanted record contains
    :raises exceptions.SnapshotError: if the file cannot be read
    """
    # An argument of the command line need not be valid text; no record contains such bytes.
    sought = needle.encode(errors="surrogateescape")
    found = []
    for record in _records(path, sought):
        entry = entry_of(record)
        if is_wanted(entry):
            found.append(record)
            if last and entry.decision != LANDED:
                break
    return found[::-1]


def with_landings(
    records: Sequence[Record], *, last: bool = False
) -> list[tuple[Record, Record | None]]:
    """Return each decision with the record of where its VMs landed, or None; in their order.

    :param records: oldest first; a landing without its decision is an item of its own
    :param last: only the newest decision
    """
    found: list[tuple[Record, Record | None]] = []
    decided: dict[object, int] = {}  # request to the index of its decision
    for record in records:
        entry = entry_of(record)
        key = (entry.request_id, entry.instance)
        if entry.decision == LANDED and key in decided:
            at = decided.pop(key)
            found[at] = (found[at][0], record)
            continue
        if entry.decision != LANDED:
            decided[key] = len(found)
        found.append((record, None))
    if not last:
        return found
    return [pair for pair in found if entry_of(pair[0]).decision != LANDED][-1:] or found[-1:]


def entry_of(record: Record) -> DecisionEntry:
    """Return a record's fields; those that are absent or of another type have their default.

    Never raises: the record may be of an older or newer release, or be damaged.
    """
    found: dict[str, Any] = dict(_REQUIRED)
    for name in _TYPES.keys() & record.keys():
        # UnicodeError for a lone surrogate; SystemError, before msgspec 0.22, for an integer that
        # is too large for a float.
        with suppress(msgspec.ValidationError, UnicodeError, SystemError):
            found[name] = msgspec.convert(record[name], _TYPES[name])
    return DecisionEntry(**found)


def text_of(record: Record, landing: Record | None = None) -> str:
    """Return a record as lines of text; fields that it lacks are left out.

    :param landing: the record of where its VMs landed
    """
    entry = entry_of(record)
    if landing is not None:
        entry = replace(entry, landed=entry_of(landing).landed)
    group = f"server group {entry.group}" if entry.group else "a request without a server group"
    lines = [f"{entry.time or '?'}  {entry.decision or '?'}: {group}"]
    lines += [f"  {title:<12}{line}" for title, line in _lines(entry)]
    return "\n".join(terminal_text.text_of(line.rstrip()) for line in lines)


def _records(path: files.Path, needle: bytes, most: int | None = None) -> Iterator[Record]:
    """Yield records, newest first, of ``most`` lines of a compressed file; skip other lines.

    SnapshotError where the records have more than ``MAX_VALUES`` values in all.
    """
    count = ValueCounter(os.fspath(path), MAX_VALUES)
    for line in _log_lines(os.fspath(path), needle, most):
        count.add(line)
        count.end()
        yield from parsed(line)


def parsed(line: bytes) -> Iterator[Record]:
    """Yield the record of a line, or nothing: it may be the first half of one being written."""
    with suppress(msgspec.DecodeError, RecursionError, UnicodeDecodeError):
        yield msgspec.json.decode(line, type=dict[str, Any])


def _log_lines(
    path: str, needle: bytes, most: int | None, *, with_compressed: bool = True
) -> Iterator[bytes]:
    try:
        rotated = _rotated(path)
        if not with_compressed:
            rotated = [name for name in rotated if not name.endswith(".gz")]
        # Between rotation and the next decision only older files exist.
        for name in [path, *rotated] if os.path.exists(path) or not rotated else rotated:
            if name.endswith(".gz"):
                with gzip.open(name) as packed:
                    lines = iter(partial(packed.readline, MAX_LINE), b"")
                    kept = _last((line for line in lines if needle in line), most)
                yield from reversed(kept)
            else:
                with open(name, "rb") as stream:
                    yield from (line for line in _backward(stream) if needle in line)
    except (OSError, EOFError, ValueError, zlib.error) as failure:
        why = getattr(failure, "strerror", None) or failure
        raise _error(f"{path}: cannot be read: {why}") from failure


def _last(lines: Iterable[bytes], most: int | None) -> deque[bytes]:
    """Return the last lines, or all; ValueError where they have more than ``MAX_BYTES`` bytes."""
    kept: deque[bytes] = deque()
    size = 0
    for line in lines:
        kept.append(line)
        size += len(line)
        if most is not None and len(kept) > most:
            size -= len(kept.popleft())
        if size > MAX_BYTES:
            raise ValueError(f"expected at most {MAX_BYTES} bytes of records, found more")
    return kept


def _rotated(path: str) -> list[str]:
    folder, name = os.path.split(path)
    older = re.compile(re.escape(name) + r"(?:\.([0-9]{1,9})|-([0-9]{8,14}))(?:\.gz)?")
    found = []
    for entry in os.listdir(folder or "."):
        if match := older.fullmatch(entry):
            number, date = match.groups()
            found.append((int(number) if number else -int(date), entry))
    return [os.path.join(folder, entry) for _, entry in sorted(found)]


def _backward(stream: BinaryIO) -> Iterator[bytes]:
    """Yield the lines of a file, last first, without line breaks and empty lines."""
    stream.seek(0, os.SEEK_END)
    at = stream.tell()
    rest: list[bytes] = []  # pieces of the line that begins in an earlier block, last first
    while at > 0:
        size = min(_BLOCK, at)
        at -= size
        stream.seek(at)
        first, *lines = stream.read(size).split(b"\n")
        if lines:
            last = b"".join([lines.pop(), *reversed(rest)])
            yield from (line for line in (last, *reversed(lines)) if line)
            rest = []
        rest.append(first)
        # Drop the pieces of a line that is longer than any record.
        if len(rest) * _BLOCK > MAX_LINE:
            rest = []
    line = b"".join(reversed(rest))
    if line:
        yield line


def _lines(entry: DecisionEntry) -> Iterator[tuple[str, str]]:
    """Yield title and text of each line; a line without a title continues the one above."""
    if entry.request_id:
        yield "request", entry.request_id
    if entry.instance:
        yield "first VM", entry.instance
    requested = [
        *([f"class {entry.app_class}"] if entry.app_class else []),
        *([f"policy {entry.policy}"] if entry.policy else []),
        *(f"{key}={value}" for key, value in (entry.wishes or {}).items() if value is not None),
    ]
    if requested:
        yield "asked", ", ".join(requested)
    if entry.left is not None:
        more = (entry.awaiting or 0) - entry.left
        others = f", {more} more of the group await one" if more > 0 else ""
        yield "VMs", f"{entry.left} to place{others}"
    if entry.members:
        yield "members", _counts(entry.members)
    if entry.candidates:
        yield from _candidates(entry.candidates)
    for i, (why, count) in enumerate(sorted((entry.removed or {}).items())):
        yield "" if i else "left out", f"{count} hosts: {why}"
    if entry.shunned:
        yield from _shunned(entry.shunned)
        if entry.plan is not None:
            uses = "has to use some of them" if entry.uses_shunned else "avoids them"
            yield "", f"the plan {uses}"
    if entry.plan is not None:
        yield from _plan(entry.plan, is_proven=entry.proven)
    if entry.claim is not None:
        yield "claimed", _claimed(entry.claim)
    rejection = entry.rejection
    reason = entry.reason or (rejection.reason if rejection else "")
    if reason:
        yield "reason", reason
    # No VM fits with members that themselves break a constraint.
    title = "would fit" if rejection and rejection.fits else "new group"
    for i, gang in enumerate(rejection.largest if rejection else ()):
        yield "" if i else title, f"{gang.vms} under one {gang.level} ({gang.switch})"
    if entry.seconds is not None:
        yield "took", f"{1000 * entry.seconds:.1f} ms"
    if entry.landed is not None:
        yield from _landed(entry.landed)
    if entry.scheduler is not None:
        yield "scheduler", entry.scheduler.text()


def _candidates(leaves: Mapping[str, LeafCandidates]) -> Iterator[tuple[str, str]]:
    hosts = plurals.text(sum(leaf.hosts for leaf in leaves.values()), "host")
    room = sum(leaf.room for leaf in leaves.values())
    under = plurals.text(len(leaves), "leaf switch")
    yield "candidates", f"{hosts} with room for {room} in {under}"
    for name, leaf in list(leaves.items())[:MAX_LEAVES]:
        yield "", f"{name}: {plurals.text(leaf.hosts, 'host')}, room for {leaf.room}"
    if len(leaves) > MAX_LEAVES:
        yield "", f"and {len(leaves) - MAX_LEAVES} more leaves"


def _plan(plan: LoggedPlan, *, is_proven: bool) -> Iterator[tuple[str, str]]:
    yield "plan", _counts(plan.leaves)
    for i, line in enumerate(hostlist.fold_counts(plan.hosts)):
        yield "" if i else "hosts", line
    cost, least = plan.hop_bytes, plan.least
    if cost is not None:
        line = f"Hop-Byte {cost:.0f}"
        if least is not None:
            line += f", least possible without wishes {least:.0f}"
            if cost > least:
                line += f" ({cost - least:.0f} more)"
        if not is_proven:
            line += "; not proven best"
        yield "cost", line


def _claimed(claim: LoggedClaim) -> str:
    number = plurals.text(claim.transactions, "transaction")
    return f"{claim.vms} at once, {number}" if claim.vms else f"not at once: {number} failed"


def _shunned(reasons: Mapping[str, LoggedShunned]) -> Iterator[tuple[str, str]]:
    for i, (why, found) in enumerate(sorted(reasons.items())):
        names = hostlist.fold(found.hosts)
        more = found.count - len(found.hosts)
        others = f" and {more} more" if more > 0 else ""
        yield "" if i else "shunned", f"{why}: {plurals.text(found.count, 'host')}: {names}{others}"


def _landed(landed: LoggedLanding) -> Iterator[tuple[str, str]]:
    if landed.released:
        number = sum(landed.hosts.values())
        yield "landed", f"nowhere: the request failed, Nova released its claims: {number}"
        return
    text, planned = _counts(landed.leaves), landed.planned
    if landed.as_planned:
        text += ", as planned"
    elif planned == landed.leaves:
        text += ", on other hosts than planned"
    elif planned is not None:
        text += f"; planned {_counts(planned)}"
    yield "landed", text
    if not landed.as_planned:
        for line in hostlist.fold_counts(landed.hosts):
            yield "", line
        if landed.hop_bytes is not None:
            yield "", f"Hop-Byte {landed.hop_bytes:.0f}"


def _counts(leaves: Mapping[str, int]) -> str:
    shown = [f"{name} ({count})" for name, count in list(leaves.items())[:MAX_LEAVES]]
    more = f" and {len(leaves) - len(shown)} more" if len(leaves) > len(shown) else ""
    return f"{sum(leaves.values())} in {', '.join(shown) or 'no leaf'}{more}"
