"""Faults of what the scheduler depends on, had for real: servers that hang, refuse or are full.

A database server that hangs is a socket that takes connections and says nothing; one that is
gone is a port without a listener. Nova's own engines and PyMySQL talk to them.
"""

import contextlib
import logging
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import nova.conf
import pytest
from keystoneauth1 import adapter, session
from nova import context as nova_context
from nova import objects
from nova.db.api import api as api_db
from nova.scheduler.client import report
from oslo_db import exception as db_exception
from oslo_db.sqlalchemy import enginefacade

from hpc_sched import clock
from hpc_sched.demo.nova_cloud import NovaCloud
from hpc_sched.nova_glue.io import circuit_breaker, databases
from hpc_sched.nova_glue.read.instances import colocated_instances, instance_applications
from tests.functional.statements import Statement, each
from tests.turned_clock import TurnedClock, turned

CONF = nova.conf.CONF


# Seconds after which the plugin's reads time out where something hangs or is slow.
TIMEOUT = 1
# Seconds after which a server that hangs drops its connections: Nova's own reads have no timeout.
DROPPED_AFTER = 300


@contextmanager
def silent_server() -> Iterator[int]:
    """Yield the port of a server that takes connections and never answers; ended, it drops them.

    Reads have a short timeout meanwhile. What waits far longer is one of Nova's own: it fails.
    """
    taken: list[socket.socket] = []
    listener = socket.create_server(("127.0.0.1", 0), backlog=128)

    def end() -> None:
        # What waits in accept() is not woken by close().
        with contextlib.suppress(OSError):
            listener.shutdown(socket.SHUT_RDWR)
        thread.join()
        for connection in taken:
            with contextlib.suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)
            connection.close()

    with timeout(TIMEOUT), listener as listening:

        def take() -> None:
            with contextlib.suppress(OSError):
                while True:
                    taken.append(listening.accept()[0])

        thread = threading.Thread(target=take, daemon=True)
        thread.start()
        late = threading.Timer(DROPPED_AFTER, end)
        late.start()
        try:
            yield listening.getsockname()[1]
        finally:
            late.cancel()
            end()


@contextmanager
def timeout(seconds: int) -> Iterator[None]:
    """Have the plugin's reads time out after other seconds than the cloud's options say."""
    before = CONF.hpc_sched.cell_timeout
    CONF.set_override("cell_timeout", seconds, "hpc_sched")
    try:
        yield
    finally:
        CONF.set_override("cell_timeout", before, "hpc_sched")


def closed_port() -> int:
    """Return a port without a listener."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        port: int = listening.getsockname()[1]
    return port


def database_at(port: int, retry_interval: int = 0) -> enginefacade._TransactionContextManager:
    """Return what Nova makes of a connection to a MySQL server.

    :param retry_interval: seconds between the two attempts to connect for the first time; Nova
        has ten of them, ten seconds apart
    """
    pytest.importorskip("pymysql")
    manager = enginefacade.transaction_context()
    manager.configure(
        connection=f"mysql+pymysql://nova:secret@127.0.0.1:{port}/nova",
        max_retries=2,
        retry_interval=retry_interval,
    )
    return manager


@contextmanager
def cell_at(cloud: NovaCloud, name: str, port: int, retry_interval: int = 0) -> Iterator[None]:
    """Move the database of a cell elsewhere, and keep Nova from placing VMs in it.

    The operator has disabled the cell, so Nova's own host manager does not read it; the VMs
    that it has are members of their groups all the same.
    """
    cell = cloud.cell_mappings[name]
    managers, before = cloud._cell_databases._ctxt_mgrs, cell.database_connection
    elsewhere = f"mysql+pymysql://nova:secret@127.0.0.1:{port}/nova"

    def move(connection: str, *, disabled: bool) -> None:
        stored = objects.CellMapping.get_by_uuid(nova_context.get_admin_context(), cell.uuid)
        stored.database_connection, stored.disabled = connection, disabled
        stored.save()
        # As a scheduler that starts now finds it.
        nova_context.CELL_CACHE.pop(cell.uuid, None)
        cloud.scheduler.manager.reset()

    managers[elsewhere] = database_at(port, retry_interval)
    move(elsewhere, disabled=True)
    try:
        yield
    finally:
        del managers[elsewhere]
        move(before, disabled=False)


@contextmanager
def api_database_at(port: int) -> Iterator[None]:
    """Move the API database elsewhere."""
    undo = api_db.context_manager.patch_factory(database_at(port))
    try:
        yield
    finally:
        undo()


@contextmanager
def slow_for_us(seconds: float) -> Iterator[None]:
    """Have every statement that the plugin sends to a database take a while, and time out soon."""

    def wait(_sent: Statement) -> None:
        if is_read():
            clock.current.sleep(seconds)

    with timeout(TIMEOUT), each(wait):
        yield


@contextmanager
def api_database_gone_for_us() -> Iterator[None]:
    """Have every statement that the plugin sends to the API database fail; Nova's own do not."""

    def refuse(_sent: Statement) -> None:
        if is_read(source=databases.API_DATABASE):
            raise db_exception.DBConnectionError("gone")

    with each(refuse):
        yield


