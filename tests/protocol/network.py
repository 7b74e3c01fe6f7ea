"""The network between Nova and Placement: what becomes of each call is said by the test."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from keystoneauth1 import exceptions as ksa_exceptions
from urllib3 import exceptions as urllib3_exceptions

from tests.protocol.actors import Actor, Call, Stage
from tests.protocol.placement_model import PlacementModel, Steps, finished

#: What becomes of a call, and what its sender gets.
FATES = {
    "ok": "it is made and answered",
    "lost": "it never arrives; no answer",
    "made": "it is made; no answer",
    "twice": "it is made twice; the second answer comes",
    "late": "no answer; it may come later",
    "inside": "no answer; it has begun and stops before one of its steps",
    "refused": "no connection",
    "begun": "it has begun to write, and its sender waits on",
}


@dataclass(eq=False)
class LateCall:
    """A call whose sender has given up, and that is not made yet."""

    call: Call
    steps: Steps | None = None  # None: it has not begun
    at: str = ""  # the next step


@dataclass(eq=False)
class Network:
    """Carries calls; remembers those that may come late."""

    placement: PlacementModel
    stage: Stage
    tell: Callable[[Call, Any], str]  # returns an answer to a call in words
    late: dict[str, LateCall] = field(default_factory=dict)
    # Calls that write at the moment, by who waits for them.
    begun: dict[Actor, Steps] = field(default_factory=dict)
    _number: int = 0

    def adapter(self) -> Adapter:
        """Return what a report client sends calls by."""
        return Adapter(self.stage)

    def carry(self, actor: Actor, fate: str, steps: int = 0) -> str:
        """Let a call have its fate, and its sender go on; return what has happened."""
        call = actor.waits_for
        assert isinstance(call, Call)
        assert fate in FATES, f"{fate}: expected one of {', '.join(FATES)}"
        begun = self.begun.pop(actor, None)
        assert begun is None or fate == "ok", "it is written already"
        if fate == "begun" or begun is not None:
            steps_left = begun or self._begun(call)
            answer = finished(steps_left, "write" if begun is None else None)
            if answer is None:
                self.begun[actor] = steps_left
                return "it writes"
            self.stage.resume(actor, answer)
            return self.tell(call, answer)
        if fate == "refused":
            self.stage.resume(actor, _refused())
            return "no connection"
        if fate in ("late", "inside"):
            self._number += 1
            name = f"t{self._number}"
            late = self.late[name] = LateCall(call)
            said = f"no answer; {name} is under way"
            if fate == "inside":
                late.steps = self._begun(call)
                said = f"no answer; {name} has begun"
                if done := self.advance(name, steps + 1):
                    said = f"no answer, which would be: {done}"
                else:
                    said += f", next: {late.at}"
            self.stage.resume(actor, _broken())
            return said
        if fate == "lost":
            self.stage.resume(actor, _broken())
            return "it is lost; no answer"
        answer = finished(self._begun(call))
        if fate == "twice":
            answer = finished(self._begun(call))
        said = self.tell(call, answer)
        if fate == "made":
            self.stage.resume(actor, _broken())
            return f"no answer, which would be: {said}"
        self.stage.resume(actor, answer)
        return said + (", to the second of two" if fate == "twice" else "")

    def abandon(self, actor: Actor) -> None:
        """Let a call that writes at the moment go on without its sender."""
        steps, call = self.begun.pop(actor, None), actor.waits_for
        if steps is not None:
            assert isinstance(call, Call)
            self._number += 1
            self.late[f"t{self._number}"] = LateCall(call, steps, "write")

    def advance(self, name: str, steps: int | None = None) -> str:
        """Let a late call go on by some steps, or to its end; return its answer if it is over."""
        late = self.late[name]
        if late.steps is None:
            late.steps = self._begun(late.call)
        try:
            while steps is None or steps > 0 or self._is_open(late):
                late.at = next(late.steps)
                steps = None if steps is None else steps - 1
        except StopIteration as end:
            del self.late[name]
            return self.tell(late.call, end.value)
        return ""

    @staticmethod
    def _is_open(late: LateCall) -> bool:
        """True if a late call of one consumer is at a step where nothing can fence it.

        Placement has looked for the consumer and makes its record next: it takes one that was made
        in between for its own, whatever its generation. With more consumers it finds the others.
        """
        return late.at.startswith("make") and len(late.call.body or ()) == 1

    def _begun(self, call: Call) -> Steps:
        return self.placement.begin(call.method, call.path, call.body, call.version)

    def drop(self, name: str) -> None:
        """Lose a late call that has not begun."""
        assert self.late[name].steps is None, f"{name} has begun"
        del self.late[name]


class Adapter:
    """The HTTP methods of a keystoneauth adapter, as Nova's report client calls them."""

    def __init__(self, stage: Stage) -> None:
        self._stage = stage
        self.additional_headers: dict[str, str] = {}

    def get(self, url: str, microversion: str | None = None, **_: Any) -> Any:
        """Send GET."""
        return self._send("GET", url, microversion)

    def post(self, url: str, json: Any = None, microversion: str | None = None, **_: Any) -> Any:
        """Send POST."""
        return self._send("POST", url, microversion, json)

    def put(self, url: str, json: Any = None, microversion: str | None = None, **_: Any) -> Any:
        """Send PUT."""
        # Nova claims so; the plugin writes no consumer alone.
        is_plugins = "/allocations/" not in url
        return self._send("PUT", url, microversion, json, is_plugins=is_plugins)

    def delete(self, url: str, microversion: str | None = None, **_: Any) -> Any:
        """Send DELETE."""
        return self._send("DELETE", url, microversion, is_plugins=False)

    def _send(
        self,
        method: str,
        url: str,
        version: str | None,
        json: Any = None,
        *,
        is_plugins: Any = None,
    ) -> Any:
        # Nova reads and writes allocations by earlier versions.
        if is_plugins is None:
            is_plugins = version in ("1.36", "1.38")
        return self._stage.wait(Call(method, url, json, is_plugins, version or "1.36"))


def _broken() -> Exception:
    return ksa_exceptions.ConnectFailure("the connection is broken")


def _refused() -> Exception:
    error = ksa_exceptions.ConnectFailure("connection refused")
    error.__cause__ = urllib3_exceptions.NewConnectionError(None, "connection refused")
    return error
