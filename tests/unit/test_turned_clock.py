"""The clock that tests turn: its time passes only while all threads wait by it."""

import math
import re
import sys
import threading
import time
import types
from concurrent import futures
from pathlib import Path

import pytest

import hpc_sched
from hpc_sched import clock
from tests import turned_clock as module
from tests.turned_clock import (
    HangingTestError,
    StandingClock,
    SteppedClock,
    TurnedClock,
    installed,
    turned,
)


def test_a_sleep_takes_the_time_of_the_clock_alone(turned_clock: TurnedClock):
    began, unix = clock.current.monotonic(), clock.current.unix_time()
    clock.current.sleep(86_400)
    assert clock.current.monotonic() - began == 86_400
    assert clock.current.unix_time() - unix == 86_400
    assert clock.current.process_time() == 0


def test_threads_wake_in_the_order_of_their_times(turned_clock: TurnedClock):
    seen: list[float] = []

    def note(seconds: float) -> None:
        turned_clock.sleep(seconds)
        seen.append(seconds)

    turned_clock.results([turned_clock.started(note, seconds) for seconds in (30, 10, 40, 20)])
    assert seen == [10, 20, 30, 40]


def test_no_time_passes_while_a_thread_works(turned_clock: TurnedClock):
    go_on = threading.Event()
    began = turned_clock.monotonic()
    working = turned_clock.started(go_on.wait)  # by no clock
    waiting = turned_clock.started(turned_clock.wait_for_futures, [working], 1.0)
    time.sleep(0.05)
    assert turned_clock.monotonic() == began
    go_on.set()
    turned_clock.results([waiting])
    assert turned_clock.monotonic() == began


def test_what_is_ready_takes_no_time(turned_clock: TurnedClock):
    began = turned_clock.monotonic()
    event, lock, condition = threading.Event(), threading.Lock(), threading.Condition()
    event.set()
    assert turned_clock.wait_for_event(event, 5)
    assert turned_clock.acquire(lock, 5)
    with condition:
        assert turned_clock.wait_for_condition(condition, lambda: True, 5)
    turned_clock.wait_for_futures([], 5)
    turned_clock.settle()
    assert turned_clock.monotonic() == began


def test_what_does_not_happen_is_waited_for_until_its_time(turned_clock: TurnedClock):
    began = turned_clock.monotonic()
    event, lock, condition = threading.Event(), threading.Lock(), threading.Condition()
    lock.acquire()
    assert not turned_clock.wait_for_event(event, 1)
    assert not turned_clock.acquire(lock, 2)
    with condition:
        assert not turned_clock.wait_for_condition(condition, lambda: False, 4)
    turned_clock.wait_for_futures([futures.Future()], 8)
    assert turned_clock.monotonic() - began == 15


def test_what_happens_meanwhile_ends_a_wait(turned_clock: TurnedClock):
    began = turned_clock.monotonic()
    event, lock, condition, held = threading.Event(), threading.Lock(), threading.Condition(), []
    lock.acquire()

    def act() -> None:
        turned_clock.sleep(1)
        event.set()
        turned_clock.sleep(1)
        lock.release()
        turned_clock.sleep(1)
        with condition:
            held.append(1)

    acting = turned_clock.started(act)
    assert turned_clock.wait_for_event(event, 10)
    assert turned_clock.acquire(lock, 10)
    with condition:
        assert turned_clock.wait_for_condition(condition, lambda: bool(held), 10)
    turned_clock.results([acting])
    assert turned_clock.monotonic() - began == 3


def test_a_thread_that_is_known_to_hang_holds_nothing_up():
    ended = threading.Event()
    with turned(lambda thread: thread.name == "hangs") as turned_clock:
        began = turned_clock.monotonic()
        threading.Thread(target=ended.wait, name="hangs").start()
        turned_clock.sleep(7)
        assert turned_clock.monotonic() - began == 7
    ended.set()


def test_the_processors_are_as_busy_as_the_test_says(turned_clock: TurnedClock):
    turned_clock.busy = 0.75
    turned_clock.sleep(4)
    assert turned_clock.process_time() == 3


