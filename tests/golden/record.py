"""Recorded cases: files of JSON lines, digests, and what differs between two of them."""

import gzip
import hashlib
import io
import json
from collections.abc import Iterable, Iterator, Mapping
from itertools import zip_longest
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent
Case = dict[str, Any]


def digest(*found: Any, length: int = 16) -> str:
    """Return the first digits of the SHA-256 of what is given, as JSON."""
    text = json.dumps(found, sort_keys=True, allow_nan=True)
    return hashlib.sha256(text.encode()).hexdigest()[:length]


def path_of(part: str) -> Path:
    """Return the file that holds the record of a part."""
    return FOLDER / f"{part}.jsonl.gz"


def write(part: str, cases: Iterable[Case]) -> None:
    """Write a part's record; the same cases are the same file."""
    lines = "".join(json.dumps(case, separators=(",", ":")) + "\n" for case in cases)
    target = io.BytesIO()
    # Neither the time nor a name in the header.
    with gzip.GzipFile(filename="", fileobj=target, mode="wb", compresslevel=9, mtime=0) as file:
        file.write(lines.encode())
    path_of(part).write_bytes(target.getvalue())


def read(part: str) -> list[Case]:
    """Return the recorded cases of a part, in the order of their numbers."""
    text = gzip.decompress(path_of(part).read_bytes()).decode()
    return [json.loads(line) for line in text.splitlines()]


def plain(case: Mapping[str, Any]) -> Case:
    """Return a case as it comes back from its file: tuples are lists."""
    found: Case = json.loads(json.dumps(case))
    return found


def differences(recorded: Any, now: Any, where: str = "") -> Iterator[str]:
    """Yield where two cases differ, with both values."""
    if isinstance(recorded, dict) and isinstance(now, dict):
        for key in sorted(recorded.keys() | now.keys()):
            yield from differences(recorded.get(key), now.get(key), f"{where}.{key}".strip("."))
    elif isinstance(recorded, list) and isinstance(now, list):
        for i, (one, other) in enumerate(zip_longest(recorded, now)):
            yield from differences(one, other, f"{where}[{i}]")
    elif recorded != now:
        yield f"  {where}\n    recorded: {recorded!r}\n    now:      {now!r}"


def report(part: str, recorded: Case, now: Case, most: int = 12) -> str | None:
    """Return what is different about a case, with its number and seed; None where nothing is."""
    found = list(differences(recorded, plain(now)))
    if not found:
        return None
    more = [f"  and {len(found) - most} more"] if len(found) > most else []
    head = f"{part}: case {recorded.get('case')}, seed {recorded.get('seed')!r}"
    return "\n".join([head, *found[:most], *more])
