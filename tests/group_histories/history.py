"""A history on a cloud in memory: each call to Placement is answered when it is its turn."""

from __future__ import annotations

import random
from collections.abc import Mapping
from typing import Any

from hpc_sched.nova_glue.claim import claim_followup, hold_followup
from tests.group_histories import call_line, operations
from tests.group_histories.checked_history import MOST_AT_ONCE, CheckedHistory
from tests.group_histories.cloud import GroupCloud
from tests.group_histories.requests import Request
from tests.protocol.actors import Actor, Call, Wait
from tests.protocol.nova_model import Scheduler

# Calls that a request makes before another one goes on; 0: all.
_TURNS = (1, 1, 1, 2, 3, 5, 8, 0)


class History(CheckedHistory):
    """A cloud in memory that is driven by commands."""

    cloud: GroupCloud
    operations = operations

    def __init__(self, cloud: GroupCloud, topologies: Mapping[str, Any]) -> None:
        super().__init__(cloud, topologies)
        self._number = 0  # of requests

    def _together(self, choice: random.Random, commands: list[str]) -> None:
        """Carry out commands at once, and check what must hold once all are over."""
        waiting = list(commands)
        while waiting or self.running:
            able = [one for one in self.running.values() if self._can_go_on(one)]
            # No time passes within a request: its own limit is not the subject here.
            most = 1 if waiting and waiting[0].startswith("time") else MOST_AT_ONCE
            may_start = bool(waiting) and len(self.running) < most
            if may_start and (not able or choice.random() < 0.3):
                self._start(waiting.pop(0), is_alone=len(commands) == 1)
            elif able:
                is_one = len(able) == 1 and not waiting
                self._go_on(choice.choice(able), 0 if is_one else choice.choice(_TURNS))
            else:
                self._pass_time()
            for request in [one for one in self.running.values() if self._is_over(one)]:
                del self.running[request.name]
                self._end(request)
            if choice.random() < 0.5:
                self._look()
        self._look()
        self._check()

    def _send(self, request: Request) -> None:
        """Begin a request, which runs."""
        processes = list(self.cloud.schedulers.values())
        process = processes[self._number % len(processes)]
        self._number += 1
        request.actor = self.cloud.stage.start(
            request.name, process, lambda: self._serve(request, process)
        )

    def _serve(self, request: Request, process: Scheduler) -> None:
        if request.kind == "create":
            operations.create(self.cloud, process, request.servers)
        else:
            operations.MOVES[request.kind](self.cloud, process, request.servers[0])

    def _is_over(self, request: Request) -> bool:
        return _actor(request).is_over

    def _can_go_on(self, request: Request) -> bool:
        return self.cloud.stage.is_ready(_actor(request))

    def _go_on(self, request: Request, calls: int) -> None:
        """Let a request make some calls, 0: all that it can."""
        actor, number = _actor(request), 0
        while not actor.is_over and self._can_go_on(request) and (number < calls or not calls):
            number += 1
            call = actor.waits_for
            if isinstance(call, Wait):
                self.cloud.stage.resume(actor)
            else:
                assert isinstance(call, Call)
                if request.rooms is None and call.path.startswith("/allocation_candidates"):
                    request.observe(self.cloud)
                self._answer(actor, call)
            self._observe()

    def _answer(self, actor: Actor, call: Call) -> None:
        text = call_line.text(self.cloud, call)
        said = self.cloud.network.carry(actor, "ok")
        if call.method != "GET":
            self._say(f"{actor.name}: {text} {said}")

    def _named(self, text: str) -> str:
        return call_line.named(text)

    def _pass_time(self) -> None:
        """Let time pass until a request can go on."""
        waits = [_actor(request).waits_for for request in self.running.values()]
        self.cloud.stage.now = min(wait.until for wait in waits if isinstance(wait, Wait))

    def _look(self) -> None:
        """Let the threads of the schedulers look at claims, and at moves that are over."""
        for name, process in self.cloud.schedulers.items():
            for is_due, look in (
                (process.moves, hold_followup.look),
                (process.followed and not self.running, claim_followup.look),
            ):
                if is_due:
                    actor = self.cloud.stage.start(f"{name} looks", process, look)
                    self._run(actor)
                    assert actor.error is None, f"a look fails: {actor.error!r}"

    def _run(self, actor: Actor) -> None:
        while not actor.is_over:
            if isinstance(actor.waits_for, Wait):
                self.cloud.stage.now = max(self.cloud.stage.now, actor.waits_for.until)
                self.cloud.stage.resume(actor)
            else:
                assert isinstance(actor.waits_for, Call)
                self._answer(actor, actor.waits_for)

    def _end(self, request: Request) -> None:
        """Check a request that is over."""
        error = _actor(request).error
        if error is not None:
            self._refuse(request, error)
        else:
            self._accept(request, {one.name: one.node or "" for one in request.servers})


def _actor(request: Request) -> Actor:
    assert request.actor is not None
    return request.actor
