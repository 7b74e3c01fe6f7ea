"""The files in which the workers of one nova-scheduler share their metrics.

They have the names and the format of prometheus_client's multiprocess mode, whose collector merges
them. That mode writes them through a memory map, which ends the process if the disk is full, and
holds up all its threads while the disk is slow. Here a thread replaces each file as a whole.

In the names a slot is in place of the process id: a number that a worker locks as long as it lives.
A worker that is started in place of another takes its slot, and goes on from its counts.
"""

import contextlib
import fcntl
import functools
import json
import os
import stat
import struct
from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path

from prometheus_client.mmap_dict import MmapedDict, mmap_key
from prometheus_client.multiprocess import MultiProcessCollector

from hpc_sched import exceptions
from hpc_sched.metrics import counts
from hpc_sched.metrics.catalogue import COUNTER, GAUGE, HISTOGRAM, METRICS, Metric
from hpc_sched.metrics.counts import Series

MAX_SLOTS = 256
_LIVE = "gauge_live"  # beginning of the names of files that end with their worker
_LABELS = {metric.name: metric.labels.keys() for metric in METRICS}
_NEW = ".new"  # end of the name of a file that is being written


def prepare(directory: Path) -> None:
    """Create the directory and the one above, and remove what an earlier start has left there.

    :raises exceptions.MetricsError: if it is no place for files that only this user writes
    """
    try:
        for folder in (directory.parent, directory):
            folder.mkdir(mode=0o750, parents=True, exist_ok=True)
            if folder.stat().st_mode & stat.S_IWOTH:
                raise exceptions.MetricsError(
                    f"{folder}: expected a folder that others cannot write"
                )
        for number in _slots(directory):
            slot = Slot.locked(directory, number)
            if slot is not None:
                slot.remove()
                slot.close()
    except OSError as error:
        raise exceptions.MetricsError(
            f"{error.filename or directory}: {error.strerror or error}"
        ) from error


