"""The log of the last request that was scheduled, of all that Nova and the plugin log."""

import logging
import traceback
from collections import deque

from oslo_context import context as oslo_context

#: Loggers of the services that place VMs.
SCHEDULING = ("hpc_sched", "nova.scheduler")
MOST_LINES = 5000


class RequestLog(logging.Handler):
    """Keeps the last lines with the request that each is about.

    Of the services that place VMs all lines, of others those that are not for debugging.
    """

    def __init__(self) -> None:
        super().__init__(logging.DEBUG)
        self._lines: deque[tuple[str | None, str]] = deque(maxlen=MOST_LINES)
        self._last: str | None = None

    def emit(self, record: logging.LogRecord) -> None:
        """Keep a line."""
        places = record.name.startswith(SCHEDULING)
        if record.levelno < logging.INFO and not places:
            return
        current = oslo_context.get_current()
        request = current.request_id if current is not None else None
        if request is not None and places:
            self._last = request
        line = f"{record.levelname} {record.name}: {record.getMessage()}"
        line = line if len(line) <= 1000 else f"{line[:1000]} ..."
        if record.exc_info and record.exc_info[0] is not None:
            line += "\n" + "".join(traceback.format_exception(*record.exc_info)).rstrip()
        self._lines.append((request, line))

    def of_last_request(self) -> str:
        """Return the lines of the request that was scheduled last, all lines if none was."""
        if self._last is None:
            return "\n".join(line for _, line in self._lines)
        return "\n".join(line for request, line in self._lines if request == self._last)
