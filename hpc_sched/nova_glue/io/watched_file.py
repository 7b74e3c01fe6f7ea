"""Files that are read again when they change."""

import math
import os
import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

from oslo_log import log as logging

from hpc_sched import clock, exceptions

LOG = logging.getLogger(__name__)

# Seconds between two attempts to read an unchanged file after an I/O error.
AGAIN_AFTER = 10.0

Content = TypeVar("Content")
Fingerprint = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class _ReadFile(Generic[Content]):
    path: str
    seen: Fingerprint | None  # of the file when it was read last, valid or not
    content: Content | None
    error: str = ""  # logged last
    again_at: float = math.inf  # monotonic time at which to read it again although unchanged

    def is_current(self, path: str, seen: Fingerprint | None) -> bool:
        """True if the file need not be read."""
        return (self.path, self.seen) == (path, seen) and clock.current.monotonic() < self.again_at


class WatchedFile(Generic[Content]):
    """The last valid content of a file, for all threads.

    One thread at a time reads the file; the others go on with the old content. Each new mistake in
    the file is logged once, as an ERROR.
    """

    def __init__(self, what: str, read: Callable[[str], Content]) -> None:
        self._what = what  # name of the file's kind in log lines
        self._read = read  # raises a HPCSchedError that names file and line
        self._held: _ReadFile[Content] = _ReadFile("", None, None, again_at=-math.inf)
        self._lock = threading.Lock()

    def start(self, path: str) -> None:
        """Read the file for the first time; raises a HPCSchedError if it is missing or invalid."""
        with self._lock:
            seen = fingerprint(path)
            if self._held.error or not self._held.is_current(path, seen):
                self._held = _ReadFile(path, seen, self._read(path))

    def current(self, path: str) -> Content | None:
        """Return the file's content, or the last valid one, or None; one stat if unchanged."""
        held = self._held
        if held.is_current(path, fingerprint(path)):
            return held.content
        # With old content at hand, do not wait for the thread that is reading.
        if not self._lock.acquire(blocking=held.path != path or held.content is None):
            return held.content
        try:
            seen = fingerprint(path)
            if not self._held.is_current(path, seen):
                self._held = self._read_again(path, seen)
            return self._held.content
        finally:
            self._lock.release()

    def _read_again(self, path: str, seen: Fingerprint | None) -> _ReadFile[Content]:
        try:
            content = self._read(path)
        except exceptions.HPCSchedError as error:
            kept = self._held.content
            stays = (
                f"the last good {self._what} stays in use" if kept is not None else "none is used"
            )
            text = f"{error}; {stays}"
            if self._held.error != text:
                LOG.error("%s", text)
            # An I/O error may pass without a change of the file.
            wait = AGAIN_AFTER if isinstance(error.__cause__, OSError) else math.inf
            return _ReadFile(path, seen, kept, text, clock.current.monotonic() + wait)
        LOG.info("Read %s %s", self._what, path)
        return _ReadFile(path, seen, content)


def fingerprint(path: str | None) -> Fingerprint | None:
    """Return a value that changes with a file, or None if it cannot be found."""
    if not path:
        return None
    try:
        found = os.stat(path)
    except (OSError, ValueError):
        return None
    # The ctime changes with the file's mode: a file may become readable.
    return (found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns)
