"""Glance with one image, and Neutron without ports: what nova-api and nova-compute call of both.

Stubs: the images are never read or written, for the hypervisors are fake, and no server has a
network. The image of a server that is shelved is that same one, and deleting it changes nothing.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.contention.wsgi_server import Application, Environ, make_server

IMAGE = "155d900f-4e14-4e4c-a73d-069cbf4541e6"
_DETAILS = {
    "id": IMAGE,
    "name": "image",
    "status": "active",
    "visibility": "public",
    "container_format": "bare",
    "disk_format": "raw",
    "size": 1,
    "min_disk": 0,
    "min_ram": 0,
    "protected": False,
    "tags": [],
    "owner": "project",
    "created_at": "2026-01-01T00:00:00Z",
    "updated_at": "2026-01-01T00:00:00Z",
}
_ANSWERS = {
    f"/v2/images/{IMAGE}": _DETAILS,
    "/v2/images": _DETAILS,  # a new one
    "/v2/schemas/image": {"name": "image", "properties": {key: {} for key in _DETAILS}},
    "/v2.0/extensions": {"extensions": []},
    "/v2.0/networks": {"networks": []},
    "/v2.0/ports": {"ports": []},
    "/v2.0/security-groups": {"security_groups": []},
    "/v2.0/floatingips": {"floatingips": []},
}


@contextmanager
def served(unknown: Path) -> Iterator[str]:
    """Yield the URL of both APIs.

    :param unknown: file that calls are appended to which have no answer
    """
    server = make_server(_application(unknown))
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def _application(unknown: Path) -> Application:
    def call(environ: Environ, start_response: Callable[..., object]) -> Iterable[bytes]:
        path = environ["PATH_INFO"].removesuffix(".json")
        method = environ["REQUEST_METHOD"]
        answer = _ANSWERS.get(path) if method in ("GET", "POST") else None
        is_known = answer is not None or (method, path) == ("DELETE", f"/v2/images/{IMAGE}")
        if not is_known:
            with unknown.open("a") as file:
                file.write(f"{method} {path}\n")
        status = "200 OK" if is_known else "404 Not Found"
        start_response(status, [("Content-Type", "application/json")])
        return [json.dumps(answer or {}).encode()]

    return call
