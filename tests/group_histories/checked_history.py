"""A history that is checked: what its commands lead to, and what must hold on any cloud."""

from __future__ import annotations

import logging
import random
from abc import abstractmethod
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from typing import Any

from tests.group_histories import checks
from tests.group_histories.commands import Commands
from tests.group_histories.requests import Request, View, holds_others
from tests.group_histories.seen_cloud import SeenCloud

MOST_AT_ONCE = 3


class CheckedHistory(Commands):
    """A cloud that is driven by commands; ``lines`` says what has happened."""

    def __init__(self, cloud: SeenCloud, topologies: Mapping[str, Any]) -> None:
        super().__init__(cloud, topologies)
        self.commands: list[str] = []
        self.lines: list[str] = []
        self.warnings: list[str] = []  # of the plugin, since the last line
        self.errors: list[str] = []  # of the plugin
        self.outcomes: dict[str, int] = {}  # of requests: kind, and whether it was refused
        # Of this command: requests that have placed VMs, the group by then, and the nodes.
        self._placed: list[tuple[Request, View, Mapping[str, str]]] = []
        self._refused: set[str] = set()  # names of VMs

    def do(self, command: str) -> None:
        """Carry out a command.

        :raises checks.BrokenError: if something does not hold afterwards
        """
        self.commands.append(command)
        self.lines.append(f"> {command}")
        self._placed, self._refused = [], set()
        seed, separator, some = command.removeprefix("together ").partition(": ")
        if separator:
            self._together(random.Random(int(seed)), some.split("; "))
        else:
            self._together(random.Random(0), [command])

    @contextmanager
    def watched(self) -> Iterator[None]:
        """See what the plugin logs in this block."""
        handler, logger = _Log(self), logging.getLogger("hpc_sched")
        logger.addHandler(handler)
        try:
            yield
        finally:
            logger.removeHandler(handler)

    @abstractmethod
    def _together(self, choice: random.Random, commands: list[str]) -> None:
        """Carry out commands at once, and check what must hold once all are over."""

    @abstractmethod
    def _is_over(self, request: Request) -> bool:
        """True if what is true from now on does not matter to a request."""

    def _start(self, command: str, *, is_alone: bool) -> None:
        if not is_alone:
            self._say(f"- {command}")
        if not self.carry_out(command):
            self._say("not possible")
        self._observe()

    def _observe(self) -> None:
        """Note what is true now, and what the plugin has logged."""
        self._note()
        self._read_log()

    def _note(self) -> None:
        """Note for each request what is true now."""
        for request in self.running.values():
            others = [one for one in self.running.values() if one is not request]
            request.is_beside_unheld |= any(one.is_unheld for one in others)
            if request.rooms is not None and not self._is_over(request):
                request.observe(self.cloud)

    def _read_log(self) -> None:
        """Add what the plugin has logged to the lines; an error breaks the history."""
        for text in self.warnings:
            self._say(self._named(text))
        self.warnings.clear()
        if self.errors:
            raise checks.BrokenError(f"the plugin logs {self.errors[0]}")

    def _named(self, text: str) -> str:
        """Return a text with names in place of uuids."""
        return text

    def _refuse(self, request: Request, error: BaseException) -> None:
        """Check a request that has ended with an error."""
        self._count(f"{request.kind} refused")
        self._say(f"{request.name} fails: {type(error).__name__}: {error}")
        self._refused.update(server.name for server in request.servers)
        checks.check_refusal(self.cloud, request, error)

    def _accept(self, request: Request, places: Mapping[str, str]) -> None:
        """Check a request that has placed its VMs on some nodes."""
        self._count(request.kind)
        self._say(", ".join(f"{name} on {node}" for name, node in places.items()))
        self._placed.append((request, request.views[-1], places))
        checks.check_choice(self.cloud, request, places)
        checks.check_ranks(self.cloud, request, places)

    def _count(self, outcome: str) -> None:
        self.outcomes[outcome] = self.outcomes.get(outcome, 0) + 1

    def _check(self) -> None:
        """Check what must hold once all requests are over."""
        # What was claimed for others may have been claimed elsewhere since.
        last = {name: node for *_, places in self._placed for name, node in places.items()}
        for request, view, places in self._placed:
            holds = partial(holds_others, self.cloud, is_move=request.is_move)
            members = {
                name: last.get(name, node)
                for name, node in view.members.items()
                if name not in self._refused and holds(last.get(name, node))
            }
            seen = View(members, view.awaiting, view.taken)
            # What has died since holds nobody, and later requests may have gone elsewhere.
            alive = {name: node for name, node in places.items() if holds(node)}
            checks.check_constraints(self.cloud, request, seen, alive)
        checks.check_placement(self.cloud)
        checks.check_holds(self.cloud)

    def _say(self, text: str) -> None:
        self.lines.append(f"  {text}")


class _Log(logging.Handler):
    def __init__(self, history: CheckedHistory) -> None:
        super().__init__(logging.WARNING)
        self._history = history

    def emit(self, record: logging.LogRecord) -> None:
        text = f"{record.levelname}: {record.getMessage()}"
        if record.exc_info is not None and record.exc_info[0] is not None:
            text += f" ({record.exc_info[0].__name__}: {record.exc_info[1]})"
        self._history.warnings.append(text)
        if record.levelno >= logging.ERROR:
            self._history.errors.append(text)
