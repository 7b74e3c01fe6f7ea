"""A client whose calls Placement in memory answers at once, but for some that fail."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from unittest import mock

from keystoneauth1 import exceptions as ksa_exceptions
from nova.scheduler.client import report

from tests.protocol.placement_model import CONCURRENT, PlacementModel, error


class DirectAdapter:
    """The HTTP methods of a keystoneauth adapter."""

    def __init__(self, placement: PlacementModel) -> None:
        self.placement = placement
        # What becomes of the next POSTs: "lost", "made" (both without an answer) or "conflict".
        self.fates: list[str] = []
        self.unanswered = 0  # GETs from now on without an answer
        self.calls: list[str] = []  # method and path of all
        self.bodies: list[Any] = []  # of all POSTs
        self.additional_headers: dict[str, str] = {}

    def get(self, url: str, microversion: str | None = None, **_: Any) -> Any:
        """Send GET."""
        self.calls.append(f"GET {url}")
        if self.unanswered:
            self.unanswered -= 1
            raise ksa_exceptions.ConnectFailure("the connection is broken")
        return self.placement.send("GET", url, None, microversion or "1.36")

    def post(self, url: str, json: Any = None, microversion: str | None = None, **_: Any) -> Any:
        """Send POST."""
        self.calls.append(f"POST {url}")
        self.bodies.append(json)
        fate = self.fates.pop(0) if self.fates else "ok"
        if fate == "conflict":
            return error(409, "Another thread concurrently updated the provider", CONCURRENT)
        answer = (
            self.placement.send("POST", url, json, microversion or "1.36")
            if fate != "lost"
            else None
        )
        if fate != "ok":
            raise ksa_exceptions.ConnectFailure("the connection is broken")
        return answer

    def put(self, url: str, json: Any = None, **_: Any) -> Any:
        """Send PUT."""
        self.calls.append(f"PUT {url}")
        return self.placement.send("PUT", url, json)

    def count(self, method: str) -> int:
        """Return the number of calls."""
        return sum(call.startswith(method) for call in self.calls)


@contextmanager
def connected(placement: PlacementModel) -> Iterator[DirectAdapter]:
    """Let Nova's report client send its calls to a Placement in memory."""
    adapter = DirectAdapter(placement)
    client = report.SchedulerReportClient(adapter=adapter)
    with mock.patch.object(report, "PLACEMENTCLIENT", client):
        yield adapter
