"""The decision log: a file with one JSON object per line and decision."""

from __future__ import annotations

import errno
import json
import os
import stat
import threading
from typing import Any

from oslo_log import log as logging

LOG = logging.getLogger(__name__)

_lock = threading.Lock()
_unwritable: str | None = None  # path of the last write, if it failed
_torn: str | None = None  # path whose last record is incomplete, a pipe's included


def append(path: str, record: dict[str, Any]) -> None:
    """Append one line to a file that other workers append to and that may be rotated.

    Each line is one write with O_APPEND to a newly opened file: lines of workers do not mix, and
    a rotated file gets no more lines. Never raises and never waits for the reader of a pipe: a
    line that cannot be written is lost. The first loss is a WARNING, its end an INFO.
    """
    global _unwritable, _torn
    try:
        line = (json.dumps(record, separators=(",", ":"), allow_nan=False) + "\n").encode()
    except (TypeError, ValueError) as error:
        LOG.warning("A decision cannot be written as JSON: %s", error)
        return
    with _lock:
        try:
            # End an incomplete record, also another worker's: only that one is lost.
            written = _write(path, b"\n" + line if _torn == path or _is_torn(path) else line)
        except (OSError, ValueError) as error:
            why: object = error
        else:
            # A pipe, or a disk that becomes full, takes only the beginning of a line.
            why = None if written else "no space for the whole line"
            _torn = None if written else path
        before, _unwritable = _unwritable, path if why else None
    if why and before != path:
        LOG.warning("[hpc_sched] decision_log = %s cannot be written: %s", path, why)
    elif not why and before == path:
        LOG.info("[hpc_sched] decision_log = %s can be written again", path)


def _is_torn(path: str) -> bool:
    """True if a file's last line is incomplete; False for a file that cannot be read."""
    try:
        if not stat.S_ISREG(os.stat(path).st_mode):
            return False
        with open(path, "rb", buffering=0, opener=_without_waiting) as file:
            file.seek(max(file.seek(0, os.SEEK_END) - 1, 0))
            return file.read(1) not in (b"\n", b"")
    except (OSError, ValueError):
        return False


def _write(path: str, text: bytes) -> bool:
    """Append to a file; return whether all was written.

    :raises OSError: if nothing was written
    """
    # Not os.write(), which on eventlet waits for a pipe's reader nevertheless.
    with open(path, "ab", buffering=0, opener=_without_waiting) as file:
        taken = file.write(text)
    if taken is None:
        raise BlockingIOError(errno.EAGAIN, os.strerror(errno.EAGAIN))
    return taken == len(text)


def _without_waiting(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_NONBLOCK, 0o640)
