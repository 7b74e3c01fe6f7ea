"""An HTTP server for metrics: few threads, nothing but GET, and an end for slow clients."""

import socket
import threading
from collections.abc import Callable, Iterable
from contextlib import suppress
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler
from socketserver import TCPServer, ThreadingMixIn
from typing import Any

from prometheus_client.exposition import choose_encoder
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from hpc_sched import clock, exceptions
from hpc_sched.metrics.address import Address
from hpc_sched.metrics.catalogue import PATH, SERVER

MAX_THREADS = 8  # connections that are served at a time; others are closed
SECONDS = 5.0  # that a connection may take in all
REUSE = 1.0  # seconds for which what was collected is shown again
RETRY = 0.5  # seconds until a connection is accepted again after a failure

_TEXT = "text/plain; charset=utf-8"

Collect = Callable[[], Collector]
Report = Callable[[str], None]


class Endpoint:
    """Serves what a function collects, at an address, until it is closed."""

    def __init__(self, address: Address, collect: Collect, report: Report) -> None:
        """Bind and start; raises MetricsError.

        :param report: called with what goes wrong in an answer, in a thread of a connection; once
            for all answers until one is good again
        """
        try:
            found = socket.getaddrinfo(*address, type=socket.SOCK_STREAM)
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


class _Answers(Collector):
    """The answers to scrapes; what they show is collected once for all that come in a second."""

    def __init__(self, collect: Collect, report: Report) -> None:
        self._collect, self._report = collect, report
        self._lock = threading.Lock()
        self._made_at, self._found = -REUSE, list[Metric]()
        self._problem = ""  # reported last; empty after an answer without one

    def collect(self) -> Iterable[Metric]:
        """Return what was collected last."""
        return self._found

    def answer(self, accept: str) -> tuple[HTTPStatus, str, bytes]:
        try:
            encode, content_type = choose_encoder(accept)
        except Exception:  # for nonsense in a version
            return HTTPStatus.BAD_REQUEST, _TEXT, b"Accept: no such version\n"
        with self._lock:
            try:
                if clock.current.monotonic() - self._made_at >= REUSE:
                    self._found = list(self._collect().collect())
                    self._made_at = clock.current.monotonic()
                body = encode(self)
                self._problem = ""
                return HTTPStatus.OK, content_type, body
            except Exception as error:
                problem = f"{type(error).__name__}: {error}"
                if problem != self._problem:
                    self._report(problem)
                self._problem = problem
                return HTTPStatus.INTERNAL_SERVER_ERROR, _TEXT, b"no metrics\n"


class _Handler(BaseHTTPRequestHandler):
    server: "_Server"
    server_version, sys_version = SERVER, ""
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
        self._open: dict[socket.socket, float] = {}  # connection to the monotonic time of its end
        self._lock = threading.Lock()
        self._is_ending, self._ended = False, threading.Event()
        super().__init__(found[4], _Handler)

    def serve_forever(self, poll_interval: float = 0.5) -> None:
        """Serve until :meth:`shutdown`.

        Not in the loop of the base class: its selector holds up all green threads if socketserver
        was imported before eventlet, as by logging.config in a wrapper around nova-scheduler.
        """
        self.socket.settimeout(poll_interval)
        try:
            while not self._is_ending:
                # Returns after the timeout, too.
                self._handle_request_noblock()  # type: ignore[attr-defined]
                self.service_actions()
                # On eventlet accept() lets others run only where it waits.
                clock.current.sleep(0)
        finally:
            self._ended.set()

    def shutdown(self) -> None:
        """End :meth:`serve_forever`, and wait until it has ended."""
        self._is_ending = True
        self._ended.wait()

    def get_request(self) -> Any:
        """Return the next connection; wait after a failure, as without a free file descriptor.

        It would come again at once, for the connection stays in the queue.
        """
        try:
            return super().get_request()
        except TimeoutError:
            raise
        except OSError:
            clock.current.sleep(RETRY)
            raise

    def process_request(self, request: Any, client_address: Any) -> None:
        """Serve a connection in a thread of its own if there are few."""
        with self._lock:
            is_served = len(self._open) < MAX_THREADS
            if is_served:
                self._open[request] = clock.current.monotonic() + SECONDS
        if is_served:
            super().process_request(request, client_address)
        else:
            self.shutdown_request(request)

    def service_actions(self) -> None:
        """End the connections whose time is over; called twice a second at least."""
        with self._lock:
            now = clock.current.monotonic()
            for request in [request for request, end in self._open.items() if now >= end]:
                # Its thread wakes up and closes it.
                with suppress(OSError):
                    request.shutdown(socket.SHUT_RDWR)

    def shutdown_request(self, request: Any) -> None:
        """Close a connection."""
        with self._lock:
            self._open.pop(request, None)
            super().shutdown_request(request)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Ignore what a client does wrong."""
