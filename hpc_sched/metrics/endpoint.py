"""An HTTP server for metrics: few threads, nothing but GET, and an end for slow clients."""

import socket
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler
from socketserver import TCPServer, ThreadingMixIn
from typing import Any

from prometheus_client.exposition import choose_encoder
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from hpc_sched import exceptions

PATH = "/metrics"
MAX_THREADS = 8  # connections that are served at a time; others are closed
SECONDS = 5.0  # that a connection may take in all
REUSE = 1.0  # seconds for which what was collected is shown again

_TEXT = "text/plain; charset=utf-8"

Collect = Callable[[], Collector]
Report = Callable[[str], None]


def address_in(text: str) -> tuple[str, int]:
    """Return host and port of ``HOST:PORT`` or ``[v6]:PORT``; raises MetricsError."""
    host, colon, port = text.rpartition(":")
    is_v6 = host.startswith("[") and host.endswith("]")
    host = host[1:-1] if is_v6 else host
    is_port = port.isascii() and port.isdecimal() and len(port) <= 5 and int(port) <= 65535
    if not colon or not host or not is_port or (":" in host) is not is_v6:
        raise exceptions.MetricsError(f"expected HOST:PORT or [IPv6]:PORT, found {text!r}")
    return host, int(port)


class Endpoint:
    """Serves what a function collects, at an address, until it is closed."""

    def __init__(self, address: str, collect: Collect, report: Report) -> None:
        """Bind and start; raises MetricsError.

        :param report: called with what goes wrong in an answer, in a thread of a connection
        """
        host, port = address_in(address)
        try:
            found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
            self._server = _Server(found[0], _Answers(collect, report))
        except OSError as error:
            raise exceptions.MetricsError(f"{address}: {error.strerror or error}") from error
        self.port: int = self._server.server_address[1]
        threading.Thread(
            target=self._server.serve_forever, name="hpc_sched metrics server", daemon=True
        ).start()

    def close(self, *, is_serving: bool = True) -> None:
        """Stop serving; in a fork, which has no thread that does, close the socket alone."""
        if is_serving:
            self._server.shutdown()
        self._server.server_close()


class _Answers:
    """The answers to scrapes; what they show is collected once for all that come in a second."""

    def __init__(self, collect: Collect, report: Report) -> None:
        self._collect, self._report = collect, report
        self._lock = threading.Lock()
        self._made_at, self._found = -REUSE, _Collected([])

    def answer(self, accept: str) -> tuple[HTTPStatus, str, bytes]:
        try:
            encode, content_type = choose_encoder(accept)
        except Exception:  # for nonsense in a version
            return HTTPStatus.BAD_REQUEST, _TEXT, b"Accept: no such version\n"
        with self._lock:
            try:
                if time.monotonic() - self._made_at >= REUSE:
                    self._found = _Collected(list(self._collect().collect()))
                    self._made_at = time.monotonic()
                return HTTPStatus.OK, content_type, encode(self._found)
            except Exception as error:
                self._report(f"{type(error).__name__}: {error}")
                return HTTPStatus.INTERNAL_SERVER_ERROR, _TEXT, b"no metrics\n"


@dataclass(frozen=True)
class _Collected(Collector):
    """What was collected at one moment."""

    metrics: Sequence[Metric]

    def collect(self) -> Iterable[Metric]:
        return self.metrics


class _Handler(BaseHTTPRequestHandler):
    server: "_Server"
    server_version, sys_version = "hpc_sched", ""
    timeout = SECONDS

    def do_GET(self) -> None:
        """Answer a scrape."""
        if self.path.partition("?")[0] != PATH:
            self._send(HTTPStatus.NOT_FOUND, _TEXT, f"expected {PATH}\n".encode())
        else:
            self._send(*self.server.answers.answer(self.headers.get("Accept", "")))

    do_HEAD = do_GET

    def _send(self, status: HTTPStatus, content_type: str, body: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Type", content_type)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:
        """Log nothing: a client could fill the log."""


class _Server(ThreadingMixIn, TCPServer):
    allow_reuse_address = daemon_threads = True
    request_queue_size = 64

    def __init__(self, found: tuple[Any, ...], answers: _Answers) -> None:
        self.address_family, self.answers = found[0], answers
        self._open: dict[socket.socket, float] = {}  # connection to time.monotonic() of its end
        self._lock = threading.Lock()
        super().__init__(found[4], _Handler)

    def process_request(self, request: Any, client_address: Any) -> None:
        """Serve a connection in a thread of its own if there are few."""
        with self._lock:
            is_served = len(self._open) < MAX_THREADS
            if is_served:
                self._open[request] = time.monotonic() + SECONDS
        if is_served:
            super().process_request(request, client_address)
        else:
            self.shutdown_request(request)

    def service_actions(self) -> None:
        """End the connections whose time is over; called twice a second."""
        with self._lock:
            late = [request for request, end in self._open.items() if time.monotonic() >= end]
            for request in late:
                # Its thread wakes up and closes it.
                try:
                    request.shutdown(socket.SHUT_RDWR)
                except OSError:
                    continue

    def shutdown_request(self, request: Any) -> None:
        """Close a connection."""
        with self._lock:
            self._open.pop(request, None)
            super().shutdown_request(request)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Ignore what a client does wrong."""
