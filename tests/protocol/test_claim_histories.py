"""Drawn histories of claims: schedulers, requests, faults; what must hold after each step.

A history that fails ends with its commands and what they led to; ``transcripts`` says how to replay
it.
"""

from __future__ import annotations

import gc
import logging
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, seed, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    rule,
    run_state_machine_as_test,
)

from tests.protocol import nova_model, world
from tests.protocol.actors import Actor, Call
from tests.protocol.nova_model import HOSTS, NovaModel

# Calls of one request that fail: with more of them its time to settle what is unknown is over.
MOST_FAULTS = 4
MOST_REQUESTS = 3
STEPS_OF_A_HISTORY = 14
# The VMs of each request; a request is called after its first one.
LETTERS = ("adg", "beh", "cfi")
SCHEDULERS = ("s1", "s2", "s3")
# Placement's steps at which a transaction of some consumers stops.
STEPS = range(7)
FATES = ("late", "late", "inside", "inside", "made", "lost", "twice", "refused")
# The steps that a late call goes on by; to its end.
DELIVERIES = ("", "", "drop", "drop", 1, 2, 3, 4, 5, 6)

Among = Callable[[Sequence[Any]], Any]


class Choices:
    """Choices by drawn bytes, one each: strategies take longer than the history that they draw."""

    def __init__(self, drawn: bytes) -> None:
        self._drawn = iter(drawn)

    def among(self, options: Sequence[Any]) -> Any:
        """Return one of some options; the first one as the simplest."""
        return options[next(self._drawn) % len(options)]


class ClaimHistories(RuleBasedStateMachine):
    """Histories on four hosts."""

    begin = None  # returns a cloud in memory

    def __init__(self) -> None:
        """Begin a cloud."""
        super().__init__()
        self.stack = ExitStack()
        self.world = self.stack.enter_context(world.watched(world.World(type(self).begin())))
        self.created = 0
        self.faults: dict[str, int] = {}

    def do(self, command: str) -> None:
        """Carry out a command; say in a failure what has happened."""
        try:
            self.world.do(command)
        except Exception as error:
            error.add_note("\n".join(self.world.lines))
            raise

    @initialize(
        sizes=st.lists(st.integers(1, 2), min_size=4, max_size=4),
        others=st.integers(0, 2),
        retried=st.integers(0, 3),
    )
    def hosts(self, sizes: list[int], others: int, retried: int) -> None:
        """Begin with some rooms and VMs of others; in one of four, Placement repeats conflicts."""
        self.do("hosts " + " ".join(map(str, sizes)))
        for name, host in zip(("y1", "z1")[:others], HOSTS[:others], strict=True):
            self.do(f"other {name} {host}")
        self.do("group g")
        self.do("group h anti-affinity")
        if retried == 3:
            self.do("conflicts retried")

    @rule(drawn=st.binary(min_size=8, max_size=8))
    def act(self, drawn: bytes) -> None:
        """Do one of the things that can happen now, the likely ones oftener than others.

        One rule: of several, hypothesis would leave some out of each history, and spend most steps
        on what can always happen.
        """
        possible = [
            action
            for weight, action, is_possible in (
                ((8, 2, 1, 0)[self.created], self.create, self.created < MOST_REQUESTS),
                (5, self.go_on, self.world.actors),
                (9, self.fail_transaction, self.transactions),
                (9, self.begin_transaction, self.is_retrying and self.transactions),
                (1, self.fail_read, self.reads),
                (1, self.fail_nova, self.claimed_by_nova),
                (3, self.deliver, self.late),
                (1, self.look, self.created),
                (1, self.change, self.placed),
                (1, self.delete, self.created),
                (1, self.end_process, self.created),
            )
            if is_possible
            for _ in range(weight)
        ]
        choices = Choices(drawn)
        choices.among(possible)(choices.among)

    def create(self, among: Among) -> None:
        """Ask for VMs of a group, perhaps up to their claim."""
        number, count = self.created, among((1, 2, 3))
        self.created += 1
        # Such that the uuids of several requests alternate, as they do in a cloud.
        vms = ",".join(f"{letter}{n}" for n, letter in enumerate(LETTERS[number][:count], 1))
        letter = LETTERS[number][0]
        group, scheduler = among("ggh"), among(SCHEDULERS)
        wish = among(("", " require=leaf"))
        self.do(f"create {vms} {scheduler} group={group}{wish}")
        if among((True, False)) and letter in self.world.actors:
            self.do(f"claim {letter}")

    def go_on(self, among: Among) -> None:
        """Let one go on without a fault."""
        how = among(("run", "step", "claim", "claim"))
        self.do(f"{how} {among(sorted(self.world.actors))}")

    def fail_transaction(self, among: Among) -> None:
        """Let a transaction fail, perhaps the next one of its request too."""
        name, fate = among(self.transactions), among(FATES)
        self.faults[name] = self.faults.get(name, 0) + 1
        steps = f" {among(STEPS)}" if fate == "inside" else ""
        self.do(f"step {name} {fate}{steps}")
        if among((True, False)) and name in self.world.actors:
            self.do(f"claim {name}")

    def begin_transaction(self, among: Among) -> None:
        """Let a transaction begin to write: others may come in between."""
        self.do(f"step {among(self.transactions)} begun")

    def fail_read(self, among: Among) -> None:
        """Let a read fail."""
        name = among(self.reads)
        self.faults[name] = self.faults.get(name, 0) + 1
        self.do(f"step {name} {among(('lost', 'refused'))}")

    def fail_nova(self, among: Among) -> None:
        """Let a call of Nova's claim fail: it goes on to the next host."""
        name = among(self.claimed_by_nova)
        self.faults[name] = self.faults.get(name, 0) + 1
        self.do(f"step {name} lost")

    def deliver(self, among: Among) -> None:
        """Let a late call come, or go on, or be lost."""
        name, how = among(self.late), among(DELIVERIES)
        if how == "drop" and self.world.nova.network.late[name].steps is None:
            self.do(f"drop {name}")
        else:
            self.do(f"deliver {name} {how if how != 'drop' else ''}".strip())

    def look(self, among: Among) -> None:
        """Let time pass until a scheduler looks at its claims, or for those of dead requests."""
        scheduler = among(SCHEDULERS)
        if scheduler not in self.world.looks or self.world.looks[scheduler].is_over:
            # A request has no more than ten seconds, and nothing comes later than in two minutes.
            most = 1 if self.world.actors else 2 if self.late else 3
            self.do(f"time {among((1, 20, 130)[:most])}")
            self.do(f"{among(('look', 'scan'))} {scheduler}")

    def change(self, among: Among) -> None:
        """Move or delete a VM, or let its build fail."""
        name = among(self.placed)
        what = among(("retry", "delete", "evacuate", "migrate", "unshelve"))
        if (
            what in ("retry", "unshelve", "migrate")
            and nova_model.uuid_of(name) in self.claimed_late
        ):
            # A limit of the protocol: what comes when Nova has taken the only instance of a request
            # out of Placement, to place it again, is taken for Nova's own.
            return
        by = "" if what in ("retry", "delete") else f" {among(SCHEDULERS)}"
        self.do(f"{what} {name}{by}")

    def delete(self, among: Among) -> None:
        """Delete a VM that is scheduled, or in ERROR, or a group."""
        self.do(among([*(f"delete {vm}" for vm in self.scheduled), "ungroup h"]))

    def end_process(self, among: Among) -> None:
        """End a scheduler."""
        self.do(f"{among(('restart', 'kill'))} {among(SCHEDULERS)}")

    def teardown(self) -> None:
        """Let all go on to its end."""
        try:
            self.do("end")
        finally:
            self.stack.close()

    @property
    def transactions(self) -> list[str]:
        """What waits for an answer to a transaction, and may still get none."""
        begun = self.world.nova.network.begun
        return self._failing(lambda actor: world.is_transaction(actor) and actor not in begun)

    @property
    def is_retrying(self) -> bool:
        """True if Placement repeats what others got in the way of."""
        return self.world.placement.is_retrying

    @property
    def reads(self) -> list[str]:
        """What waits for an answer to a read, and may still get none."""
        return self._failing(_reads)

    @property
    def claimed_by_nova(self) -> list[str]:
        """The requests for new VMs that wait for an answer to a call of Nova's claim."""
        return [name for name in self._failing(_claims) if name.isalpha()]

    def _failing(self, waits: Callable[[Actor], bool]) -> list[str]:
        return sorted(
            name
            for name, actor in self.world.actors.items()
            if waits(actor) and self.faults.get(name, 0) < MOST_FAULTS
        )

    @property
    def late(self) -> list[str]:
        """The late calls."""
        return sorted(self.world.nova.network.late)

    @property
    def claimed_late(self) -> set[str]:
        """The consumers that late calls write."""
        late = self.world.nova.network.late.values()
        return {uuid for one in late if one.call.method == "POST" for uuid in one.call.body}

    @property
    def placed(self) -> list[str]:
        """The VMs that run, and that nothing happens to."""
        return sorted(
            vm.name
            for vm in self.world.nova.vms.values()
            if vm.state == "active" and vm.host and vm.group and vm.name not in self.world.actors
        )

    @property
    def scheduled(self) -> list[str]:
        """The VMs without a host, and that nothing happens to."""
        return sorted(
            vm.name
            for vm in self.world.nova.vms.values()
            if vm.state in ("scheduling", "error") and vm.name not in self.world.actors
        )


