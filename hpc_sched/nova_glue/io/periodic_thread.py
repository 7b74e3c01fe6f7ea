"""A thread of a worker that calls a function periodically, and the one worker that acts for all."""

import fcntl
import os
import tempfile
import threading
from collections.abc import Callable
from typing import IO

from oslo_log import log as logging

from hpc_sched import clock

LOG = logging.getLogger(__name__)


class PeriodicThread:
    """Calls a function periodically in a thread of its own.

    Nova builds filters and weighers before it forks its workers, and threads do not survive a
    fork: the first request of each worker starts the thread.
    """

    def __init__(
        self,
        function: Callable[[], object],
        interval: Callable[[], float],
        name: str = "hpc_sched reload",
        *,
        is_due_at_once: bool = True,
    ) -> None:
        # Returns the seconds until the next call, 0 to wait for wake(); must not raise.
        self.interval = interval
        self._function = function  # what it raises is logged
        self._name = name
        # Whether the first call is at the start, or an interval later.
        self._is_due_at_once = is_due_at_once
        self._lock = threading.Lock()
        self._pid = 0
        self._woken = threading.Event()

    def start(self) -> None:
        """Start the thread unless this process has it already."""
        if self._pid == os.getpid():
            return
        with self._lock:
            if self._pid == os.getpid():
                return
            # An event that a thread waited for during the fork may stay locked.
            self._woken = threading.Event()
            try:
                threading.Thread(target=self._run, name=self._name, daemon=True).start()
            except RuntimeError as error:
                # The request continues without it; the next one tries again.
                LOG.error("The thread %r cannot be started: %s", self._name, error)
                return
            self._pid = os.getpid()

    def wake(self) -> bool:
        """Call the function soon; return False if this process has no thread for it."""
        if self._pid != os.getpid():
            return False
        self._woken.set()
        return True

    def _run(self) -> None:
        woken = self._woken
        # The topology was loaded before the fork, which may be long ago.
        is_due = self._is_due_at_once
        while True:
            interval = self.interval()
            if woken.is_set() or (is_due and interval):
                woken.clear()
                try:
                    self._function()
                except Exception:
                    LOG.exception("The thread %r failed; it goes on", self._name)
            is_due = not clock.current.wait_for_event(woken, interval or None)


class OneWorker:
    """Elects one of the workers; another one takes over when it has ended.

    The workers inherit a file without a name, which one of them locks. The lock is a process's, not
    a descriptor's: it ends with the process, and a child does not inherit it.
    """

    def __init__(self) -> None:
        self._file: IO[bytes] | None = None

    def prepare(self) -> None:
        """Make the file, before workers are forked; without one each worker is elected."""
        if self._file is None:
            try:
                self._file = tempfile.TemporaryFile()  # noqa: SIM115 - as long as the process
            except OSError as error:
                LOG.debug("No file for the election of a worker: %s", error)

    def is_this(self) -> bool:
        """True if this process is the one that is elected."""
        if self._file is None:
            return True
        try:
            fcntl.lockf(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            return False
        return True
