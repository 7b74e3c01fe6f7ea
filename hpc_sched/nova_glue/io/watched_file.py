"""A file whose content is kept in memory and read again when it changes."""

import math
import os
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

from oslo_log import log as logging

from hpc_sched import exceptions

LOG = logging.getLogger(__name__)

# How many seconds a file that the disk does not give is left alone.
AGAIN_AFTER = 10.0

Content = TypeVar("Content")
Fingerprint = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class _Held(Generic[Content]):
    path: str
    seen: Fingerprint | None  # of the file when it was last looked at, also where it was wrong
    content: Content | None
    wrong: str = ""  # what was said of it last
    again_at: float = math.inf  # a time.monotonic() to look at it again although it is the same

    def is_of(self, path: str, seen: Fingerprint | None) -> bool:
        """Tell whether nothing is to be read."""
        return (self.path, self.seen) == (path, seen) and time.monotonic() < self.again_at


class WatchedFile(Generic[Content]):
    """The last good content of a file.

    One object serves all threads: what is held is replaced by one assignment, and one thread
    at a time reads, the others going on with what is held. A file that becomes wrong is one
    ERROR per mistake; its last good content stays in use.
    """

    def __init__(self, what: str, read: Callable[[str], Content]) -> None:
        """Watch a file that is named only when it is asked for.

        :param what: what the file is, for the log
        :param read: reads a path; raises a HPCSchedError that names file and line
        """
        self._what = what
        self._read = read
        self._held: _Held[Content] | None = None
        self._lock = threading.Lock()

    def start(self, path: str) -> None:
        """Read the file for the first time.

        :raises exceptions.HPCSchedError: where it is missing or wrong
        """
        with self._lock:
            seen = fingerprint(path)
            if self._held is None or self._held.wrong or not self._held.is_of(path, seen):
                self._held = _Held(path, seen, self._read(path))

    def current(self, path: str) -> Content | None:
        """Return the file's content, read again if it has changed; costs one stat.

        The last good content where it cannot be read now, None where there never was any.
        """
        held = self._held
        if held is not None and held.is_of(path, fingerprint(path)):
            return held.content
        # Who has something to go on with does not wait for the one that reads.
        has_old = held is not None and held.path == path and held.content is not None
        if not self._lock.acquire(blocking=not has_old):
            return held.content if held is not None else None
        try:
            seen, held = fingerprint(path), self._held
            if held is None or not held.is_of(path, seen):
                self._held = self._again(path, seen, held)
            return self._held.content if self._held is not None else None
        finally:
            self._lock.release()

    def _again(
        self, path: str, seen: Fingerprint | None, held: _Held[Content] | None
    ) -> _Held[Content]:
        try:
            content = self._read(path)
        except exceptions.HPCSchedError as error:
            kept = held.content if held is not None else None
            wrong = f"{error}; " + (
                f"the last good {self._what} stays in use" if kept is not None else "none is used"
            )
            if held is None or held.wrong != wrong:
                LOG.error("%s", wrong)
            # What the disk would not give may come without the file having changed.
            again = isinstance(error.__cause__, OSError)
            again_at = time.monotonic() + AGAIN_AFTER if again else math.inf
            return _Held(path, seen, kept, wrong, again_at)
        LOG.info("Read %s %s", self._what, path)
        return _Held(path, seen, content)


def fingerprint(path: str | None) -> Fingerprint | None:
    """Return what changes when a file does; None where there is none (its reader says why)."""
    if not path:
        return None
    try:
        found = os.stat(path)
    except (OSError, ValueError):
        return None
    # The ctime tells of a mode that was mended.
    return (found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns)
