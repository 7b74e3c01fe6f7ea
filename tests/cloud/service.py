"""A service of the cloud in a process of its own, which ends with the one that started it.

Run as ``python -m tests.cloud.service NAME OPTIONS``: the console script NAME of Nova;
``nova-api``, the WSGI application of Nova's API, at a port that it says on stdout; or
``nova-computes OPTIONS -- HOST ...``, a process with nova-compute for each host.
"""

from __future__ import annotations

import importlib.metadata
import sys

from tests.cloud import computes
from tests.contention.wsgi_server import die_with_parent, make_server


def main() -> None:
    """Run the service."""
    die_with_parent()
    name = sys.argv[1]
    sys.argv[:] = sys.argv[1:]
    if name == "nova-api":
        _serve_api()
    elif name == "nova-computes":
        split = sys.argv.index("--")
        computes.run(_console("nova-compute"), sys.argv[1:split], sys.argv[split + 1 :])
    else:
        _console(name)()


def _console(name: str):  # type: ignore[no-untyped-def]
    [found] = importlib.metadata.entry_points(group="console_scripts", name=name)
    return found.load()


def _serve_api() -> None:
    from nova.wsgi import osapi_compute

    server = make_server(osapi_compute.application)
    print(server.server_port, flush=True)
    server.serve_forever()


if __name__ == "__main__":
    main()
