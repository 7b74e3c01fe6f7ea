"""Runs of histories: drawn by a seed, or replayed; those that fail are shortened."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from nova.conf import CONF

from tests.group_histories import fabrics
from tests.group_histories.beginnings import FABRICS_TO_DRAW
from tests.group_histories.checked_history import CheckedHistory
from tests.group_histories.cloud import GroupCloud
from tests.group_histories.drawing import Drawing
from tests.group_histories.history import History
from tests.protocol.nova_model import NovaModel

_HOLD_TIME = 300  # seconds


@dataclass(frozen=True)
class Failure:
    """A history that fails."""

    error: str
    commands: Sequence[str]
    lines: Sequence[str]

    @property
    def kind(self) -> str:
        """What fails, without names."""
        for text in KINDS:
            if text in self.error:
                return text
        return self.error.partition(":")[0]

    def __str__(self) -> str:
        return "\n".join([self.error, "", *self.lines])


KINDS = (
    "without a reason",
    "and fits",
    "(guarantees)",
    "(one root)",
    "(one leaf)",
    "breaks",
    "holds",
    "dies",
)


@dataclass(frozen=True)
class Runs:
    """Runs histories, each on a cloud of its own."""

    begin: Callable[[], CheckedHistory]
    #: Names of fabrics to draw from
    fabrics: Sequence[str] = FABRICS_TO_DRAW

    def drawn(self, seed: int) -> Failure | None:
        """Return how the history of a seed fails, or None."""
        history = self.begin()
        drawing = Drawing(seed, history.cloud, self.fabrics)
        return self._run(history, drawing.commands())

    def replayed(self, commands: Iterable[str]) -> Failure | None:
        """Return how a history of some commands fails, or None."""
        return self._run(self.begin(), commands)

    def lines_of(self, commands: Iterable[str]) -> Sequence[str]:
        """Return what has happened in a history that must not fail."""
        history = self.begin()
        failure = self._run(history, commands)
        assert failure is None, str(failure)
        return history.lines

    def _run(self, history: CheckedHistory, commands: Iterable[str]) -> Failure | None:
        with history.watched():
            try:
                for command in commands:
                    history.do(command)
            except Exception as error:
                text = f"{type(error).__name__}: {error}"
                return Failure(text, history.commands, history.lines)
        return None

    def shortest(self, failure: Failure, most: int | None = None) -> Failure:
        """Return a failure of the same kind whose commands are all needed.

        :param most: number of replays, after which the shortest that was found is returned
        """
        is_shorter, replays = True, itertools.count(1)
        while is_shorter:
            is_shorter = False
            for fewer in _shortened(failure.commands):
                if most is not None and next(replays) > most:
                    return failure
                found = self.replayed(fewer)
                if found is not None and found.kind == failure.kind:
                    failure, is_shorter = found, True
                    break
        return failure


def _shortened(commands: Sequence[str]) -> Iterator[list[str]]:
    """Yield the same commands without one of them, the last ones first, or with a smaller one."""
    yield from ([fewer, *commands[1:]] for fewer in _smaller(commands[0]))
    for number in range(len(commands) - 1, 0, -1):
        before, after = commands[:number], commands[number + 1 :]
        yield [*before, *after]
        head, separator, some = commands[number].partition(": ")
        parts = some.split("; ")
        if separator:
            yield [*before, *parts, *after]
            for left_out in range(len(parts)):
                fewer = [part for at, part in enumerate(parts) if at != left_out]
                text = f"{head}: {'; '.join(fewer)}" if len(fewer) > 1 else fewer[0]
                yield [*before, text, *after]
        yield from ([*before, fewer, *after] for fewer in _smaller(commands[number]))


def _smaller(command: str) -> Iterator[str]:
    """Yield the same command with fewer VMs, nodes or wishes."""
    name, *arguments = command.split(" ")
    if name in ("create", "placed") and "," in arguments[0]:
        vms = arguments[0].split(",")
        yield from (f"{name} {','.join(vms[:n] + vms[n + 1 :])}" for n in range(len(vms)))
    if name == "group":
        for number in range(2, len(arguments)):
            yield " ".join([name, *arguments[:number], *arguments[number + 1 :]])
        if arguments[1] not in ("none", "soft-affinity"):
            yield " ".join([name, arguments[0], "soft-affinity", *arguments[2:]])
    if name == "fabric":
        for number in range(1, len(arguments)):
            yield " ".join([name, *arguments[:number], *arguments[number + 1 :]])
            at, _, sizes = arguments[number].partition("=")
            for place, size in enumerate(sizes.split(",")):
                for less in range(int(size)):
                    numbers = sizes.split(",")
                    numbers[place] = str(less)
                    fewer = [f"{at}={','.join(numbers)}"]
                    yield " ".join([name, *arguments[:number], *fewer, *arguments[number + 1 :]])


@contextmanager
def opened(begin: Callable[[], NovaModel], folder: Path) -> Iterator[Runs]:
    """Yield what runs histories."""
    with fabrics.loaded(folder) as topologies:
        CONF.set_override("follower_hold_time", _HOLD_TIME, "hpc_sched")

        def begin_history() -> History:
            model = begin()
            return History(GroupCloud(model.rows, model.schedulers), topologies)

        try:
            yield Runs(begin_history)
        finally:
            CONF.set_override("follower_hold_time", 0, "hpc_sched")
