"""A history on a whole Nova: requests that run at once are in Nova's own threads.

What is true while a request runs is noted before it reads candidates, after each write to
Placement, which waits for that, and with its last allocation, as on a cloud in memory. So requests
that run at once are checked as those that run alone are. What cannot be seen is the order of two
changes of instances between writes to Placement: their states are those of the next write.
"""

from __future__ import annotations

import random
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from tests.functional.nova_histories import nova_operations, nova_rows, watched_scheduler
from tests.functional.nova_histories.nova_group_cloud import LIMIT, NovaGroupCloud
from tests.group_histories import checks
from tests.group_histories.checked_history import MOST_AT_ONCE, CheckedHistory
from tests.group_histories.requests import Request
from tests.group_histories.servers import Server

_POLL = 0.05
# Seconds that a request waits for others before it writes to Placement.
_MEETING = 1.0
# Seconds in which computes and the plugin's threads end what a command has begun.
_SETTLES = 45.0


class NovaHistory(CheckedHistory):
    """A whole Nova that is driven by commands."""

    cloud: NovaGroupCloud
    operations = nova_operations

    def __init__(self, cloud: NovaGroupCloud, topologies: Mapping[str, Any]) -> None:
        super().__init__(cloud, topologies)
        self.lock = cloud.lock
        self._steps: dict[str, Iterator[None]] = {}  # by request
        self._deadlines: dict[str, float] = {}
        # Of this command: where requests that are decided go, None if they are refused.
        self._decided: dict[str, Mapping[str, str] | None] = {}
        self._met: set[str] = set()  # requests
        self._is_meeting = False
        self._broken: Exception | None = None  # in a thread of Nova

    @contextmanager
    def watched(self) -> Iterator[None]:
        """See in this block what the plugin logs and what the scheduler does."""
        with super().watched(), watched_scheduler.watched(self):
            yield

    def _together(self, choice: random.Random, commands: list[str]) -> None:
        """Carry out commands at once, and check what must hold once all are over."""
        waiting = list(commands)
        self._decided.clear()
        self._met.clear()
        self._is_meeting = choice.random() < 0.5
        while waiting or self.running:
            # No time passes within a request: its own limit is not the subject here.
            most = 1 if waiting and waiting[0].startswith("time") else MOST_AT_ONCE
            if waiting and len(self.running) < most:
                self._start(waiting.pop(0), is_alone=len(commands) == 1)
            else:
                self._go_on()
                time.sleep(_POLL)
        self._check_in_time()

    def _send(self, request: Request) -> None:
        """Begin a request, which runs; Nova's threads wait until its uuids are known."""
        operation = nova_operations.REQUESTS[request.kind]
        with self.lock:
            steps = operation(self.cloud, *request.servers)
            next(steps)
        self._steps[request.name] = steps
        self._deadlines[request.name] = time.monotonic() + LIMIT

    def _made(self, names: Any) -> list[Server]:
        with self.lock:
            return super()._made(names)

    def _go_on(self) -> None:
        """Read the cloud, and let each request take its next step."""
        for request in list(self.running.values()):
            self.cloud.read()
            try:
                next(self._steps[request.name])
            except StopIteration:
                with self.lock:
                    del self.running[request.name]
                self._check_end(request)
            if time.monotonic() > self._deadlines[request.name]:
                raise checks.BrokenError(f"{request.name} does not end")
        if self._broken is not None:
            raise self._broken
        self._read_log()

    def _check_end(self, request: Request) -> None:
        """Check that all is as the scheduler has decided."""
        places = self._decided.get(request.name, {})
        if places is None:
            return
        found = {server.name: server.node for server in request.servers if server.is_there}
        if found != places:
            uuids = {server.uuid: server.name for server in request.servers}
            texts = nova_rows.faults(self.cloud.nova, list(uuids)).values()
            raise checks.BrokenError(
                f"{request.name} dies: decided {places}, found {found} "
                f"{[server.state for server in request.servers]}: {'; '.join(texts)}"
            )

    def _check_in_time(self) -> None:
        """Check what must hold once all is over that a command has begun."""
        deadline = time.monotonic() + _SETTLES
        while True:
            with self.lock:
                self.cloud.read()
                try:
                    return self._check()
                except checks.BrokenError:
                    if time.monotonic() > deadline:
                        raise
            time.sleep(_POLL)

    def _is_over(self, request: Request) -> bool:
        return request.name in self._decided

    def _named(self, text: str) -> str:
        for server in self.cloud.servers.values():
            text = text.replace(server.uuid or "no uuid", server.name)
        return text

    def request_of(self, uuid: str) -> Request | None:
        """Return the request that places an instance; None for VMs that were there earlier."""
        with self.lock:
            for request in self.running.values():
                if uuid in [server.uuid for server in request.servers]:
                    return request
        return None

    def begins(self, uuid: str) -> Request | None:
        """Return the same, and note what is true before it reads candidates."""
        with self.lock:
            request = self.request_of(uuid)
            if request is not None:
                self.cloud.read()
                request.observe(self.cloud)
            return request

    def meets(self, request: Request) -> None:
        """Wait, where it is drawn, until the others that run would write to Placement, too."""
        self._met.add(request.name)
        deadline = time.monotonic() + _MEETING
        while self._is_meeting and time.monotonic() < deadline:
            if set(self.running) <= self._met | set(self._decided):
                return
            time.sleep(0.01)

    def changes(self) -> None:
        """Note for each request what is true after a change."""
        try:
            self.cloud.read()
            self._note()
        except Exception as error:
            self._broken = self._broken or error

    def ends(self, request: Request | None, found: Mapping[str, str] | BaseException) -> None:
        """Check what the scheduler has decided: a node for each uuid, or an error."""
        if request is None:
            return
        with self.lock:
            self.changes()
            try:
                if isinstance(found, BaseException):
                    self._decided[request.name] = None
                    self._refuse(request, found)
                else:
                    names = {server.uuid: server.name for server in request.servers}
                    places = {names[uuid]: node for uuid, node in found.items()}
                    self._decided[request.name] = places
                    self._accept(request, places)
            except Exception as error:
                self._broken = self._broken or error
