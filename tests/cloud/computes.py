"""The computes of the cloud, a process each, forked from one that has imported Nova.

That one reads commands, a line each: ``kill HOST ...`` and ``start HOST ...``.
"""

from __future__ import annotations

import os
import select
import signal
import sys
import traceback
from collections.abc import Callable, Sequence

from tests.contention import fabric
from tests.contention.wsgi_server import die_with_parent

FAILS = "fails"  # begins the names of VMs that no hypervisor builds
MEMORY_MB, LOCAL_GB = 65536, 1000  # of a host
LOOK_EVERY = 0.5  # seconds; for computes that have ended
STDIN = 0


def run(nova_compute: Callable[[], object], options: Sequence[str], hosts: Sequence[str]) -> None:
    """Start a nova-compute for each host and obey commands; end when one of them ends unbidden."""
    _add_driver()
    pids = {host: _fork(nova_compute, options, host) for host in hosts}
    while True:
        readable, _, _ = select.select([STDIN], [], [], LOOK_EVERY)
        # A line is shorter than what a pipe takes at once, so that only whole ones are read.
        for line in os.read(STDIN, 1 << 16).decode().splitlines() if readable else ():
            command, *names = line.split()
            for host in names:
                if command == "kill":
                    os.kill(pids[host], signal.SIGKILL)
                    os.waitpid(pids.pop(host), 0)
                else:
                    pids[host] = _fork(nova_compute, options, host)
        for host, pid in pids.items():
            ended, status = os.waitpid(pid, os.WNOHANG)
            if ended:
                sys.exit(f"the nova-compute of {host} has ended: {status}")


def _fork(nova_compute: Callable[[], object], options: Sequence[str], host: str) -> int:
    if pid := os.fork():
        return pid
    try:
        die_with_parent()
        sys.argv[:] = ["nova-compute", *options, "--config-file", f"{host}.conf"]
        nova_compute()
    except Exception:
        traceback.print_exc()
    finally:
        os._exit(1)


def _add_driver() -> None:
    """Make ``compute_driver = fake.HostDriver`` known: Nova's fake driver of the fabric's hosts.

    The node has the same UUID after another start of its compute, as those of libvirt.
    """
    from nova import exception
    from nova.compute import manager  # noqa: F401 - imported once for all
    from nova.virt import fake

    class HostDriver(fake.FakeDriverWithoutFakeNodes):
        vcpus, memory_mb, local_gb = fabric.VCPUS, MEMORY_MB, LOCAL_GB

        def spawn(self, context, instance, *args, **kwargs):  # type: ignore[no-untyped-def]
            if instance.display_name.startswith(FAILS):
                raise exception.InstanceDeployFailure(reason="as its name demands")
            super().spawn(context, instance, *args, **kwargs)

    fake.HostDriver = HostDriver
