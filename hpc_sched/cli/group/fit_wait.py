"""Waiting until a group fits: when the cloud is read again, and what is reported meanwhile."""

import argparse
import itertools
import math
import os
import platform
import random
import re
import sys
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass

from hpc_sched import clock, decimals, exceptions
from hpc_sched.cli.common import output
from hpc_sched.cli.common.argument_types import Argument, checked, number
from hpc_sched.cli.common.base_command import Table
from hpc_sched.cli.common.watched_cloud import WatchedCloud
from hpc_sched.snapshot import group_fit, request_builder, what_if
from hpc_sched.snapshot.cloud import Cloud
from hpc_sched.snapshot.request_builder import SnapshotRequest
from hpc_sched.topology import plurals

LONGEST = 1e8  # s of a wait, three years
SHORTEST_INTERVAL, INTERVAL, LONGEST_INTERVAL = 5.0, 30.0, 3600.0  # s
GROWTH = 1.5  # of the pause between two readings, while the answer is the same
MOST_GROWTH = 10.0
SPREAD = 0.2  # pauses are up to this part longer: commands that were started at once drift apart


@dataclass(frozen=True, slots=True)
class WaitTimes:
    """For how long a group is waited for, and how often the cloud is read; s."""

    longest: float
    interval: float = INTERVAL  # the first pause, and that after a change of the answer
    seed: str = ""  # of the spread: the same one gives the same pauses

    def pauses(self) -> Iterator[float]:
        """Yield the pauses between readings whose answers are the same, without an end."""
        draw = random.Random(f"fits {self.seed}")
        pause = self.interval
        while True:
            yield pause * draw.uniform(1, 1 + SPREAD)
            pause = min(pause * GROWTH, self.interval * MOST_GROWTH)


_times = checked(
    f"a number from 0 to {LONGEST:g}", decimals.number_in, lambda number: 0 <= number <= LONGEST
)
_intervals = checked(
    f"a number from {SHORTEST_INTERVAL:g} to {LONGEST_INTERVAL:g}",
    decimals.number_in,
    lambda number: SHORTEST_INTERVAL <= number <= LONGEST_INTERVAL,
)
ARGUMENTS: tuple[Argument, ...] = (
    number(
        "--wait",
        "with --count: return as soon as the group fits, and when this time is over at the latest; "
        "0: read once",
        _times,
        "SECONDS",
    ),
    number(
        "--interval",
        "with --wait: pause between two readings, which grows up to "
        f"{MOST_GROWTH:g} times while the answer is the same (default: {INTERVAL:g}, at least "
        f"{SHORTEST_INTERVAL:g})",
        _intervals,
        "SECONDS",
    ),
)

EPILOG = f"""\
--wait reads the cloud again until the group fits, and reserves nothing: others may take the room
before it is used. Pauses grow from --interval to {MOST_GROWTH:g} times that while the answer is the
same, and are no shorter than a reading takes; they differ a little, so that commands that were
started at once do not read at once. A call to Nova or Placement that fails is reported and made
again; one that lacks a right ends the command, and so does a group that would not fit on the same
hosts without any VM. The topology is read once. A snapshot is read again when its file has changed.
Each change of the answer is a line on standard error. Rows have Waited, in seconds, and Readings;
the table for people has them in the line above it.
"""

Answer = tuple[SnapshotRequest, group_fit.Fit]

# Of requests, and addresses of objects.
_IDS = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}|0x[0-9a-f]+")


@dataclass(frozen=True, slots=True)
class WaitedFit:
    """The last answer of a wait."""

    state: SnapshotRequest
    fit: group_fit.Fit
    seconds: float  # waited
    readings: int  # of the cloud, with those that failed
    never: str | None = None  # why it would not fit on the cloud without any VM either, or None

    @property
    def is_over(self) -> bool:
        """True if the time was over before the group fitted."""
        return self.fit.plan is None and self.never is None

    @property
    def sentence(self) -> str:
        """What the wait took, in words."""
        return f"waited {self.seconds:.0f} s, {plurals.text(self.readings, 'reading')}"

    def counted(self, table: Table) -> Table:
        """Return a table with what the wait took in each row."""
        columns, rows = table
        counts = round(self.seconds, 1), self.readings
        return (*columns, "Waited", "Readings"), [(*row, *counts) for row in rows]


