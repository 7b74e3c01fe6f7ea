"""WSGI applications over HTTP, in processes that end with the one that started them."""

import ctypes
import signal
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from wsgiref import simple_server

# Fewer than connections in the pool of an application's database.
THREADS = 12
PR_SET_PDEATHSIG = 1  # linux/prctl.h

Environ = dict[str, Any]
Application = Callable[[Environ, Callable[..., Any]], Iterable[bytes]]


class Server(simple_server.WSGIServer):
    """Some calls at a time, as a WSGI server with a pool of threads; the others wait."""

    request_queue_size = 256  # a burst of connections does not overflow the backlog

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self._pool = ThreadPoolExecutor(THREADS)

    def process_request(self, request: Any, client_address: Any) -> None:
        """Serve a connection in a thread of the pool."""
        self._pool.submit(self._serve, request, client_address)

    def server_close(self) -> None:
        """Close the socket, and end the threads once they have served their connections."""
        super().server_close()
        self._pool.shutdown()

    def _serve(self, request: Any, client_address: Any) -> None:
        try:
            self.finish_request(request, client_address)
        except Exception:
            self.handle_error(request, client_address)
        finally:
            self.shutdown_request(request)


class Quiet(simple_server.WSGIRequestHandler):
    """Says nothing of requests."""

    def log_message(self, *_args: object) -> None:
        """Say nothing."""


def make_server(application: Application) -> Server:
    """Return a server at a free port of 127.0.0.1, to which every request is an admin's."""

    def call(environ: Environ, start_response: Callable[..., Any]) -> Iterable[bytes]:
        return application(environ | {"HTTP_X_AUTH_TOKEN": "admin"}, start_response)

    return simple_server.make_server("127.0.0.1", 0, call, Server, Quiet)


def die_with_parent() -> None:
    """Have the kernel kill this process when the one that started it ends, however it ends."""
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
