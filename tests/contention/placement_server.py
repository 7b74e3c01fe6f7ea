"""Placement over HTTP, where every request is an admin's.

Run as ``python -m tests.contention.placement_server CONFIG LOG DELAY`` it is a process of its own,
which says its port on stdout and logs the calls that it is sent, each after some seconds.
"""

import io
import json
import sys
import threading
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, TextIO

from oslo_config import cfg
from placement import conf as placement_conf
from placement import db_api, deploy

from tests.contention.wsgi_server import Application, Environ, die_with_parent, make_server


def logged(application: Application, log: TextIO, delay: float = 0.0) -> Application:
    """Return an application that logs each call as a line of JSON, when it has been answered.

    :param delay: seconds before each call
    """
    lock = threading.Lock()

    def call(environ: Environ, start_response: Callable[..., Any]) -> Iterable[bytes]:
        sent = environ["wsgi.input"].read(int(environ.get("CONTENT_LENGTH") or 0))
        environ["wsgi.input"] = io.BytesIO(sent)
        time.sleep(delay)
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
    die_with_parent()
    path, log, *delay = sys.argv[1:]
    config = cfg.ConfigOpts()
    placement_conf.register_opts(config)
    config(["--config-file", path], project="placement")
    db_api.configure(config)
    application = deploy.loadapp(config)
    with Path(log).open("a") as file:
        server = make_server(logged(application, file, float(*delay)))
        print(server.server_port, flush=True)
        server.serve_forever()


if __name__ == "__main__":
    main()
