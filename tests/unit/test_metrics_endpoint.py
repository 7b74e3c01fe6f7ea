"""The HTTP server of the metrics among clients that are slow, many or wrong."""

import http.client
import socket
import time
from collections.abc import Callable, Iterator

import pytest
from prometheus_client.metrics_core import GaugeMetricFamily
from prometheus_client.registry import Collector

from hpc_sched import exceptions
from hpc_sched.metrics import endpoint
from hpc_sched.metrics.address import Address, address_in
from hpc_sched.metrics.endpoint import Endpoint
from tests.turned_clock import TurnedClock


class Counted(Collector):
    """Counts how often it is collected."""

    def __init__(self) -> None:
        self.number, self.is_broken = 0, False

    def collect(self) -> Iterator[GaugeMetricFamily]:
        if self.is_broken:
            raise OSError("broken")
        self.number += 1
        yield GaugeMetricFamily("collected", "Number of times", self.number)


# Seconds after which a test fails rather than hang.
GUARD = 120.0


def wait_until(true: Callable[[], bool]) -> None:
    end = time.monotonic() + GUARD
    while not true():
        assert time.monotonic() < end, "it has not happened"
        time.sleep(0.01)


@pytest.fixture
def counted() -> Counted:
    return Counted()


@pytest.fixture
def reports() -> list[str]:
    return []


@pytest.fixture
def served(
    turned_clock: TurnedClock,
    counted: Counted,
    reports: list[str],
    monkeypatch: pytest.MonkeyPatch,
) -> Iterator[Endpoint]:
    # A connection ends by the clock that the test turns, not by the timeout of its socket.
    monkeypatch.setattr(endpoint._Handler, "timeout", GUARD)
    found = Endpoint(Address("127.0.0.1", 0), lambda: counted, reports.append)
    yield found
    found.close()


def get(
    served: Endpoint, path: str = "/metrics", method: str = "GET", **headers: str
) -> http.client.HTTPResponse:
    connection = http.client.HTTPConnection("127.0.0.1", served.port, timeout=GUARD)
    connection.request(method, path, headers=headers)
    answer = connection.getresponse()
    answer.content = answer.read()
    connection.close()
    return answer


def connected(served: Endpoint) -> socket.socket:
    return socket.create_connection(("127.0.0.1", served.port), timeout=GUARD)


def test_a_scrape_is_answered_in_the_format_that_it_accepts(served: Endpoint):
    answer = get(served)
    assert answer.status == 200
    assert answer.content.endswith(b"collected 1.0\n")
    answer = get(served, Accept="application/openmetrics-text;version=1.0.0")
    assert answer.headers["Content-Type"].startswith("application/openmetrics-text")
    assert answer.content.endswith(b"# EOF\n")


