"""Shows a history when Nova's scheduler begins and ends with a request, and each new allocation."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from typing import Any, Protocol
from unittest import mock

from nova import exception
from nova.scheduler.client import query, report
from nova.scheduler.manager import SchedulerManager


class Watcher(Protocol):
    """What is shown to a history, in the threads of the scheduler, the conductor and computes."""

    lock: Any  # held while Placement is written, until the history has seen it

    def request_of(self, uuid: str) -> Any:
        """Return the request that places an instance, or None."""

    def begins(self, uuid: str) -> Any:
        """Return the same, before candidates are read."""

    def meets(self, request: Any) -> None:
        """Let a request wait before it writes to Placement for the first time."""

    def changes(self) -> None:
        """See what Placement holds now."""

    def ends(self, request: Any, found: Mapping[str, str] | BaseException) -> None:
        """See the node of each instance, or why there is none."""


_serving = threading.local()


@contextmanager
def watched(watcher: Watcher) -> Iterator[None]:
    """Show a history what happens in this block."""
    with ExitStack() as patches:
        for owner, name, shown in (
            (query.SchedulerQueryClient, "select_destinations", _selects),
            (SchedulerManager, "_select_destinations", _serves),
            *((report.SchedulerReportClient, name, _writes) for name in ("put", "post", "delete")),
        ):
            replacement = shown(watcher, getattr(owner, name))
            patches.enter_context(mock.patch.object(owner, name, replacement))
        yield


def _selects(watcher: Watcher, select: Any) -> Any:
    """Return what the conductor calls."""

    def select_destinations(client: Any, context: Any, spec: Any, uuids: Any, **said: Any) -> Any:
        request = watcher.begins(uuids[0])
        try:
            found = select(client, context, spec, uuids, **said)
        except Exception as error:
            watcher.ends(request, _reason(error))
            raise
        chosen = [first.nodename for first, *_ in found]
        watcher.ends(request, dict(zip(uuids, chosen, strict=True)))
        return found

    return select_destinations


def _serves(watcher: Watcher, select: Any) -> Any:
    """Return what the scheduler calls, in a thread of its own."""

    def select_destinations(manager: Any, context: Any, spec: Any, uuids: Any, *args: Any) -> Any:
        _serving.request = watcher.request_of(uuids[0])
        try:
            return select(manager, context, spec, uuids, *args)
        finally:
            _serving.request = None

    return select_destinations


def _reason(error: BaseException) -> BaseException:
    """Return an error; where Placement has no candidates, Nova gives no reason."""
    if str(error).strip() == "No valid host was found.":
        return exception.NoValidHost(reason="no allocation candidates")
    return error


def _writes(watcher: Watcher, write: Any) -> Any:
    def write_and_show(client: Any, url: str, *args: Any, **said: Any) -> Any:
        if "/allocations" not in url:
            return write(client, url, *args, **said)
        request = getattr(_serving, "request", None)
        if request is not None:
            watcher.meets(request)
        with watcher.lock:
            answer = write(client, url, *args, **said)
            watcher.changes()
        return answer

    return write_and_show