def lock(path: Path) -> int | None:
    """Lock a file as long as this process lives; return its descriptor, None if it is locked."""
    found = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o640)
    try:
        fcntl.flock(found, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(found)
        return None
    except BaseException:
        os.close(found)
        raise
    return found


def relocked(path: Path, held: int | None) -> int | None:
    """Lock a file, again if it is no longer the one that this process holds: it was removed.

    :param held: descriptor, which is closed then; None if the process holds none
    :return: descriptor that the process holds now; None if another process has the file
    """
    if held is None:
        return lock(path)
    with contextlib.suppress(FileNotFoundError):
        if os.path.samestat(os.lstat(path), os.fstat(held)):
            return held
    found = lock(path)
    os.close(held)
    return found


class Slot:
    """The files of one worker."""

    def __init__(self, directory: Path, number: int, lock_: int) -> None:
        self._directory, self._number = directory, number
        self._lock: int | None = lock_  # None once another worker has the slot
        self._written: dict[str, bytes] = {}  # name to content
        self._key = functools.cache(_key)
        self._before: dict[str, dict[bytes, float]] = {}  # by kind; of earlier workers

    @classmethod
    def locked(cls, directory: Path, number: int) -> "Slot | None":
        """Return a slot, None if another worker has it."""
        found = lock(_lock_file(directory, number))
        return None if found is None else cls(directory, number, found)

    @classmethod
    def claim(cls, directory: Path) -> "Slot":
        """Return the first slot that no worker has, with the counts of the last one that had it.

        :raises exceptions.MetricsError: if there is none
        """
        for number in range(MAX_SLOTS):
            if (found := cls.locked(directory, number)) is not None:
                found._before = found._read()
                found.remove(_LIVE)
                return found
        raise exceptions.MetricsError(f"{directory}: expected at most {MAX_SLOTS} workers")

    def write(self) -> None:
        """Write the metrics of this process; raises OSError. Files without a change are left."""
        sums = {kind: dict(self._before.get(kind, {})) for kind in (COUNTER, HISTOGRAM)}
        for series, number in counts.numbers().items():
            of_kind, key = sums[series.metric.kind], self._key(series)
            # With those of earlier workers no more than the next one takes for undamaged.
            if key in of_kind or len(of_kind) < counts.MAX_SERIES:
                of_kind[key] = of_kind.get(key, 0.0) + number
        contents = {
            kind: [_entry(key, value, 0.0) for key, value in of_kind.items()]
            for kind, of_kind in sums.items()
        }
        for series, (value, set_at) in counts.gauges().items():
            name = f"{GAUGE}_{series.metric.merged}"
            contents.setdefault(name, []).append(_entry(self._key(series), value, set_at))
        for name, entries in contents.items():
            self._replace(name, _file(entries))

    def values_before(self, metric: Metric, label: str) -> set[str]:
        """Return the values of a label of a counter that earlier workers have left."""
        parsed = map(_parsed, self._before.get(metric.kind, {}))
        return {labels[label] for name, labels in parsed if name == metric.name}

    def remove(self, start: str = "") -> None:
        """Remove the files, or those whose names begin with a text; raises OSError."""
        for path in self._directory.glob(f"{start}*_{self._number}.db*"):
            if path.suffix in (".db", _NEW):
                path.unlink(missing_ok=True)

    def close(self) -> None:
        """Let another worker take the slot."""
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None

    def keep(self) -> bool:
        """Lock the slot again if its file has been removed, and write all files then.

        :return: False if another worker has taken it since; raises OSError
        """
        held = relocked(_lock_file(self._directory, self._number), self._lock)
        if held != self._lock:
            self._lock, self._written = held, {}
        return held is not None

    def _replace(self, name: str, content: bytes) -> None:
        if self._written.get(name) == content:
            return
        path = self._directory / f"{name}_{self._number}.db"
        new = path.with_name(path.name + _NEW)
        # Not synchronised with the disk: what a machine that crashes loses begins at 0 again.
        with open(new, "wb", buffering=0, opener=_private) as file:
            if file.write(content) != len(content):
                raise OSError(28, "No space left on device")
        os.replace(new, path)
        self._written[name] = content

    def _read(self) -> dict[str, dict[bytes, float]]:
        """Return the counts that the last worker with this slot has left; none if unreadable."""
        found: dict[str, dict[bytes, float]] = {}
        for kind in (COUNTER, HISTOGRAM):
            path = self._directory / f"{kind}_{self._number}.db"
            try:
                values = MmapedDict.read_all_values_from_file(str(path))
                # Of a damaged file there may be no end.
                entries = list(islice(values, counts.MAX_SERIES + 1))
                of_kind = {key.encode(): value for key, value, *_ in entries}
                if len(entries) <= counts.MAX_SERIES and all(map(_parsed, of_kind)):
                    found[kind] = of_kind
            except Exception:  # nosec B112 - no file, or another one than a worker writes
                continue
        return found


def collector(directory: Path) -> MultiProcessCollector:
    """Return what merges the metrics of all workers; gauges of dead ones are removed before."""
    with_gauges = {path.stem.rpartition("_")[2] for path in directory.glob(f"{_LIVE}*_*.db")}
    for number in _slots(directory):
        if str(number) in with_gauges and (slot := Slot.locked(directory, number)):
            slot.remove(_LIVE)
            slot.close()
    return MultiProcessCollector(None, str(directory))


def _slots(directory: Path) -> Iterator[int]:
    for path in directory.glob("slot-*.lock"):
        number = path.stem.removeprefix("slot-")
        if number.isascii() and number.isdecimal() and len(number) < 9:
            yield int(number)


def _lock_file(directory: Path, number: int) -> Path:
    return directory / f"slot-{number}.lock"


def _private(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_NOFOLLOW | os.O_CLOEXEC, 0o640)


def _key(series: Series) -> bytes:
    """Return what names a value in a file, as prometheus_client does."""
    metric, labels = series.metric, dict(series.labels)
    name = metric.exposed_name
    if series.part == counts.SUM:
        name += "_sum"
    elif series.part:
        name += "_bucket"
        labels["le"] = series.part
    return mmap_key(metric.name, name, list(labels), list(labels.values()), metric.help).encode()


def _parsed(key: bytes) -> tuple[str, dict[str, str]]:
    """Return the name of a metric and the labels in a key; ValueError for no key of a worker."""
    match json.loads(key):
        case [str() as name, str(), dict() as labels, str()] if name in _LABELS:
            texts = [labels[label] for label in _LABELS[name] if label in labels]
            if len(texts) == len(_LABELS[name]) and all(isinstance(text, str) for text in texts):
                return name, labels
    raise ValueError(f"no series of a worker: {key!r}")


def _entry(key: bytes, value: float, set_at: float) -> bytes:
    """Return a value in the format that :class:`MmapedDict` describes."""
    padded = key + b" " * (8 - (len(key) + 4) % 8)
    return struct.pack(f"i{len(padded)}sdd", len(key), padded, value, set_at)


def _file(entries: Iterable[bytes]) -> bytes:
    content = b"".join(entries)
    return struct.pack("ii", 8 + len(content), 0) + content
