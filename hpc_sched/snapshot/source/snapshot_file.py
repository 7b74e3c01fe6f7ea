"""A snapshot as a file: JSON, gzipped if its name ends in .gz; with users' names or without."""

import gzip
import hashlib
import io
import json
import os
import reprlib
import secrets
import zlib
from codecs import BOM_UTF8
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any, TypeVar

import msgspec
from msgspec.structs import replace

from hpc_sched import exceptions, files
from hpc_sched.json_values import ValueCounter
from hpc_sched.snapshot.snapshot_model import Group, Server, Snapshot

FORMAT = "hpc-sched snapshot"
# Incremented with every change of the file that an older reader would misread.
VERSION = 2
# What files of earlier versions do not have, if it matters for answers.
_LACKS = {
    1: "nested and shared resource providers, traits, NUMA cells and PCI devices are not in it: "
    "hosts are taken for the sums of their resources",
}
# For 10,000 hosts with 10 VMs, 130 features and 60 traits each, and 1,000 decisions: 130 MB and 6.4
# million values, with 8 GPUs a host 148 MB and 7.5 million. They protect the memory of a reader: a
# value takes up to 170 bytes.
MAX_BYTES = 1_000_000_000
MAX_VALUES = 20_000_000

# Prefix of the metadata keys that name the projects of an aggregate, as Nova has it.
_OWNERS = "filter_tenant_id"
_GZIP = b"\x1f\x8b"
_error = exceptions.SnapshotError
Named = TypeVar("Named", Server, Group)


class _Header(msgspec.Struct):
    """The fields of a file that every release can read."""

    format: Any = None
    version: Any = None


class _Document(Snapshot, frozen=True, forbid_unknown_fields=True):
    format: str = FORMAT
    version: int = VERSION


def write(path: files.Path, snapshot: Snapshot) -> None:
    """Write a snapshot atomically; only the owner can read a new file, for it holds all servers.

    :raises exceptions.SnapshotError: naming the file that cannot be written, or is too large for
        :func:`read`
    """
    try:
        document = {"format": FORMAT, "version": VERSION, **msgspec.to_builtins(snapshot)}
        text = json.dumps(document, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
        content = f"{text}\n".encode()
    except (TypeError, ValueError) as failure:
        raise _error(f"{os.fspath(path)}: cannot be written: {failure}") from failure
    _check_size(content, f"{os.fspath(path)}: cannot be written")
    if os.fspath(path).endswith(".gz"):
        # Without a time stamp: equal snapshots give equal files.
        content = gzip.compress(content, compresslevel=6, mtime=0)
    files.write_atomically(path, content, _error, files.PRIVATE)


def read(path: files.Path) -> Snapshot:
    """Return the snapshot in a file. Linear in its length.

    A file of an older version has a note on what cannot be answered from it.

    :raises exceptions.SnapshotError: naming file, place in the document and what was expected
    """
    name = os.fspath(path)
    content = files.read_bytes(path, _error, MAX_BYTES)
    if content.startswith(_GZIP):
        content = _unpacked(content, name)
    else:
        _check_size(content, name)
    # Not decoded as a whole: one character outside the BMP makes four bytes of each.
    text = memoryview(content)[len(BOM_UTF8) if content.startswith(BOM_UTF8) else 0 :]
    try:
        _check(msgspec.json.decode(text, type=_Header), name)
        document = msgspec.json.decode(text, type=_Document)
    except msgspec.ValidationError as failure:
        raise _error(f"{name}: {failure}") from failure
    except msgspec.DecodeError as failure:
        raise _error(f"{name}: not JSON: {failure}") from failure
    except UnicodeDecodeError as failure:
        raise _error(
            f"{name}: expected UTF-8, found byte 0x{failure.object[failure.start]:02x}"
        ) from failure
    except RecursionError as failure:
        raise _error(f"{name}: nested too deeply") from failure
    _check_unique(document, name)
    found = Snapshot(**{field: getattr(document, field) for field in Snapshot.__struct_fields__})
    if (lacks := _LACKS.get(document.version)) is None:
        return found
    note = f"saved by an older hpc-sched (version {document.version} of the file): {lacks}"
    return replace(found, notes=(*found.notes, note))


def _check_unique(document: Snapshot, name: str) -> None:
    keys: dict[str, Iterable[object]] = {
        "hypervisors": (node.place for node in document.hypervisors),
        "servers": (server.uuid for server in document.servers),
    }
    for part, found in keys.items():
        for key, count in Counter(found).items():
            if count > 1:
                raise _error(f"{name}: {part}: {key!r} is there twice: expected each one once")


def _check(header: _Header, name: str) -> None:
    found = header.version
    if header.format != FORMAT:
        raise _error(f"{name}: expected a file of hpc-sched snapshot save, found another one")
    if type(found) is not int or not 1 <= found <= VERSION:
        newer = type(found) is int and found > VERSION
        raise _error(
            f"{name}: version: expected 1 to {VERSION}, found {reprlib.repr(found)}"
            + (": a newer hpc-sched wrote it" if newer else "")
        )


def _check_size(content: bytes, name: str) -> None:
    if len(content) > MAX_BYTES:
        raise _error(f"{name}: expected at most {MAX_BYTES} bytes, found {len(content)}")
    count = ValueCounter(name, MAX_VALUES)
    for start in range(0, len(content), files.CHUNK):
        count.add(content[start : start + files.CHUNK])


def _unpacked(content: bytes, name: str) -> bytes:
    count = ValueCounter(name, MAX_VALUES).add
    try:
        with gzip.GzipFile(fileobj=io.BytesIO(content)) as stream:
            return files.read_stream(stream, name, _error, MAX_BYTES, count)  # type: ignore[arg-type]
    except (OSError, EOFError, zlib.error) as failure:
        raise _error(f"{name}: cannot be unpacked: {failure}") from failure


def without_names(snapshot: Snapshot) -> Snapshot:
    """Return the snapshot with the names of servers, server groups and projects replaced.

    Equal names become equal words within one snapshot. Hosts, flavors, host aggregates,
    applications and uuids stay, except for the projects that own aggregates.
    """
    # New for each snapshot, so that guessed names cannot be verified.
    salt = secrets.token_bytes(16)

    def word(kind: str, name: str) -> str:
        digest = hashlib.blake2b(name.encode(), digest_size=6, key=salt, person=kind.encode())
        return f"{kind}-{digest.hexdigest()}"

    def projects(names: str) -> str:
        return ",".join(word("project", name.strip()) for name in names.split(","))

    def renamed(kind: str, things: Iterable[Named]) -> tuple[Named, ...]:
        found = (
            replace(one, name=word(kind, one.name), project_id=word("project", one.project_id))
            for one in things
        )
        return tuple(sorted(found, key=lambda one: (one.name, one.uuid)))

    def owned(metadata: Mapping[str, str]) -> dict[str, str]:
        return {
            key: projects(value) if key.startswith(_OWNERS) else value
            for key, value in metadata.items()
        }

    return replace(
        snapshot,
        aggregates=tuple(
            replace(aggregate, metadata=owned(aggregate.metadata))
            for aggregate in snapshot.aggregates
        ),
        servers=renamed("server", snapshot.servers),
        groups=renamed("group", snapshot.groups),
    )
