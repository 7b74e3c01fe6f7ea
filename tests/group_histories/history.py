"""A history: commands, what they lead to, and what must hold."""

from __future__ import annotations

import logging
import random
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any

from hpc_sched.nova_glue.claim import claim_followup, hold_followup
from tests.group_histories import call_line, checks
from tests.group_histories.cloud import GroupCloud
from tests.group_histories.commands import Commands
from tests.group_histories.requests import Request, View, holds_others
from tests.protocol.actors import Actor, Call, Wait

MOST_AT_ONCE = 3
# Calls that a request makes before another one goes on; 0: all.
_TURNS = (1, 1, 1, 2, 3, 5, 8, 0)

# A request that has placed its VMs, the group by then, and the nodes.
_Ended = tuple[Request, View, Mapping[str, str]]


class History(Commands):
    """A cloud in memory, driven by commands; ``lines`` says what has happened."""

    def __init__(self, cloud: GroupCloud, topologies: Mapping[str, Any]) -> None:
        super().__init__(cloud, topologies)
        self.commands: list[str] = []
        self.lines: list[str] = []
        self.warnings: list[str] = []  # of the plugin, since the last line
        self.errors: list[str] = []  # of the plugin
        self.outcomes: dict[str, int] = {}  # of requests: kind, and whether it was refused

    def do(self, command: str) -> None:
        """Carry out a command.

        :raises checks.BrokenError: if something does not hold afterwards
        """
        self.commands.append(command)
        self.lines.append(f"> {command}")
        seed, separator, some = command.removeprefix("together ").partition(": ")
        if separator:
            self._together(random.Random(int(seed)), some.split("; "))
        else:
            self._together(random.Random(0), [command])

    def _together(self, choice: random.Random, commands: list[str]) -> None:
        """Carry out commands at once, and check what must hold once all are over."""
        waiting, ended, refused = list(commands), list[_Ended](), set[str]()
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
            for request in [one for one in self.running.values() if _actor(one).is_over]:
                del self.running[request.name]
                self._end(request, ended, refused)
            if choice.random() < 0.5:
                self._look()
        self._look()
        self._check(ended, refused)

    def _start(self, command: str, *, is_alone: bool) -> None:
        if not is_alone:
            self._say(f"- {command}")
        if not self.carry_out(command):
            self._say("not possible")
        self._observe()

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

    def _observe(self) -> None:
        """Note for each request what is true now."""
        for request in self.running.values():
            others = [one for one in self.running.values() if one is not request]
            request.is_beside_unheld |= any(one.is_unheld for one in others)
            if request.rooms is not None and not _actor(request).is_over:
                request.observe(self.cloud)
        for text in self.warnings:
            self._say(call_line.named(text))
        self.warnings.clear()
        if self.errors:
            raise checks.BrokenError(f"the plugin logs {self.errors[0]}")

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

    def _end(self, request: Request, ended: list[_Ended], refused: set[str]) -> None:
        """Check a request that is over."""
        error = _actor(request).error
        outcome = f"{request.kind} refused" if error is not None else request.kind
        self.outcomes[outcome] = self.outcomes.get(outcome, 0) + 1
        if error is not None:
            self._say(f"{request.name} fails: {type(error).__name__}: {error}")
            refused.update(server.name for server in request.servers)
            checks.check_refusal(self.cloud, request, error)
            return
        places = {server.name: server.node or "" for server in request.servers}
        self._say(", ".join(f"{name} on {node}" for name, node in places.items()))
        ended.append((request, request.views[-1], places))
        checks.check_choice(self.cloud, request, places)

    def _check(self, ended: Sequence[_Ended], refused: set[str]) -> None:
        """Check what must hold once all requests are over."""
        # What was claimed for others may have been claimed elsewhere since.
        last = {name: node for *_, places in ended for name, node in places.items()}
        for request, view, places in ended:
            holds = partial(holds_others, self.cloud, is_move=request.is_move)
            members = {
                name: last.get(name, node)
                for name, node in view.members.items()
                if name not in refused and holds(last.get(name, node))
            }
            seen = View(members, view.awaiting, view.taken)
            # What has died since holds nobody, and later requests may have gone elsewhere.
            alive = {name: node for name, node in places.items() if holds(node)}
            checks.check_constraints(self.cloud, request, seen, alive)
        checks.check_placement(self.cloud)
        checks.check_holds(self.cloud)

    def _say(self, text: str) -> None:
        self.lines.append(f"  {text}")


def _actor(request: Request) -> Actor:
    assert request.actor is not None
    return request.actor


class _Log(logging.Handler):
    def __init__(self, history: History) -> None:
        super().__init__(logging.WARNING)
        self._history = history

    def emit(self, record: logging.LogRecord) -> None:
        text = f"{record.levelname}: {record.getMessage()}"
        if record.exc_info is not None and record.exc_info[0] is not None:
            text += f" ({record.exc_info[0].__name__}: {record.exc_info[1]})"
        self._history.warnings.append(text)
        if record.levelno >= logging.ERROR:
            self._history.errors.append(text)


@contextmanager
def logged(history: History) -> Iterator[History]:
    """Let a history see what the plugin logs."""
    handler, logger = _Log(history), logging.getLogger("hpc_sched")
    logger.addHandler(handler)
    try:
        yield history
    finally:
        logger.removeHandler(handler)
