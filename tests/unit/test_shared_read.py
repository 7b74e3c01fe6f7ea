"""One read serves all requests that wait for it."""

import threading
from collections.abc import Sequence

import pytest

from hpc_sched import clock, exceptions
from hpc_sched.nova_glue.read.instances.shared_read import SharedRead
from tests.turned_clock import TurnedClock

pytestmark = pytest.mark.usefixtures("turned_clock")


class Source:
    """A source that answers when the test says so, with what it was asked for."""

    def __init__(self) -> None:
        self.may_end = threading.Event()
        self.reads: list[list[str]] = []
        self.last: list[object] = []

    def read(self, keys: Sequence[str], last: object) -> int:
        self.reads.append(list(keys))
        self.last.append(last)
        assert clock.current.wait_for_event(self.may_end, None)
        return len(self.reads)


@pytest.fixture
def source() -> Source:
    return Source()


def test_requests_that_come_while_one_reads_share_the_next_read(source, turned_clock: TurnedClock):
    shared = SharedRead(source.read)
    first = turned_clock.started(shared.ask, "first", 20)
    turned_clock.settle()
    others = [turned_clock.started(shared.ask, f"other {i}", 20) for i in range(8)]
    turned_clock.settle()
    source.may_end.set()
    assert turned_clock.results([first, *others]) == [1, *[2] * 8]
    assert source.reads[0] == ["first"]
    assert sorted(source.reads[1]) == [f"other {i}" for i in range(8)]
    assert source.last == [None, 1]
    assert shared.last == 2


def test_each_request_alone_is_read_anew(source):
    source.may_end.set()
    shared = SharedRead(source.read)
    assert [shared.ask("one", 20), shared.ask("two", 20)] == [1, 2]


def test_a_request_that_cannot_wait_gets_nothing_and_the_read_goes_on(
    source, turned_clock: TurnedClock
):
    shared, began = SharedRead(source.read), turned_clock.monotonic()
    assert shared.ask("hasty", 0.5) is None
    assert turned_clock.monotonic() - began == 0.5
    source.may_end.set()
    assert shared.ask("patient", 20) == 2
    assert shared.last == 2


def test_an_error_reaches_all_that_wait_and_spoils_no_later_read():
    reads = iter([OSError("gone"), None])

    def read(_keys: Sequence[str], _last: object) -> str:
        if error := next(reads):
            raise error
        return "read"

    shared = SharedRead(read)
    with pytest.raises(OSError, match="gone"):
        shared.ask("one", 20)
    assert shared.ask("two", 20) == "read"


def test_an_exit_in_the_read_is_no_exit_of_the_request():
    def read(_keys: Sequence[str], _last: object) -> str:
        raise SystemExit(3)

    with pytest.raises(exceptions.UnansweredError, match="SystemExit: 3"):
        SharedRead(read).ask("one", 20)


@pytest.mark.parametrize("error", [RuntimeError("can't start new thread"), MemoryError("none")])
def test_without_a_thread_to_spare_the_request_has_an_error_and_the_next_one_tries_again(
    source, monkeypatch, error: Exception
):
    def no_thread(_self: threading.Thread) -> None:
        raise error

    source.may_end.set()
    shared = SharedRead(source.read)
    with monkeypatch.context() as patch:
        patch.setattr(threading.Thread, "start", no_thread)
        for _ in range(2):
            with pytest.raises(exceptions.UnansweredError, match=f"can be started: {error}"):
                shared.ask("one", 20)
    assert shared.ask("two", 20) == 1
