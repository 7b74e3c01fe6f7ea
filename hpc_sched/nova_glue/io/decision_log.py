"""The file that gets one line of JSON for every decision."""

import errno
import json
import os
import stat
import threading
from typing import Any

from oslo_log import log as logging

from hpc_sched.nova_glue import request_metrics

LOG = logging.getLogger(__name__)

_lock = threading.Lock()
_unwritable: str | None = None  # path that could not be written last
_incomplete: str | None = None  # path, also a pipe's, whose last record is incomplete


def append(path: str, record: dict[str, Any]) -> None:
    """Append one line to a file that other workers append to and that may be rotated.

    Never raises, and never waits for a pipe's reader: a line that cannot be written is lost. The
    first such loss is logged as a WARNING, and its end as INFO.
    """
    global _unwritable, _incomplete
    try:
        line = (json.dumps(record, separators=(",", ":"), allow_nan=False) + "\n").encode()
    except (TypeError, ValueError) as error:
        LOG.warning("A decision cannot be written as JSON: %s", error)
        request_metrics.current.lost_line()
        return
    with _lock:
        try:
            # A record that ends early, by this or another worker, must not spoil this one.
            is_complete = write(
                path, b"\n" + line if _incomplete == path or is_incomplete(path) else line
            )
        except (OSError, ValueError) as error:
            reason: object = error
        else:
            # A disk that becomes full, or a pipe, takes only the beginning of a line.
            reason = None if is_complete else "no space for the whole line"
            _incomplete = None if is_complete else path
        before, _unwritable = _unwritable, path if reason else None
    if reason:
        request_metrics.current.lost_line()
    if reason and before != path:
        LOG.warning("[hpc_sched] decision_log = %s cannot be written: %s", path, reason)
    elif not reason and before == path:
        LOG.info("[hpc_sched] decision_log = %s can be written again", path)


def is_incomplete(path: str) -> bool:
    """True if a regular, readable file does not end with a line break."""
    try:
        if not stat.S_ISREG(os.stat(path).st_mode):
            return False
        with open(path, "rb", buffering=0, opener=_without_waiting) as file:
            file.seek(max(file.seek(0, os.SEEK_END) - 1, 0))
            return file.read(1) not in (b"\n", b"")
    except (OSError, ValueError):
        return False


def write(path: str, text: bytes) -> bool:
    """Append to a file; return whether it has taken the whole text; raises OSError if nothing."""
    # One call with O_APPEND: lines of two workers do not mix; a rotated file gets no more lines.
    # Not os.write(), which on eventlet waits for a pipe's reader all the same.
    with open(path, "ab", buffering=0, opener=_without_waiting) as file:
        taken = file.write(text)
    if taken is None:
        raise BlockingIOError(errno.EAGAIN, os.strerror(errno.EAGAIN))
    return taken == len(text)


def _without_waiting(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_NONBLOCK, 0o640)