@contextmanager
def api_database_hangs_for_us() -> Iterator[None]:
    """Have every statement that the plugin sends to the API database hang; Nova's own do not.

    Other reads have the same timeout meanwhile, long enough for a busy machine. The block must not
    wait for a statement that hangs.
    """
    ended, waited_for = threading.Event(), list[Statement]()

    def hang(sent: Statement) -> None:
        if is_read(source=databases.API_DATABASE) and not ended.wait(300):
            waited_for.append(sent)

    try:
        with timeout(2 * TIMEOUT), each(hang):
            yield
    finally:
        ended.set()
    assert not waited_for


READS = "hpc_sched read: "  # begins the names of the plugin's threads


def reads_under_way(source: str = "") -> int:
    """Return how many threads read for the plugin, those that were left behind included.

    :param source: what they read, all sources by default
    """
    return sum(is_read(thread, source) for thread in threading.enumerate())


def is_read(thread: threading.Thread | None = None, source: str = "") -> bool:
    """True if a thread, by default this one, reads for the plugin."""
    thread = thread or threading.current_thread()
    return thread.name.startswith(READS + source)


@contextmanager
def turned_clock(source: str) -> Iterator[TurnedClock]:
    """Let the plugin's time pass only while all its threads wait, or read a source that hangs.

    So a request takes no time but what it waits for that source. Nova's threads do not count.

    :param source: begins the names of the sources that hang
    """

    own = threading.current_thread()

    def hangs(thread: threading.Thread) -> bool:
        takes_part = thread is own or thread.name.startswith(("hpc_sched", "test "))
        return not takes_part or is_read(thread, source)

    with turned(hangs) as found:
        yield found


@contextmanager
def watched_reads(source: str) -> Iterator[list[int]]:
    """Collect how many threads read from a source, 50 times a second."""
    seen: list[int] = []
    ended = threading.Event()

    def watch() -> None:
        while not ended.wait(0.02):
            seen.append(reads_under_way(source))

    thread = threading.Thread(target=watch)
    thread.start()
    try:
        yield seen
    finally:
        ended.set()
        thread.join()


@contextmanager
def look_ups_at(monkeypatch: pytest.MonkeyPatch, port: int) -> Iterator[list[str]]:
    """Lead the plugin's look-ups of allocations elsewhere; collect what was looked up.

    Nova looks its own VM up when it claims for it.
    """
    real = report.SchedulerReportClient.get
    elsewhere = adapter.Adapter(session.Session(auth=None), raise_exc=False)
    asked: list[str] = []

    def get(self, url, version=None, global_request_id=None):
        if not is_read():
            return real(self, url, version=version, global_request_id=global_request_id)
        asked.append(url)
        return elsewhere.get(f"http://127.0.0.1:{port}{url}")

    with monkeypatch.context() as patch:
        patch.setattr(report.SchedulerReportClient, "get", get)
        yield asked


@contextmanager
def every_second_claim_lost(
    monkeypatch: pytest.MonkeyPatch, cloud: NovaCloud
) -> Iterator[list[str]]:
    """Have another consumer take the host of every second claim first; Placement refuses it then.

    Collects the providers that were taken.
    """
    real = report.SchedulerReportClient.put
    lock = threading.Lock()
    claims, lost, others = [0], [], []

    def put(self, url, data, version=None, global_request_id=None):
        if url.startswith("/allocations/") and data.get("allocations"):
            with lock:
                claims[0] += 1
                is_lost = claims[0] % 2 == 0
            if is_lost:
                [provider] = data["allocations"]
                consumer = nova_context.RequestContext().request_id[4:]
                body = {**data, "consumer_generation": None}
                answer = cloud.placement.put(f"/allocations/{consumer}", version=version, body=body)
                # Where it is taken already it is lost as well.
                if answer.status == 204:
                    others.append(consumer)
                lost.append(provider)
        return real(self, url, data, version=version, global_request_id=global_request_id)

    try:
        with monkeypatch.context() as patch:
            patch.setattr(report.SchedulerReportClient, "put", put)
            yield lost
    finally:
        for consumer in others:
            cloud.placement.delete(f"/allocations/{consumer}", version="1.28")


def said(caplog: pytest.LogCaptureFixture, level: int = logging.WARNING) -> list[str]:
    """Return what the plugin has logged of a level or a graver one; no traceback is among it."""
    found = [
        record
        for record in caplog.records
        if record.name.startswith("hpc_sched") and record.levelno >= level
    ]
    assert [record.getMessage() for record in found if record.exc_info] == []
    return [record.getMessage() for record in found]


def forget() -> None:
    """Trust all sources again, and read at once; what is known of VMs stays."""
    wait_until(lambda: not reads_under_way())
    circuit_breaker.breakers.clear()
    databases.known_cells = ()
    colocated_instances.reads.last = None


def start_afresh() -> None:
    """Know nothing of any cloud, as a scheduler that has just started."""
    # A shared read keeps what it has found at its end.
    wait_until(lambda: not colocated_instances.reads._is_running)
    forget()
    instance_applications.cache = instance_applications.ApplicationCache()


def wait_until(true: Callable[[], bool], seconds: float = 120) -> None:
    """Wait for what must happen; the seconds are a guard against hanging, not a measurement."""
    deadline = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < deadline, "it has not happened"
        time.sleep(0.02)