def test_a_test_that_hangs_fails_and_says_where(monkeypatch):
    monkeypatch.setattr(module, "GUARD", 0.2)
    ended = threading.Event()

    def hang() -> None:
        with turned() as turned_clock:
            turned_clock.started(ended.wait)
            turned_clock.sleep(1)

    with pytest.raises(HangingTestError, match="neither ends nor waits") as raised:
        hang()
    ended.set()
    assert "waits for sleep(1) until 1 s" in str(raised.value)


def test_a_test_fails_too_if_its_time_passes_without_an_end(monkeypatch):
    monkeypatch.setattr(module, "GUARD", 0.2)
    is_over = threading.Event()

    def tick(turned_clock: TurnedClock) -> None:
        while not is_over.is_set():
            turned_clock.sleep(1)

    def hang() -> None:
        with turned() as turned_clock:
            turned_clock.started(tick, turned_clock)
            turned_clock.wait_for_event(threading.Event())

    with pytest.raises(HangingTestError, match="waits for an event until inf s"):
        hang()
    is_over.set()


def test_a_thread_of_the_process_outlives_a_test_that_hangs(monkeypatch):
    monkeypatch.setattr(module, "GUARD", 0.2)
    begun, ended, is_over = threading.Event(), threading.Event(), threading.Event()
    outcome: list[object] = []

    def wait() -> None:
        begun.wait()
        outcome.append(clock.current.wait_for_event(is_over))

    bystander = threading.Thread(target=wait)
    bystander.start()

    def hang() -> None:
        with turned() as turned_clock:
            begun.set()
            while bystander not in turned_clock._waits:
                time.sleep(0.001)
            turned_clock.started(ended.wait)
            turned_clock.sleep(1)

    with pytest.raises(HangingTestError):
        hang()
    ended.set()
    is_over.set()
    bystander.join(60)
    assert outcome == [True]


def test_what_still_waits_at_the_end_goes_on_by_the_clock_of_the_system():
    taken, condition = threading.Lock(), threading.Condition()
    taken.acquire()

    def wait_for_condition() -> bool:
        with condition:
            return clock.current.wait_for_condition(condition, lambda: False, 0.1)

    with turned() as turned_clock:
        waiting = [
            turned_clock.started(turned_clock.wait_for_event, threading.Event(), 0.1),
            turned_clock.started(turned_clock.acquire, taken, 0.1),
            turned_clock.started(wait_for_condition),
        ]
        turned_clock.settle()
        assert not any(one.done() for one in waiting)
    assert [one.result(60) for one in waiting] == [False] * 3


def test_a_stepped_clock_is_later_at_each_reading():
    before = clock.current
    with installed(SteppedClock(2.5)):
        assert [clock.current.monotonic() for _ in range(3)] == [2.5, 5.0, 7.5]
    assert clock.current is before
    assert math.isfinite(clock.current.monotonic())


def test_what_was_done_last_by_another_clock_is_not_the_last_once_that_clock_is_gone(monkeypatch):
    [(name, awaited)], moment = module.AWAITED, module.MOMENTS[-1][1]
    held = types.SimpleNamespace(**{moment: 1.0, awaited: True})
    monkeypatch.setitem(sys.modules, name, held)
    with turned():
        assert vars(held) == {moment: -math.inf, awaited: False}
        setattr(held, moment, clock.current.monotonic())
    assert vars(held) == {moment: 1.0, awaited: True}


def test_a_standing_clock_has_exact_sums_of_seconds():
    """From 32267.976 on, 300, 299 and 1 s more are less than 600 s more."""
    assert StandingClock().now.is_integer()


def test_all_moments_that_modules_hold_are_known():
    package = Path(hpc_sched.__file__).parent
    found = {
        (".".join(("hpc_sched", *path.relative_to(package).with_suffix("").parts)), name)
        for path in package.rglob("*.py")
        for name in re.findall(r"^(_?\w+_at)\b.* = ", path.read_text(), re.MULTILINE)
    }
    assert found == set(module.MOMENTS)
