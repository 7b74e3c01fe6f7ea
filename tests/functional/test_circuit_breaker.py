"""Reads that may hang: when a source is left alone, and when it is asked again."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import nova.conf
import pytest

from hpc_sched import clock, conf, exceptions
from hpc_sched.nova_glue.io import circuit_breaker, request_deadline
from tests.functional import faults
from tests.turned_clock import TurnedClock

CONF = nova.conf.CONF

TIMEOUT = 1
LEFT_ALONE, UNANSWERED = "left alone after a timeout", f"no answer within {TIMEOUT} s"
SOURCE = "source"

pytestmark = pytest.mark.usefixtures("trusted")


@pytest.fixture
def trusted(turned_clock: TurnedClock) -> Iterator[None]:
    """Trust all sources."""
    conf.register_opts(CONF)
    faults.forget()
    CONF.set_override("cell_timeout", TIMEOUT, "hpc_sched")
    yield
    forget(turned_clock)
    CONF.clear_override("cell_timeout", "hpc_sched")


def forget(turned_clock: TurnedClock) -> None:
    """Trust all sources again, when all reads have ended."""
    turned_clock.sleep(20 * TIMEOUT)
    faults.forget()


def said(read: Callable[[], object], source: str = SOURCE) -> object:
    """Return what a source answers, or why it does not."""
    try:
        return circuit_breaker.ask_one(source, read)
    except exceptions.UnansweredError as error:
        return str(error)


def well() -> str:
    return "well"


@contextmanager
def hanging() -> Iterator[Callable[[], object]]:
    """Yield a read that does not come back before the block ends."""
    ended = threading.Event()
    try:
        yield lambda: clock.current.wait_for_event(ended, None)
    finally:
        ended.set()


def ask_at_once(turned_clock: TurnedClock, number: int, read: Callable[[], object]) -> list[object]:
    """Return what concurrent requests get from the source."""
    return turned_clock.results([turned_clock.started(said, read) for _ in range(number)])


def test_a_source_that_hangs_is_left_alone_and_tried_after_a_while(turned_clock):
    began = turned_clock.monotonic()
    with hanging() as hang:
        assert said(hang) == UNANSWERED
        assert turned_clock.monotonic() - began == TIMEOUT
        assert said(well) == LEFT_ALONE
        turned_clock.sleep(circuit_breaker.PAUSE - 1)
        assert said(well) == LEFT_ALONE
        turned_clock.sleep(1)
        assert said(well) == "well"
        assert said(well) == "well"
        assert turned_clock.monotonic() - began == TIMEOUT + circuit_breaker.PAUSE


def test_a_source_that_answers_many_requests_one_after_the_other_is_not_left_alone(turned_clock):
    def slow() -> str:
        turned_clock.sleep(0.3 * TIMEOUT)
        return "well"

    answers = ask_at_once(turned_clock, 40, slow)
    assert answers.count("well") == 3 * circuit_breaker.MAX_READS
    assert answers.count(UNANSWERED) == 40 - answers.count("well")
    assert said(well) == "well"


def test_a_try_that_hangs_itself_does_not_close_the_source_for_ever(turned_clock):
    with hanging() as hang:
        assert said(hang) == UNANSWERED
        turned_clock.sleep(circuit_breaker.PAUSE)
        assert said(hang) == UNANSWERED
        assert said(well) == LEFT_ALONE
        turned_clock.sleep(circuit_breaker.PAUSE)
        assert said(well) == "well"


def test_reads_that_never_come_back_keep_no_room_for_ever(turned_clock):
    with hanging() as hang:
        ask_at_once(turned_clock, circuit_breaker.MAX_READS, hang)
        turned_clock.sleep(circuit_breaker.PAUSE)
        assert said(well) == "well"
        assert ask_at_once(turned_clock, 8, well) == ["well"] * 8


def test_a_source_that_is_slow_gets_no_more_reads_at_a_time_for_those_left_behind(turned_clock):
    with hanging() as hang:
        slow = [turned_clock.started(said, hang) for _ in range(circuit_breaker.MAX_READS - 1)]
        turned_clock.sleep(TIMEOUT / 2)
        # One that comes back meanwhile: it does not hang.
        assert said(well) == "well"
        assert turned_clock.results(slow) == [UNANSWERED] * len(slow)
        ask_at_once(turned_clock, 2 * circuit_breaker.MAX_READS, hang)
        assert faults.reads_under_way(SOURCE) == circuit_breaker.MAX_READS


def test_one_request_at_a_time_tries(turned_clock):
    with hanging() as hang:
        assert said(hang) == UNANSWERED
        turned_clock.sleep(circuit_breaker.PAUSE)
        answers = ask_at_once(turned_clock, 8, hang)
    assert sorted(answers) == [LEFT_ALONE] * 7 + [UNANSWERED]


def test_a_read_for_many_requests_does_not_wait_for_a_try_that_hangs(turned_clock):
    with hanging() as hang:
        assert said(hang) == UNANSWERED
        turned_clock.sleep(circuit_breaker.PAUSE)
        began = turned_clock.monotonic()
        with request_deadline.active(request_deadline.shared()) as deadline:
            assert said(hang) == LEFT_ALONE
        waited = turned_clock.monotonic() - began
        assert waited == pytest.approx(circuit_breaker.PART_FOR_PROBES * TIMEOUT)
        assert deadline.waited == 0
        # The try goes on, for as long as others would.
        assert said(well) == LEFT_ALONE
        turned_clock.sleep(TIMEOUT)
        assert said(well) == LEFT_ALONE
        turned_clock.sleep(circuit_breaker.PAUSE)
        assert said(well) == "well"


def test_a_try_that_ends_after_its_read_for_many_requests_counts(turned_clock):
    with hanging() as hang:
        assert said(hang) == UNANSWERED
        turned_clock.sleep(circuit_breaker.PAUSE)
        with request_deadline.active(request_deadline.shared()):
            assert said(lambda: turned_clock.sleep(TIMEOUT / 3)) == LEFT_ALONE
        turned_clock.sleep(TIMEOUT / 2)
        assert said(well) == "well"


def with_rows(seconds: float) -> Callable[[], str]:
    """Return a read whose rows come all the time, for some seconds."""

    def read() -> str:
        for _ in range(40):
            clock.current.sleep(seconds / 40)
            circuit_breaker.note_progress()
        return "rows"

    return read


def said_to_many(read: Callable[[], object]) -> object:
    with request_deadline.active(request_deadline.shared()):
        return said(read)


def test_a_try_that_brings_rows_for_longer_than_the_limit_counts(turned_clock):
    read = with_rows(2 * TIMEOUT)
    with hanging() as hang:
        assert said(hang) == UNANSWERED
        turned_clock.sleep(circuit_breaker.PAUSE)
        began = turned_clock.monotonic()
        answers = []
        while turned_clock.monotonic() - began < 2.5 * TIMEOUT:
            answers.append(said_to_many(read))
            turned_clock.sleep(0.2 * TIMEOUT)
    assert answers[0] == LEFT_ALONE
    assert answers[-1] == "rows"


def test_a_source_that_brings_rows_to_one_read_does_not_hang_for_a_slow_one(turned_clock):
    long = turned_clock.started(said_to_many, with_rows(3 * TIMEOUT))
    turned_clock.sleep(0.2 * TIMEOUT)
    with hanging() as hang:
        assert said(hang) == UNANSWERED
    assert said(well) == "well"
    assert turned_clock.results([long]) == ["rows"]


def test_a_read_for_many_requests_is_waited_for_while_the_process_is_busy(turned_clock):
    def late() -> str:
        turned_clock.sleep(1.5 * TIMEOUT)
        return "late"

    for busy in (0.0, 0.45):
        turned_clock.busy = busy
        assert said_to_many(late) == UNANSWERED
        forget(turned_clock)
    turned_clock.busy = 0.55
    assert said_to_many(late) == "late"
    assert said(late) == UNANSWERED
    forget(turned_clock)
    # But not for ever.
    with hanging() as hang:
        began = turned_clock.monotonic()
        assert said_to_many(hang) == UNANSWERED
        most = request_deadline.MAX_FOR_ROWS * TIMEOUT
        assert turned_clock.monotonic() - began == pytest.approx(most)


def test_each_source_of_a_read_for_many_requests_has_its_time_however_long_others_took(
    turned_clock,
):
    began = turned_clock.monotonic()
    with request_deadline.active(request_deadline.shared()):
        assert [said(with_rows(1.5 * TIMEOUT)) for _ in range(3)] == ["rows"] * 3
        # Together they go on for as long as one of them alone might.
        assert said(with_rows(9 * TIMEOUT)) == UNANSWERED
        most = request_deadline.MAX_FOR_ROWS * TIMEOUT
        assert turned_clock.monotonic() - began == pytest.approx(most)
        assert said(well, "another source") == "well"


def test_where_as_many_hang_as_may_a_try_comes_but_rarely(turned_clock, monkeypatch):
    monkeypatch.setattr(circuit_breaker, "MAX_STUCK", 4)
    with hanging() as hang:
        ask_at_once(turned_clock, 4, hang)
        turned_clock.sleep(circuit_breaker.LONG_PAUSE - 1)
        assert said(well) == LEFT_ALONE
        turned_clock.sleep(1)
        assert said(well) == "well"
        # Trusted again, and hanging again: one more at most.
        ask_at_once(turned_clock, 8, hang)
        assert faults.reads_under_way(SOURCE) == 5


def test_who_waits_for_others_is_told_as_soon_as_the_source_is_left_alone(turned_clock):
    with hanging() as hang:
        for _ in range(circuit_breaker.MAX_READS):
            turned_clock.started(said, hang)
        turned_clock.sleep(TIMEOUT / 2)
        began = turned_clock.monotonic()
        assert said(well) == LEFT_ALONE
        assert turned_clock.monotonic() - began == TIMEOUT / 2


def test_who_comes_with_little_time_left_does_not_have_a_source_left_alone(turned_clock):
    with hanging() as hang:
        began = turned_clock.monotonic()
        with request_deadline.active(request_deadline.RequestDeadline(waited=1.9 * TIMEOUT)):
            assert said(hang) == UNANSWERED
        assert turned_clock.monotonic() - began == pytest.approx(0.1 * TIMEOUT)
        assert said(well) == "well"


def test_a_source_with_too_many_waiting_reads_does_not_delay_the_others(turned_clock):
    with hanging() as hang:
        for _ in range(circuit_breaker.MAX_READS):
            turned_clock.started(said, hang, "busy")
        turned_clock.sleep(TIMEOUT / 4)
        began = turned_clock.monotonic()
        found = circuit_breaker.ask({"busy": well, "idle": turned_clock.monotonic})
        assert str(found["busy"]) == LEFT_ALONE
        assert found["idle"] == began


def test_a_process_without_more_threads_does_not_trust_a_source_for_it(turned_clock, monkeypatch):
    def refuse(_thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    with hanging() as hang:
        assert said(hang) == UNANSWERED
        turned_clock.sleep(circuit_breaker.PAUSE)
        with monkeypatch.context() as patch:
            patch.setattr(threading.Thread, "start", refuse)
            assert said(well) == "no thread can be started: can't start new thread"
        assert sorted(ask_at_once(turned_clock, 8, hang)) == [LEFT_ALONE] * 7 + [UNANSWERED]


def test_what_would_end_the_reading_thread_does_not_end_the_request():
    def leave() -> None:
        raise SystemExit("enough")

    assert said(leave) == "SystemExit: enough"
    assert said(well) == "well"
