"""What Placement in memory answers."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

Body = Mapping[str, Any]

CONCURRENT, UNDEFINED = "placement.concurrent_update", "placement.undefined_code"


@dataclass(frozen=True, slots=True)
class Response:
    """What a client gets."""

    status_code: int
    body: Any = None

    def __bool__(self) -> bool:
        return self.status_code < 400

    def json(self) -> Any:
        """Return the body; one of its own for each call, as it is parsed each time."""
        return json.loads(json.dumps(self.body))

    @property
    def text(self) -> str:
        """The body as text."""
        return "" if self.body is None else json.dumps(self.body)


def error(status: int, detail: str, code: str = UNDEFINED) -> Response:
    """Return an answer in Placement's form."""
    return Response(status, {"errors": [{"status": status, "code": code, "detail": detail}]})
