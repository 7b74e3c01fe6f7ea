"""The files in which the workers of one nova-scheduler share their metrics.

They have the names and the format of prometheus_client's multiprocess mode, whose collector merges
them. That mode writes them through a memory map, which ends the process if the disk is full, and
holds up all its threads while the disk is slow. Here a thread replaces each file as a whole.

In the names a slot is in place of the process id: a number that a worker locks as long as it lives.
A worker that is started in place of another takes its slot, and goes on from its counts.
"""

import fcntl
import os
import stat
import struct
from collections.abc import Iterable, Iterator
from pathlib import Path

from prometheus_client.mmap_dict import MmapedDict, mmap_key
from prometheus_client.multiprocess import MultiProcessCollector

from hpc_sched import exceptions
from hpc_sched.metrics import counts
from hpc_sched.metrics.catalogue import COUNTER, GAUGE, HISTOGRAM
from hpc_sched.metrics.counts import Series

MAX_SLOTS = 256
_LIVE = "gauge_live"  # beginning of the names of files that end with their worker
_NEW = ".new"  # end of the name of a file that is being written


def prepare(directory: Path) -> None:
    """Create the directory, and remove what workers of an earlier start have left there.

    :raises exceptions.MetricsError: if it is no place for files that only this user writes
    """
    try:
        directory.mkdir(mode=0o750, parents=True, exist_ok=True)
        if directory.stat().st_mode & stat.S_IWOTH:
            raise exceptions.MetricsError(
                f"{directory}: expected a folder that others cannot write"
            )
        for number in _slots(directory):
            slot = Slot.locked(directory, number)
            if slot is not None:
                slot.remove()
                slot.close()
    except OSError as error:
        raise exceptions.MetricsError(f"{directory}: {error.strerror or error}") from error


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


class Slot:
    """The files of one worker."""

    def __init__(self, directory: Path, number: int, lock_: int) -> None:
        self._directory, self._number, self._lock = directory, number, lock_
        self._written: dict[str, bytes] = {}  # name to content
        self._keys: dict[Series, bytes] = {}
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
                return found
        raise exceptions.MetricsError(f"{directory}: expected at most {MAX_SLOTS} workers")

    def write(self) -> None:
        """Write the metrics of this process. Files without a change are left.

        :raises exceptions.MetricsError: if another worker has the slot, or OSError
        """
        self._keep_lock()
        sums = {kind: dict(self._before.get(kind, {})) for kind in (COUNTER, HISTOGRAM)}
        for series, number in counts.numbers().items():
            of_kind, key = sums[series.metric.kind], self._key(series)
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

    def remove(self) -> None:
        """Remove the files; raises OSError."""
        for path in self._files():
            path.unlink(missing_ok=True)

    def close(self) -> None:
        """Let another worker take the slot."""
        os.close(self._lock)

    def _keep_lock(self) -> None:
        """Lock the slot again if its file has been removed, and perhaps the others."""
        path = _lock_file(self._directory, self._number)
        try:
            is_there = os.path.samestat(os.lstat(path), os.fstat(self._lock))
        except FileNotFoundError:
            is_there = False
        if is_there:
            return
        again = lock(path)
        if again is None:
            raise exceptions.MetricsError(f"{path}: removed, and taken by another worker")
        os.close(self._lock)
        self._lock, self._written = again, {}

    def _files(self) -> list[Path]:
        found = self._directory.glob(f"*_{self._number}.db*")
        return [path for path in found if path.suffix in (".db", _NEW)]

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
                values = list(MmapedDict.read_all_values_from_file(str(path)))
            except Exception:  # nosec B112 - no file, or another one than a worker writes
                continue
            found[kind] = {key.encode(): value for key, value, *_ in values}
        return found

    def _key(self, series: Series) -> bytes:
        found = self._keys.get(series)
        if found is None:
            found = self._keys[series] = _key(series)
        return found


def collector(directory: Path) -> MultiProcessCollector:
    """Return what merges the metrics of all workers; gauges of dead ones are removed before."""
    for number in _slots(directory):
        gauges = list(directory.glob(f"{_LIVE}*_{number}.db"))
        if gauges and (slot := Slot.locked(directory, number)) is not None:
            for path in gauges:
                path.unlink(missing_ok=True)
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
        labels[counts.LE] = series.part
    key = mmap_key(metric.name, name, list(labels), list(labels.values()), metric.help)
    return key.encode()


def _entry(key: bytes, value: float, set_at: float) -> bytes:
    """Return a value in the format that :class:`MmapedDict` describes."""
    padded = key + b" " * (8 - (len(key) + 4) % 8)
    return struct.pack(f"i{len(padded)}sdd", len(key), padded, value, set_at)


def _file(entries: Iterable[bytes]) -> bytes:
    content = b"".join(entries)
    return struct.pack("ii", 8 + len(content), 0) + content
