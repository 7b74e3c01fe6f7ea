"""A simulated InfiniBand fabric that the real ibnetdiscover discovers: Debian's ibsim-utils."""

import os
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.ib_dumps import Fabric

_PRELOADED = ("libumad2sim.so", "umad2sim/libumad2sim.so")
_FOLDERS = ("/usr/lib", "/usr/lib64", "/usr/lib/x86_64-linux-gnu", "/usr/lib/aarch64-linux-gnu")
# Sockets of ibsim are made after it says that it is ready.
_READY = b"Network simulator ready"
_SECONDS = 120.0
_POLL = 0.02


class Simulator:
    """A running ibsim: what its console is told, and the command that discovers its fabric."""

    def __init__(self, process: subprocess.Popen[bytes], command: list[str]) -> None:
        self.command = command
        self._process = process

    def tell(self, line: str) -> None:
        """Give the console a command, such as ``Unlink "S-0002c90300a00001"``."""
        assert self._process.stdin is not None
        self._process.stdin.write(f"{line}\n".encode())
        self._process.stdin.flush()


@contextmanager
def simulated(fabric: Fabric, folder: Path) -> Iterator[Simulator]:
    """Simulate a fabric; the test is skipped where the programs for that are missing.

    Server and clients meet by a name that no other run has, and leave files in the folder alone:
    the preloaded library makes a sysfs of its own where its process runs.
    """
    ibsim, ibnetdiscover, library = _found()
    network = folder / "network"
    network.write_text(fabric.text())
    log = folder / "ibsim.log"
    name = f"hpc-sched-{os.getpid()}-{time.monotonic_ns()}"
    with log.open("wb") as output:
        process = subprocess.Popen(
            [ibsim, "-s", str(network)],
            cwd=folder,
            env={**os.environ, "IBSIM_SOCKNAME": name},
            stdin=subprocess.PIPE,
            stdout=output,
            stderr=subprocess.STDOUT,
        )
    try:
        end = time.monotonic() + _SECONDS
        while _READY not in log.read_bytes() or f"@{name}:out0" not in _sockets():
            assert process.poll() is None, log.read_text()
            assert time.monotonic() < end, f"ibsim is not ready: {log.read_text()}"
            time.sleep(_POLL)
        setting = [f"LD_PRELOAD={library}", f"IBSIM_SOCKNAME={name}", "SIM_HOST="]
        yield Simulator(process, ["env", "-C", str(folder), *setting, ibnetdiscover])
    finally:
        process.kill()
        process.communicate(timeout=_SECONDS)


def _found() -> tuple[str, str, str]:
    """Return the paths of ibsim, ibnetdiscover and the library that makes them meet."""
    path = os.pathsep.join([os.environ.get("PATH", ""), "/usr/sbin", "/usr/bin"])
    programs = [shutil.which(name, path=path) for name in ("ibsim", "ibnetdiscover")]
    libraries = [Path(folder, name) for folder in _FOLDERS for name in _PRELOADED]
    library = next((str(file) for file in libraries if file.exists()), None)
    ibsim, ibnetdiscover = programs
    if ibsim is None or ibnetdiscover is None or library is None:
        pytest.skip("no ibsim, ibnetdiscover or libumad2sim (ibsim-utils, infiniband-diags)")
    return ibsim, ibnetdiscover, library


def _sockets() -> str:
    """Return the names of the sockets of this machine; abstract ones begin with @."""
    return Path("/proc/net/unix").read_text()
