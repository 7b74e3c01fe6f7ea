"""One read serves all requests that wait for it."""

import threading
from collections.abc import Sequence
from concurrent import futures

import pytest

from hpc_sched import exceptions
from hpc_sched.nova_glue.instances.shared_read import SharedRead


class Source:
    """A source that answers when the test says so, with what it was asked for."""

    def __init__(self) -> None:
        self.may_end = threading.Event()
        self.has_begun = threading.Event()
        self.reads: list[list[str]] = []
        self.last: list[object] = []

    def read(self, keys: Sequence[str], last: object) -> int:
        self.reads.append(list(keys))
        self.last.append(last)
        self.has_begun.set()
        assert self.may_end.wait(20)
        return len(self.reads)


@pytest.fixture
def source() -> Source:
    return Source()


def test_requests_that_come_while_one_reads_share_the_next_read(source):
    shared = SharedRead(source.read)
    with futures.ThreadPoolExecutor(9) as pool:
        first = pool.submit(shared.ask, "first", 20)
        assert source.has_begun.wait(20)
        others = [pool.submit(shared.ask, f"other {i}", 20) for i in range(8)]
        while shared._next is None or len(shared._next.keys) < 8:
            pass
        source.may_end.set()
        assert first.result() == 1
        assert [other.result() for other in others] == [2] * 8
    assert source.reads[0] == ["first"]
    assert sorted(source.reads[1]) == [f"other {i}" for i in range(8)]
    assert source.last == [None, 1]
    assert shared.last == 2


def test_each_request_alone_is_read_anew(source):
    source.may_end.set()
    shared = SharedRead(source.read)
    assert [shared.ask("one", 20), shared.ask("two", 20)] == [1, 2]


def test_a_request_that_cannot_wait_gets_nothing_and_the_read_goes_on(source):
    shared = SharedRead(source.read)
    assert shared.ask("hasty", 0.01) is None
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
