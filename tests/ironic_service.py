"""A real bare-metal API in a process of its own: Ironic with SQLite, without authentication.

Nova and Ironic register the same options of oslo.config, so that one process cannot have both.
"""

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import util
from pathlib import Path
from typing import Any

import pytest

from tests.ironic_lists import BareMetal

_SECONDS = 120.0
_POLL = 0.05
CLOUD = "metal"


class Service:
    """A running API: its address, and the calls that it has answered."""

    def __init__(self, folder: Path, url: str) -> None:
        self.url = url
        self._folder = folder

    def calls(self) -> list[str]:
        """Return the paths of all calls so far, with their queries."""
        return (self._folder / "calls").read_text().splitlines()


@contextmanager
def serving(metal: BareMetal, folder: Path) -> Iterator[Service]:
    """Serve nodes and ports; the test is skipped where Ironic is not installed.

    Writes a clouds.yaml with the cloud ``metal`` to the folder.
    """
    if util.find_spec("ironic") is None or util.find_spec("cheroot") is None:
        pytest.skip("no Ironic: pip install 'hpc-sched[ironic]'")
    (folder / "lists.json").write_text(json.dumps({"nodes": metal.nodes, "ports": metal.ports}))
    (folder / "calls").touch()
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", __name__, str(folder)],
            stdout=log,
            stderr=subprocess.STDOUT,
            cwd=Path(__file__).parents[1],
        )
    ready = folder / "url"
    try:
        end = time.monotonic() + _SECONDS
        while not ready.exists():
            assert process.poll() is None, (folder / "log").read_text()[-4000:]
            assert time.monotonic() < end, (folder / "log").read_text()[-4000:]
            time.sleep(_POLL)
        url = ready.read_text()
        cloud = {"auth_type": "none", "auth": {"endpoint": url}}
        cloud["baremetal_endpoint_override"] = url
        (folder / "clouds.yaml").write_text(json.dumps({"clouds": {CLOUD: cloud}}))
        yield Service(folder, url)
    finally:
        process.kill()
        process.wait(timeout=_SECONDS)


def _serve(folder: Path) -> None:
    import oslo_service.backend as backend

    backend.init_backend(backend.BackendType.THREADING)
    from cheroot.wsgi import Server
    from ironic.api import app
    from ironic.common import service
    from ironic.db import migration

    configuration = folder / "ironic.conf"
    configuration.write_text(
        "[DEFAULT]\nauth_strategy = noauth\nrpc_transport = json-rpc\n"
        f"[database]\nconnection = sqlite:///{folder}/ironic.sqlite\nsqlite_synchronous = False\n"
    )
    service.prepare_command(["ironic-api", "--config-file", str(configuration)])
    migration.create_schema()
    _fill(json.loads((folder / "lists.json").read_text()))
    api = app.VersionSelectorApplication()
    calls = (folder / "calls").open("a", buffering=1)

    def logged(environ: dict[str, Any], start_response: Any) -> Any:
        query = environ.get("QUERY_STRING")
        calls.write(environ["PATH_INFO"] + (f"?{query}" if query else "") + "\n")
        return api(environ, start_response)

    server = Server(("127.0.0.1", 0), logged)
    server.prepare()
    new = folder / "url.new"
    new.write_text(f"http://127.0.0.1:{server.bind_addr[1]}")
    os.replace(new, folder / "url")
    server.serve()


def _fill(lists: dict[str, list[dict[str, Any]]]) -> None:
    """Create nodes and ports in the database, by the objects that the API uses."""
    from ironic import objects
    from ironic.common import context as ironic_context

    objects.register_all()
    context = ironic_context.get_admin_context()
    ids: dict[str, int] = {}
    for found in lists["nodes"]:
        values = {key: found[key] for key in ("uuid", "name", "properties", "extra")}
        node = objects.Node(context, driver="fake-hardware", **values)
        node.create()
        objects.TraitList.create(context, node.id, found["traits"])
        ids[found["uuid"]] = node.id
    for found in lists["ports"]:
        keys = ("uuid", "address", "local_link_connection", "physical_network")
        values = {key: found[key] for key in keys}
        objects.Port(context, node_id=ids[found["node_uuid"]], **values).create()


if __name__ == "__main__":
    _serve(Path(sys.argv[1]))
