"""A snapshot as one JSON document, gzipped where the name of its file ends in .gz."""

import gzip
import io
import json
import os
import zlib
from dataclasses import asdict
from typing import Any

from hpc_sched import exceptions, files
from hpc_sched.snapshot.model import Snapshot
from hpc_sched.snapshot.source import json_fields

FORMAT = "hpc-sched snapshot"
# One more with every change after which an older reader could not tell what it reads.
VERSION = 1
# 10,000 hosts with 20 VMs each are some 150 MB.
MAX_BYTES = 1_000_000_000

_GZIP = b"\x1f\x8b"
_error = exceptions.SnapshotError


def write(path: files.Path, snapshot: Snapshot) -> None:
    """Write a snapshot as a whole: a reader finds the old file or the new one.

    A new file is its writer's alone: it holds the names, projects and places of all servers.

    :raises exceptions.SnapshotError: naming the file that cannot be written
    """
    document = {"format": FORMAT, "version": VERSION, **asdict(snapshot)}
    try:
        text = json.dumps(document, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
        content = (text + "\n").encode()
    except (TypeError, ValueError) as failure:
        raise _error(f"{os.fspath(path)}: cannot be written: {failure}") from failure
    if os.fspath(path).endswith(".gz"):
        # Without the time of writing, so that the same snapshot is the same file.
        content = gzip.compress(content, compresslevel=6, mtime=0)
    files.write_atomically(path, content, _error, files.PRIVATE)


def read(path: files.Path) -> Snapshot:
    """Return the snapshot of a file that :func:`write` wrote. Linear in its length.

    :raises exceptions.SnapshotError: naming file, key and what was expected
    """
    name = os.fspath(path)
    content = files.read_bytes(path, _error, MAX_BYTES)
    if content.startswith(_GZIP):
        content = _unpacked(content, name)
    document = _document(files.decode(content, name, _error), name)
    if not isinstance(document, dict) or document.get("format") != FORMAT:
        raise _error(f"{name}: expected a file of hpc-sched snapshot save, found another one")
    version = document.get("version")
    if type(version) is not int or version != VERSION:
        newer = type(version) is int and version > VERSION
        raise _error(
            f"{name}: version: expected {VERSION}, found {json_fields.shown(version)}"
            + (": a newer hpc-sched wrote it" if newer else "")
        )
    del document["format"], document["version"]
    snapshot: Snapshot = json_fields.value_of(Snapshot, document, json_fields.Place(name))
    return snapshot


def _unpacked(content: bytes, name: str) -> bytes:
    try:
        with gzip.GzipFile(fileobj=io.BytesIO(content)) as stream:
            return files.read_stream(stream, name, _error, MAX_BYTES)  # type: ignore[arg-type]
    except (OSError, EOFError, zlib.error) as failure:
        raise _error(f"{name}: cannot be unpacked: {failure}") from failure


def _document(text: str, name: str) -> Any:
    def refused(constant: str) -> Any:
        raise ValueError(f"{constant} is no number")

    try:
        return json.loads(text, parse_constant=refused)
    except json.JSONDecodeError as failure:
        raise _error(f"{name}:{failure.lineno}: not JSON: {failure.msg}") from failure
    except RecursionError as failure:
        raise _error(f"{name}: nested too deeply") from failure
    except ValueError as failure:
        # A number of very many digits.
        raise _error(f"{name}: not JSON: {failure}") from failure
