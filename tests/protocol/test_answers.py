"""What the answers to a transaction mean, and what it means that there is none."""

import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import closing

import nova.conf
import pytest
from keystoneauth1 import adapter, noauth, session
from nova.scheduler.client import report

from hpc_sched import conf
from hpc_sched.nova_glue.io import allocations
from hpc_sched.nova_glue.io.allocations import Answer, Consumer, Owner
from tests.protocol.direct import connected
from tests.protocol.placement_model import PlacementModel, Provider

CONF = nova.conf.CONF
OWNER = Owner("project", "user")


@pytest.fixture(autouse=True)
def options() -> Iterator[None]:
    conf.register_opts(CONF)
    CONF([], default_config_files=[])
    yield
    CONF.clear_override("connect_retries", "placement")
    CONF.clear()


def claim(uuid: str, generation: int | None = None) -> list[Consumer]:
    return [Consumer(uuid, {"p": {"resources": {"VCPU": 1}}}, generation)]


def accept_and(server: socket.socket, then: Callable[[socket.socket], object]) -> None:
    """Take one connection in a thread, and read what is sent first."""

    def serve() -> None:
        with closing(server.accept()[0]) as connection:
            connection.recv(1)
            then(connection)

    threading.Thread(target=serve, daemon=True).start()


def answer_of(monkeypatch: pytest.MonkeyPatch, port: int) -> Answer:
    """Return the answer to a claim that Nova's client sends to a port of this machine."""
    http = session.Session(auth=noauth.NoAuth(endpoint=f"http://127.0.0.1:{port}"), timeout=1)
    client = report.SchedulerReportClient(adapter=adapter.Adapter(http, service_type="placement"))
    monkeypatch.setattr(report, "PLACEMENTCLIENT", client)
    return allocations.write(OWNER, claim("a")).answer


def test_without_a_connection_nothing_was_sent(monkeypatch):
    with closing(socket.create_server(("127.0.0.1", 0))) as server:
        port = server.getsockname()[1]
    assert answer_of(monkeypatch, port) is Answer.FAILED


def test_without_a_connection_an_earlier_attempt_of_the_client_itself_may_have_been_sent(
    monkeypatch,
):
    CONF.set_override("connect_retries", 1, "placement")
    with closing(socket.create_server(("127.0.0.1", 0))) as server:
        port = server.getsockname()[1]
    assert answer_of(monkeypatch, port) is Answer.UNKNOWN


@pytest.mark.parametrize(
    "then",
    [
        pytest.param(lambda connection: None, id="it is closed"),
        pytest.param(
            lambda connection: connection.recv(1 << 20) and connection.recv(1), id="hangs"
        ),
        pytest.param(
            lambda connection: connection.sendall(b"HTTP/1.1 504 Gateway Timeout\r\n\r\n"),
            id="a proxy gives up",
        ),
    ],
)
def test_a_connection_that_ends_without_an_answer_leaves_it_open(monkeypatch, then):
    with closing(socket.create_server(("127.0.0.1", 0))) as server:
        accept_and(server, then)
        assert answer_of(monkeypatch, server.getsockname()[1]) is Answer.UNKNOWN


def test_each_kind_of_refusal_is_told_apart():
    placement = PlacementModel({"p": Provider("p", {"VCPU": 1})})
    with connected(placement) as adapter:
        assert allocations.write(OWNER, claim("a")).answer is Answer.DONE
        assert allocations.write(OWNER, claim("a")).answer is Answer.CONSUMER_CHANGED
        assert allocations.write(OWNER, claim("b")).answer is Answer.NO_ROOM
        assert allocations.write(OWNER, claim("b", 3)).answer is Answer.CONSUMER_CHANGED
        adapter.fates = ["conflict"]
        assert allocations.write(OWNER, claim("a", 1)).answer is Answer.CONFLICT
        inside = placement.begin("POST", "/allocations", adapter.bodies[2])
        while next(inside) != "write":
            pass
        assert allocations.write(OWNER, claim("b")).answer is Answer.CONSUMER_PENDING
