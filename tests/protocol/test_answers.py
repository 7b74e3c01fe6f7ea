"""What the answers to a transaction mean, and what it means that there is none."""

import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import replace
from typing import ClassVar

import nova.conf
import pytest
from keystoneauth1 import adapter, noauth, session
from nova.scheduler.client import report

from hpc_sched import conf, exceptions
from hpc_sched.nova_glue.io import allocations
from hpc_sched.nova_glue.io.allocations import Answer, Consumer, Owner, Written
from tests.protocol.direct import DirectAdapter, connected
from tests.protocol.placement_model import PlacementModel, Provider, error

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


class OlderPlacement:
    """Placement without types of consumers."""

    additional_headers: ClassVar[dict[str, str]] = {}

    def __init__(self) -> None:
        self.placement = DirectAdapter(PlacementModel({"p": Provider("p", {"VCPU": 1})}))

    def _send(self, method: str, url: str, microversion: str, *body: object) -> object:
        if microversion == "1.38":
            return error(406, "Version not found")
        return getattr(self.placement, method)(url, *body, microversion=microversion)

    def get(self, url: str, microversion: str, **_: object) -> object:
        return self._send("get", url, microversion)

    def post(self, url: str, json: object, microversion: str, **_: object) -> object:
        return self._send("post", url, microversion, json)


def test_a_placement_without_types_of_consumers_claims_nothing_and_is_named(monkeypatch):
    client = report.SchedulerReportClient(adapter=OlderPlacement())
    monkeypatch.setattr(report, "PLACEMENTCLIENT", client)
    [found] = claim("a")
    written = allocations.write(OWNER, [replace(found, is_claim=True)])
    assert written == Written(Answer.FAILED, "Placement has no microversion 1.38")
    with pytest.raises(exceptions.UnansweredError, match=r"no microversion 1\.38"):
        allocations.read_unused_claim("a")
    # What Nova has written is still repaired.
    assert allocations.write(OWNER, claim("a")).answer is Answer.DONE
    assert allocations.read("a").generation == 1


class RacedPlacement:
    """Placement that finds a consumer's record, which another transaction then removes."""

    additional_headers: ClassVar[dict[str, str]] = {}

    def __init__(self, detail: str) -> None:
        self.detail = detail

    def post(self, *_: object, **__: object) -> object:
        return error(404, self.detail)


@pytest.mark.parametrize(
    ("detail", "expected"),
    [
        ("The resource could not be found. No such consumer(s): a.", Answer.CONFLICT),
        ("The resource could not be found.", Answer.FAILED),
    ],
)
def test_a_record_that_is_removed_meanwhile_is_a_conflict(monkeypatch, detail, expected):
    client = report.SchedulerReportClient(adapter=RacedPlacement(detail))
    monkeypatch.setattr(report, "PLACEMENTCLIENT", client)
    assert allocations.write(OWNER, claim("a")).answer is expected


def test_only_a_claim_that_nova_has_not_written_is_an_unused_one():
    placement = PlacementModel({"p": Provider("p", {"VCPU": 3})})
    with connected(placement):
        for uuid in "ab":
            [found] = claim(uuid)
            assert allocations.write(OWNER, [replace(found, is_claim=True)]).answer is Answer.DONE
        allocations.write(OWNER, claim("c"))
        assert allocations.read_unused_claim("c") is None, "by Nova alone"
        assert allocations.read_unused_claim("d") is None, "nothing"
        stale = allocations.read_unused_claim("a")
        assert stale is not None
        assert stale.owner == OWNER
        # Nova writes the same: its type stays, and says no more that it is ours.
        allocations.write(OWNER, claim("a", 1))
        assert placement.consumers["a"].type == "HPC_SCHED_1"
        assert allocations.read_unused_claim("a") is None
        assert allocations.release(stale) is Answer.CONSUMER_CHANGED
        # It is planned again.
        [found] = claim("b", 1)
        allocations.write(OWNER, [replace(found, is_claim=True)])
        again = allocations.read_unused_claim("b")
        assert again is not None
        assert again.consumer.generation == 2
        assert allocations.release(again) is Answer.DONE
        assert placement.consumers.keys() == {"a", "c"}


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
