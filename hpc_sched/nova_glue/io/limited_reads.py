"""Reads of sources that may hang, within the deadline of a request."""

from collections.abc import Callable, Mapping
from concurrent import futures
from typing import Any, TypeVar

from nova.conf import CONF

from hpc_sched import clock, exceptions
from hpc_sched.core.logged.decision_summary import READS
from hpc_sched.nova_glue.io import circuit_breaker, request_deadline

Answer = TypeVar("Answer")

# Fraction of cell_timeout for which a read for many requests waits for a probe.
PART_FOR_PROBES = 0.1
# Such a read goes on as long as this process is so busy, in processors, that its threads that read
# may have to wait: where many requests come at once, that is no fault of the source.
BUSY = 0.5
_LOOK = 0.1  # seconds between two looks


def ask(
    reads: Mapping[str, Callable[[], Answer]], max_reads: int = circuit_breaker.MAX_READS
) -> dict[str, Answer | Exception]:
    """Return what the read of each source returns, or the exception that it raised.

    Reads all sources concurrently within the seconds of :func:`request_deadline.remaining`, which
    are charged to the request. A read that has not returned by then is an UnansweredError. A read
    for many requests goes on as long as rows come or this process is busy, all of them together
    until the deadline's ``rows_until``; its time is charged only if a source has not answered.

    :param max_reads: concurrent reads of one source
    """
    request = request_deadline.current()
    with request.clock.part(READS):
        return _ask(request, reads, max_reads)


def _ask(
    request: request_deadline.RequestDeadline,
    reads: Mapping[str, Callable[[], Answer]],
    max_reads: int,
) -> dict[str, Answer | Exception]:
    found: dict[str, Answer | Exception] = {
        source: exceptions.UnansweredError(f"no answer within {CONF.hpc_sched.cell_timeout} s")
        for source in reads
    }
    is_busy = _busy_from_now()
    began, limit = clock.current.monotonic(), request_deadline.remaining()
    if limit <= 0:
        return found
    deadline = began + limit
    asked = {source: circuit_breaker.of(source, max_reads) for source in reads}
    started = {source: asked[source].begin(read, 0.0) for source, read in reads.items()}
    # Busy sources come last: waiting for one of them does not delay the others.
    for source in [source for source, answer in started.items() if answer is None]:
        started[source] = asked[source].begin(
            reads[source], max(0.0, deadline - clock.current.monotonic())
        )
    if request.rows_until is not None:
        probes = {
            source: answer
            for source, answer in _late(started).items()
            if asked[source].probe is answer
        }
        wait = min(
            deadline - clock.current.monotonic(), PART_FOR_PROBES * CONF.hpc_sched.cell_timeout
        )
        clock.current.wait_for_futures(probes.values(), wait)
        for source in _late(probes):
            del started[source]
            found[source] = exceptions.UnansweredError(circuit_breaker.LEFT_ALONE)
    clock.current.wait_for_futures(_late(started).values(), deadline - clock.current.monotonic())
    if request.rows_until is not None:
        _wait_for_rows(asked, started, request.rows_until, is_busy)
    is_late = False
    for source, answer in started.items():
        if answer is None or not answer.done():
            asked[source].abandon(answer, began)
            is_late = True
        else:
            error = answer.exception()
            found[source] = error if isinstance(error, Exception) else answer.result()
    # What answers late, as many requests want the processor, takes no time from other sources.
    if request.rows_until is None or is_late:
        request.waited += min(clock.current.monotonic() - began, limit)
    return found


def _busy_from_now() -> Callable[[], bool]:
    """Return a function that is True if this process has been busy since now."""
    began, used = clock.current.monotonic(), clock.current.process_time()
    return lambda: clock.current.process_time() - used >= BUSY * (clock.current.monotonic() - began)


def _wait_for_rows(
    asked: Mapping[str, circuit_breaker.CircuitBreaker],
    started: Mapping[str, futures.Future[Any] | None],
    until: float,
    is_busy: Callable[[], bool],
) -> None:
    """Wait for reads that have not returned as long as rows come for any, or the process is busy.

    :param until: a monotonic time at which it ends
    """
    while True:
        late, now = _late(started), clock.current.monotonic()
        since = now - circuit_breaker.PART_FOR_ROWS * CONF.hpc_sched.cell_timeout
        has_rows = any(asked[source].progress_at >= since for source in late)
        if not late or now >= until or not (has_rows or is_busy()):
            return
        clock.current.wait_for_futures(late.values(), min(_LOOK, until - now))


def _late(started: Mapping[str, futures.Future[Any] | None]) -> dict[str, futures.Future[Any]]:
    """Return the reads that have begun and not returned, by source."""
    return {
        source: answer
        for source, answer in started.items()
        if answer is not None and not answer.done()
    }


def ask_one(
    source: str, read: Callable[[], Answer], max_reads: int = circuit_breaker.MAX_READS
) -> Answer:
    """Return what the read of one source returns; raises its error, or an UnansweredError."""
    [found] = ask({source: read}, max_reads).values()
    if isinstance(found, Exception):
        raise found
    return found
