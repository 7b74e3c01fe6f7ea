"""A service of the cloud in a process of its own, which ends with the one that started it.

Run as ``python -m tests.cloud.service NAME OPTIONS``: the console script NAME of Nova;
``nova-api``, the WSGI application of Nova's API, at a port that it says on stdout; or
``nova-computes OPTIONS -- HOST ...``, a process with nova-compute for each host.
"""

from __future__ import annotations

import importlib.metadata
import os
import sys
import traceback
from collections.abc import Sequence

from tests.contention import fabric
from tests.contention.wsgi_server import die_with_parent, make_server

FAILS = "fails"  # begins the names of VMs that no hypervisor builds
MEMORY_MB, LOCAL_GB = 65536, 1000  # of a host


def main() -> None:
    """Run the service."""
    die_with_parent()
    name = sys.argv[1]
    sys.argv[:] = sys.argv[1:]
    if name == "nova-api":
        _serve_api()
    elif name == "nova-computes":
        split = sys.argv.index("--")
        _run_computes(sys.argv[1:split], sys.argv[split + 1 :])
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


def _run_computes(options: Sequence[str], hosts: Sequence[str]) -> None:
    """Fork a nova-compute for each host; end when one of them ends.

    The modules are imported once, and shared by the processes.
    """
    command = _console("nova-compute")
    _add_driver()
    for host in hosts:
        if os.fork() == 0:
            try:
                die_with_parent()
                sys.argv[:] = ["nova-compute", *options, "--config-file", f"{host}.conf"]
                command()
            except Exception:
                traceback.print_exc()
            finally:
                os._exit(1)
    _, status = os.wait()
    sys.exit(f"a nova-compute has ended: {status}")


def _add_driver() -> None:
    """Make ``compute_driver = fake.HostDriver`` known: Nova's fake driver of the fabric's hosts."""
    from nova import exception
    from nova.compute import manager  # noqa: F401 - imported once for all
    from nova.virt import fake

    class HostDriver(fake.FakeDriver):
        vcpus, memory_mb, local_gb = fabric.VCPUS, MEMORY_MB, LOCAL_GB

        def spawn(self, context, instance, *args, **kwargs):  # type: ignore[no-untyped-def]
            if instance.display_name.startswith(FAILS):
                raise exception.InstanceDeployFailure(reason="as its name demands")
            super().spawn(context, instance, *args, **kwargs)

    fake.HostDriver = HostDriver


if __name__ == "__main__":
    main()
