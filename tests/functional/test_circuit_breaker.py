"""Reads that may hang: when a source is left alone, and when it is asked again."""

import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import nova.conf
import pytest

from hpc_sched import conf, exceptions
from hpc_sched.nova_glue.io import circuit_breaker, request_deadline
from tests.functional import faults

CONF = nova.conf.CONF

TIMEOUT = 1
LEFT_ALONE, UNANSWERED = "left alone after a timeout", f"no answer within {TIMEOUT} s"
SOURCE = "source"

pytestmark = pytest.mark.usefixtures("trusted")


@pytest.fixture
def trusted(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Trust all sources, and wait but shortly for them."""
    conf.register_opts(CONF)
    monkeypatch.setattr(circuit_breaker, "PAUSE", 1.5 * TIMEOUT)
    faults.forget()
    CONF.set_override("cell_timeout", TIMEOUT, "hpc_sched")
    yield
    CONF.clear_override("cell_timeout", "hpc_sched")
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
        yield ended.wait
    finally:
        ended.set()


def ask_at_once(number: int, read: Callable[[], object], source: str = SOURCE) -> list[object]:
    """Return what concurrent requests get from the source."""
    with ThreadPoolExecutor(number) as pool:
        return [one.result() for one in [pool.submit(said, read, source) for _ in range(number)]]


def test_a_source_that_hangs_is_left_alone_and_tried_after_a_while():
    with hanging() as hang:
        assert said(hang) == UNANSWERED
        assert said(well) == LEFT_ALONE
        time.sleep(circuit_breaker.PAUSE)
        assert said(well) == "well"
        assert said(well) == "well"


def test_a_source_that_answers_many_requests_one_after_the_other_is_not_left_alone():
    def slow() -> str:
        time.sleep(TIMEOUT / 4)
        return "well"

    answers = ask_at_once(40, slow)
    assert answers.count("well") >= circuit_breaker.MAX_READS
    assert answers.count(UNANSWERED) == 40 - answers.count("well") > 0
    assert said(well) == "well"


def test_a_try_that_hangs_itself_does_not_close_the_source_for_ever():
    with hanging() as hang:
        assert said(hang) == UNANSWERED
        time.sleep(circuit_breaker.PAUSE)
        assert said(hang) == UNANSWERED
        assert said(well) == LEFT_ALONE
        time.sleep(circuit_breaker.PAUSE)
        assert said(well) == "well"


def test_reads_that_never_come_back_keep_no_room_for_ever():
    with hanging() as hang:
        ask_at_once(circuit_breaker.MAX_READS, hang)
        time.sleep(circuit_breaker.PAUSE)
        assert said(well) == "well"
        assert ask_at_once(8, well) == ["well"] * 8


def test_a_source_that_is_slow_gets_no_more_reads_at_a_time_for_those_left_behind():
    with hanging() as hang, ThreadPoolExecutor(circuit_breaker.MAX_READS) as pool:
        slow = [pool.submit(said, hang) for _ in range(circuit_breaker.MAX_READS - 1)]
        time.sleep(TIMEOUT / 2)
        # One that comes back meanwhile: it does not hang.
        assert said(well) == "well"
        assert [one.result() for one in slow] == [UNANSWERED] * len(slow)
        ask_at_once(2 * circuit_breaker.MAX_READS, hang)
        assert faults.reads_under_way(SOURCE) == circuit_breaker.MAX_READS


def test_one_request_at_a_time_tries():
    with hanging() as hang:
        assert said(hang) == UNANSWERED
        time.sleep(circuit_breaker.PAUSE)
        answers = ask_at_once(8, hang)
    assert sorted(answers) == [LEFT_ALONE] * 7 + [UNANSWERED]


def test_a_read_for_many_requests_does_not_wait_for_a_try_that_hangs():
    with hanging() as hang:
        assert said(hang) == UNANSWERED
        time.sleep(circuit_breaker.PAUSE)
        with request_deadline.active(request_deadline.shared()) as deadline:
            assert said(hang) == LEFT_ALONE
        assert deadline.waited < TIMEOUT / 2
        # The try goes on, for as long as others would.
        assert said(well) == LEFT_ALONE
        time.sleep(TIMEOUT)
        assert said(well) == LEFT_ALONE
        time.sleep(circuit_breaker.PAUSE)
        assert said(well) == "well"


def test_a_try_that_ends_after_its_read_for_many_requests_counts(monkeypatch):
    with hanging() as hang:
        assert said(hang) == UNANSWERED
        time.sleep(circuit_breaker.PAUSE)
        with request_deadline.active(request_deadline.shared()):
            assert said(lambda: time.sleep(TIMEOUT / 3)) == LEFT_ALONE
        time.sleep(TIMEOUT / 2)
        assert said(well) == "well"


def with_rows(seconds: float) -> Callable[[], str]:
    """Return a read whose rows come all the time, for some seconds."""

    def read() -> str:
        for _ in range(40):
            time.sleep(seconds / 40)
            circuit_breaker.note_progress()
        return "rows"

    return read


def said_to_many(read: Callable[[], object]) -> object:
    with request_deadline.active(request_deadline.shared()):
        return said(read)


def test_a_try_that_brings_rows_for_longer_than_the_limit_counts():
    read = with_rows(2 * TIMEOUT)
    with hanging() as hang:
        assert said(hang) == UNANSWERED
        time.sleep(circuit_breaker.PAUSE)
        began = time.monotonic()
        answers = []
        while time.monotonic() - began < 2.5 * TIMEOUT:
            answers.append(said_to_many(read))
            time.sleep(0.2 * TIMEOUT)
    assert answers[0] == LEFT_ALONE
    assert answers[-1] == "rows"


def test_a_source_that_brings_rows_to_one_read_does_not_hang_for_a_slow_one():
    with ThreadPoolExecutor(1) as pool:
        long = pool.submit(said_to_many, with_rows(3 * TIMEOUT))
        time.sleep(0.2 * TIMEOUT)
        with hanging() as hang:
            assert said(hang) == UNANSWERED
        assert said(well) == "well"
        assert long.result() == "rows"


@contextmanager
def busy() -> Iterator[None]:
    """Keep the process busy."""
    ended = threading.Event()

    def spin() -> None:
        while not ended.is_set():
            sum(range(10_000))
            time.sleep(0)  # under eventlet no other thread runs before

    threads = [threading.Thread(target=spin) for _ in range(4)]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        ended.set()
        for thread in threads:
            thread.join()


def test_a_read_for_many_requests_is_waited_for_while_the_process_is_busy():
    def late() -> str:
        time.sleep(1.5 * TIMEOUT)
        return "late"

    assert said_to_many(late) == UNANSWERED
    faults.forget()
    with busy():
        assert said_to_many(late) == "late"
        assert said(late) == UNANSWERED
        faults.forget()
        # But not for ever.
        with hanging() as hang:
            began = time.monotonic()
            assert said_to_many(hang) == UNANSWERED
            assert time.monotonic() - began < 7 * TIMEOUT


def test_each_source_of_a_read_for_many_requests_has_its_time_however_long_others_took():
    began = time.monotonic()
    with request_deadline.active(request_deadline.shared()):
        assert [said(with_rows(1.5 * TIMEOUT)) for _ in range(3)] == ["rows"] * 3
        # Together they go on for as long as one of them alone might.
        assert said(with_rows(9 * TIMEOUT)) == UNANSWERED
        assert time.monotonic() - began < 6.5 * TIMEOUT
        assert said(well, "another source") == "well"


def test_where_as_many_hang_as_may_a_try_comes_but_rarely(monkeypatch):
    monkeypatch.setattr(circuit_breaker, "MAX_STUCK", 4)
    monkeypatch.setattr(circuit_breaker, "LONG_PAUSE", 4 * TIMEOUT)
    with hanging() as hang:
        ask_at_once(4, hang)
        time.sleep(circuit_breaker.PAUSE)
        assert said(well) == LEFT_ALONE
        time.sleep(circuit_breaker.LONG_PAUSE - circuit_breaker.PAUSE)
        assert said(well) == "well"
        # Trusted again, and hanging again: one more at most.
        ask_at_once(8, hang)
        assert faults.reads_under_way(SOURCE) == 5


def test_who_waits_for_others_is_told_as_soon_as_the_source_is_left_alone():
    with hanging() as hang, ThreadPoolExecutor(circuit_breaker.MAX_READS) as pool:
        for _ in range(circuit_breaker.MAX_READS):
            pool.submit(said, hang)
        time.sleep(TIMEOUT / 2)
        began = time.monotonic()
        assert said(well) == LEFT_ALONE
        assert time.monotonic() - began < 0.9 * TIMEOUT


def test_who_comes_with_little_time_left_does_not_have_a_source_left_alone():
    with hanging() as hang:
        with request_deadline.active(request_deadline.RequestDeadline(waited=1.9 * TIMEOUT)):
            assert said(hang) == UNANSWERED
        assert said(well) == "well"


def test_a_source_with_too_many_waiting_reads_does_not_delay_the_others():
    with hanging() as hang, ThreadPoolExecutor(circuit_breaker.MAX_READS) as pool:
        for _ in range(circuit_breaker.MAX_READS):
            pool.submit(said, hang, "busy")
        time.sleep(TIMEOUT / 4)
        began = time.monotonic()
        found = circuit_breaker.ask({"busy": well, "idle": time.monotonic})
        assert str(found["busy"]) == LEFT_ALONE
        assert found["idle"] - began < TIMEOUT / 4


def test_a_process_without_more_threads_does_not_trust_a_source_for_it(monkeypatch):
    def refuse(_thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    with hanging() as hang:
        assert said(hang) == UNANSWERED
        time.sleep(circuit_breaker.PAUSE)
        with monkeypatch.context() as patch:
            patch.setattr(threading.Thread, "start", refuse)
            assert said(well) == "no thread can be started: can't start new thread"
        assert sorted(ask_at_once(8, hang)) == [LEFT_ALONE] * 7 + [UNANSWERED]


def test_what_would_end_the_reading_thread_does_not_end_the_request():
    def leave() -> None:
        raise SystemExit("enough")

    assert said(leave) == "SystemExit: enough"
    assert said(well) == "well"
