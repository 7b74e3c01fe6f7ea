"""Placement over HTTP, where every request is an admin's.

Run as ``python -m tests.contention.placement_server CONFIG LOG`` it is a process of its own, which
says its port on stdout and logs the calls that it is sent.
"""

import io
import json
import sys
import threading
import time
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, TextIO
from wsgiref import simple_server

from oslo_config import cfg
from placement import conf as placement_conf
from placement import db_api, deploy

# Fewer than connections in the pool of Placement's database.
THREADS = 12

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


def logged(application: Application, log: TextIO) -> Application:
    """Return an application that logs each call as a line of JSON, when it has been answered."""
    lock = threading.Lock()

    def call(environ: Environ, start_response: Callable[..., Any]) -> Iterable[bytes]:
        sent = environ["wsgi.input"].read(int(environ.get("CONTENT_LENGTH") or 0))
        environ["wsgi.input"] = io.BytesIO(sent)
        entry: Environ = {
            "began": time.monotonic(),
            "method": environ["REQUEST_METHOD"],
            "path": environ["PATH_INFO"],
        }

        def answered(status: str, *others: Any) -> Any:
            entry["status"] = int(status.split()[0])
            return start_response(status, *others)

        body = list(application(environ, answered))
        if sent and entry["path"].startswith("/allocations"):
            entry["body"] = json.loads(sent)
        if entry["status"] == 409:
            entry["code"] = json.loads(b"".join(body))["errors"][0].get("code")
        entry["ended"] = time.monotonic()
        with lock:
            log.write(json.dumps(entry) + "\n")
            log.flush()
        return body

    return call


def main() -> None:
    """Serve until the process is killed."""
    path, log = sys.argv[1:]
    config = cfg.ConfigOpts()
    placement_conf.register_opts(config)
    config(["--config-file", path], project="placement")
    db_api.configure(config)
    application = deploy.loadapp(config)
    with Path(log).open("a") as file:
        server = make_server(logged(application, file))
        print(server.server_port, flush=True)
        server.serve_forever()


if __name__ == "__main__":
    main()