class Answers:
    """Whether a group fits, by the newest reading of a cloud."""

    def __init__(
        self, read: Callable[[], Cloud], state_of: Callable[[Cloud], SnapshotRequest]
    ) -> None:
        """Read nothing yet.

        :param read: returns the cloud; the same object if it has not changed
        :param state_of: returns the group on a cloud
        """
        self._read, self._state_of = read, state_of
        self._cloud: Cloud | None = None

    def newest(self) -> Answer:
        """Read the cloud, and return the answer; it is computed for another cloud only."""
        if (cloud := self._read()) is not self._cloud:
            state = self._state_of(cloud)
            self._cloud, self._answer = cloud, (state, group_fit.fit(state))
        return self._answer


def never_fits(state: SnapshotRequest) -> str | None:
    """Return why a group would not fit on the same hosts, all up and without any VM, or None.

    Drained hosts stay drained. What the members of the group take is left out too, so that only a
    group that cannot fit for sure has a reason.
    """
    alone = request_builder.of(what_if.unoccupied(state.cloud), state.request)
    found = group_fit.fit(alone)
    return None if found.plan is not None else found.reason


def until_fit(answers: Answers, times: WaitTimes, line: output.StatusLine) -> WaitedFit:
    """Return the answer once the group fits, or the last one when the time is over.

    A reading that has begun is completed, and its answer counts; the last one begins when the time
    is over. A pause is no shorter than the reading before it took. A group that would not fit on
    the cloud without any VM is not waited for.

    :raises exceptions.ReadingError: if no reading has succeeded until then
    :raises exceptions.HPCSchedError: that no later reading can mend, such as for a missing right
    """
    now = clock.current.monotonic
    began, pauses, said = now(), times.pauses(), ""
    last: Answer | None = None
    for readings in itertools.count(1):
        read_at, is_first = now(), last is None
        failure: exceptions.ReadingError | None = None
        try:
            last = answers.newest()
        except exceptions.ReadingError as error:
            failure, text = error, f"{error}; it is read again"
        took = now() - read_at
        if failure is None:
            assert last is not None
            state, fit = last
            never = never_fits(state) if is_first and fit.plan is None else None
            if fit.plan is not None or never is not None:
                if readings > 1:
                    _say(line, now() - began, "fits" if never is None else fit.reason)
                return WaitedFit(state, fit, now() - began, readings, never)
            text = fit.reason or ""
        passed = now() - began
        # The same failure has another request id each time.
        if (alike := _IDS.sub("", text)) != said:
            said, pauses = alike, times.pauses()
            _say(line, passed, text)
        if passed >= times.longest:
            if last is None:
                assert failure is not None
                raise failure
            return WaitedFit(*last, passed, readings)
        pause = min(max(next(pauses), took), times.longest - passed)
        if line.in_place:
            line.show(
                f"waiting, {passed:.0f} of {times.longest:.0f} s, "
                f"{plurals.text(readings, 'reading')}, the next in {math.ceil(pause)} s"
            )
        clock.current.sleep(pause)
    raise AssertionError("itertools.count() ended")


def until_fit_in(
    args: argparse.Namespace, state_of: Callable[[Cloud], SnapshotRequest]
) -> WaitedFit:
    """Return what :func:`until_fit` does for the cloud and the times of a command's arguments."""
    # Other processes have other pauses.
    seed = f"{platform.node()} {os.getpid()}"
    with closing(output.StatusLine(sys.stderr)) as line:

        def progress(what: str) -> None:
            if line.in_place:
                line.show(f"reading {what}")

        watched = WatchedCloud(args, progress)
        times = WaitTimes(args.wait, args.interval or INTERVAL, seed)
        return until_fit(Answers(watched.read, state_of), times, line)


def _say(line: output.StatusLine, passed: float, text: str | None) -> None:
    """Write a line in place of the status, which :meth:`StatusLine.show` writes again."""
    line.close()
    output.say(f"{passed:.0f} s: {text}")
