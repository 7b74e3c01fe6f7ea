"""The thread that looks for changes of the fabric."""

import os
import threading
from collections.abc import Callable

from oslo_log import log as logging

LOG = logging.getLogger(__name__)


class Watch:
    """Calls a function every so often in a thread of its own.

    Nova builds filters and weighers in the parent of the workers that it forks, and threads do
    not survive a fork: the thread is started by the first request of each worker.
    """

    def __init__(self, look: Callable[[], object], interval: Callable[[], float]) -> None:
        """Watch nothing yet.

        :param look: what to call; what it raises is logged
        :param interval: seconds between two calls, 0 for calls only on :meth:`wake`; asked
            before each, must not raise
        """
        self._look = look
        self._interval = interval
        self._lock = threading.Lock()
        self._pid = 0
        self._woken = threading.Event()

    def start(self) -> None:
        """Start the thread where this process has none yet; costs next to nothing otherwise."""
        if self._pid == os.getpid():
            return
        with self._lock:
            if self._pid == os.getpid():
                return
            # An event that was waited for when the process was forked may never wake anybody.
            self._woken = threading.Event()
            try:
                threading.Thread(target=self._run, name="hpc_sched reload", daemon=True).start()
            except RuntimeError as error:
                # The next request tries again; this one is served with what there is.
                LOG.error("No thread that looks for changes of the fabric: %s", error)
                return
            self._pid = os.getpid()

    def wake(self) -> bool:
        """Have the function called soon; False where this process has no thread for it."""
        if self._pid != os.getpid():
            return False
        self._woken.set()
        return True

    def _run(self) -> None:
        woken = self._woken
        # What was loaded in the parent may be as old as the parent.
        due = True
        while True:
            interval = self._interval()
            if woken.is_set() or (due and interval):
                woken.clear()
                try:
                    self._look()
                except Exception:
                    LOG.exception("Looking for changes of the fabric failed")
            due = not woken.wait(interval or None)