def test_what_is_wrong_is_reported_once_until_an_answer_is_good(
    served: Endpoint, counted: Counted, reports: list[str], monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(endpoint, "REUSE", 0.0)
    for number in (1, 2):
        counted.is_broken = True
        assert [get(served).status for _ in range(3)] == [500] * 3
        counted.is_broken = False
        assert get(served).status == 200
        assert len(reports) == number


def test_many_scrapes_collect_once_a_second(
    served: Endpoint, counted: Counted, turned_clock: TurnedClock
):
    for number in (1, 2, 3):
        for _ in range(5):
            get(served)
        turned_clock.turn(endpoint.REUSE / 2)
        get(served)
        assert counted.number == number
        turned_clock.turn(endpoint.REUSE / 2)


def test_what_cannot_be_collected_is_reported_and_answered_without_details(
    counted: Counted, reports: list[str], served: Endpoint, monkeypatch
):
    monkeypatch.setattr(counted, "collect", lambda: [][1])
    answer = get(served)
    assert (answer.status, answer.content) == (500, b"no metrics\n")
    assert reports == ["IndexError: list index out of range"]


def test_only_the_page_of_metrics_can_be_had(served: Endpoint):
    assert get(served, "/").status == 404
    assert get(served, "/../../etc/passwd").status == 404
    assert get(served, "/metrics?name[]=x").status == 200
    for method in ("POST", "PUT", "DELETE", "CONNECT", "FROB"):
        assert get(served, method=method).status == 501
    head = get(served, method="HEAD")
    assert (head.status, head.content) == (200, b"")


@pytest.mark.parametrize(
    "request_",
    [
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
        b"GET\r\n\r\n",
        b"GET /metrics HTTP/9.9\r\n\r\n",
        b"GET /metrics HTTP/1.1\r\n" + b"a: b\r\n" * 1000 + b"\r\n",
        b"GET /" + b"a" * 100_000 + b" HTTP/1.1\r\n\r\n",
        b"GET /metrics HTTP/1.1\r\nAccept: application/openmetrics-text;version=x\r\n\r\n",
        b"GET /metrics HTTP/1.1\r\nContent-Length: -1\r\n\r\n",
        b"\x00" * 5000,
        b"\r\n" * 100,
        b"",
    ],
    ids=lambda text: text[:24],
)
def test_garbage_is_refused_and_the_next_scrape_answered(
    served: Endpoint, request_: bytes, reports: list[str], capfd
):
    with connected(served) as client:
        try:
            client.sendall(request_)
            client.shutdown(socket.SHUT_WR)
            answer = client.recv(100)
        except OSError:
            answer = b""
    assert not answer or answer.startswith((b"HTTP/1.0 ", b"<!DOCTYPE"))
    assert get(served).status == 200
    assert reports == []
    assert capfd.readouterr() == ("", "")


def test_clients_that_send_slowly_are_closed_in_time_and_keep_out_none_for_long(
    served: Endpoint, turned_clock: TurnedClock
):
    slow = [connected(served) for _ in range(endpoint.MAX_THREADS)]
    for client in slow:
        client.sendall(b"GET /metr")
    wait_until(lambda: len(served._server._open) == len(slow))
    # A byte now and then does not help them.
    for _ in range(9):
        turned_clock.turn(endpoint.SECONDS / 10)
        served._server.service_actions()
        for client in slow:
            client.sendall(b"a")
        assert len(served._server._open) == len(slow)
    turned_clock.turn(endpoint.SECONDS / 10)
    for client in slow:
        assert is_closed(client)
        client.close()
    wait_until(lambda: not served._server._open)
    assert get(served).status == 200


def is_closed(client: socket.socket) -> bool:
    """True if the server closes a connection; waits for that."""
    try:
        return client.recv(10) == b""
    except ConnectionResetError:  # there were bytes to read
        return True


def test_a_client_that_does_not_read_is_closed_in_time(
    served: Endpoint, counted, monkeypatch, turned_clock: TurnedClock
):
    huge = GaugeMetricFamily("huge", "x" * 50_000_000, 1)
    monkeypatch.setattr(counted, "collect", lambda: [huge])
    with connected(served) as client:
        client.sendall(b"GET /metrics HTTP/1.0\r\n\r\n")
        wait_until(lambda: bool(served._server._open))
        turned_clock.turn(endpoint.SECONDS)
        wait_until(lambda: not served._server._open)


def test_a_connection_without_a_byte_ends_by_itself():
    assert endpoint._Handler.timeout == endpoint.SECONDS


def test_connections_beyond_the_limit_are_closed_at_once(served: Endpoint):
    idle = [connected(served) for _ in range(endpoint.MAX_THREADS)]
    wait_until(lambda: len(served._server._open) == endpoint.MAX_THREADS)
    with connected(served) as client:
        assert client.recv(10) == b""
    for client in idle:
        client.close()
    wait_until(lambda: not served._server._open)
    assert get(served).status == 200


def test_an_address_in_use_is_an_error_that_names_it(served: Endpoint, counted: Counted):
    address = Address("127.0.0.1", served.port)
    with pytest.raises(exceptions.MetricsError, match=f"^{address}: Address already in use"):
        Endpoint(address, lambda: counted, print)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("127.0.0.1:9", ("127.0.0.1", 9)),
        ("[::1]:65535", ("::1", 65535)),
        ("localhost:0", ("localhost", 0)),
    ],
)
def test_an_address_is_read(text: str, expected: tuple[str, int]):
    found = address_in(text)
    assert found == expected
    assert str(found) == text


@pytest.mark.parametrize(
    "text",
    ["", ":9", "9", "a:", "a:b", "a:65536", "a:-1", "::1:9", "[a]:9", "[::1]", "a:٣", "a:1 "],
)
def test_another_text_is_no_address(text: str):
    with pytest.raises(exceptions.ConfigError, match="expected HOST:PORT"):
        address_in(text)


def test_ipv6_is_served():
    try:
        found = Endpoint(Address("::1", 0), Counted, print)
    except exceptions.MetricsError:
        pytest.skip("there is no IPv6 here")
    connection = http.client.HTTPConnection("::1", found.port, timeout=GUARD)
    connection.request("GET", "/metrics")
    assert connection.getresponse().status == 200
    found.close()