def _reads(actor: Actor) -> bool:
    call = actor.waits_for
    return isinstance(call, Call) and call.is_plugins and call.method == "GET"


def _claims(actor: Actor) -> bool:
    call = actor.waits_for
    of_consumer = isinstance(call, Call) and call.path.startswith("/allocations/")
    return of_consumer and not call.is_plugins and call.method in ("GET", "PUT")


@pytest.fixture(scope="module")
def histories(begin: Callable[[], NovaModel]) -> Iterator[type[RuleBasedStateMachine]]:
    # What is there already does not end with a history: to search it for cycles takes long.
    gc.collect()
    gc.freeze()
    ClaimHistories.begin = staticmethod(begin)
    # pytest would keep each line, with the exceptions and all that these refer to.
    logger = logging.getLogger("hpc_sched")
    logger.propagate = False
    yield ClaimHistories
    logger.propagate = True
    gc.unfreeze()


def check(histories: type[ClaimHistories], number: int, start: int = 0) -> None:
    """Check some histories; a failing one is shrunk and shown.

    :param start: of the random numbers
    """
    run_state_machine_as_test(
        seed(start)(histories),
        settings=settings(
            max_examples=number,
            stateful_step_count=STEPS_OF_A_HISTORY,
            database=None,
            deadline=None,
            phases=(Phase.generate, Phase.shrink),
            suppress_health_check=list(HealthCheck),
        ),
    )


def test_in_100_histories_nothing_is_left_doubled_or_refused(histories):
    check(histories, 100)


@pytest.mark.ci
def test_in_2000_histories_nothing_is_left_doubled_or_refused(histories):
    check(histories, 2000)


@pytest.mark.nightly("protocol", "100,000 histories take most of an hour")
@pytest.mark.parametrize("start", range(1, 11))
def test_in_100000_histories_nothing_is_left_doubled_or_refused(histories, start):
    check(histories, 10_000, start)
