"""The workers of a nova-scheduler that Nova's own launcher has forked, and their metrics."""

import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from nova import objects

from tests.functional.clouds import ROOT
from tests.scraped import Samples, samples_in

SECONDS = 60.0  # to wait for what happens in another process


@dataclass
class Worker:
    """One worker; used as tests.functional.scheduler_processes.Scheduler is."""

    path: Path  # of its socket
    _connection: socket.socket | None = field(default=None)

    @property
    def pid(self) -> int:
        return int(self.path.name)

    def begin(self, spec: objects.RequestSpec, uuids: list[str]) -> None:
        """Send a request."""
        self._connection = socket.socket(socket.AF_UNIX)
        self._connection.connect(str(self.path))
        asked = {"spec": spec.obj_to_primitive(), "uuids": uuids}
        self._connection.sendall(json.dumps(asked).encode() + b"\n")

    def answer(self) -> Mapping[str, object]:
        """Return what became of it."""
        with self._connection, self._connection.makefile() as stream:
            return json.loads(stream.read())


@dataclass
class Workers:
    """A nova-scheduler with its workers."""

    process: subprocess.Popen[bytes]
    sockets: Path
    log: Path
    address: str  # of its metrics

    def alive(self) -> list[Worker]:
        """Return the workers that take requests, the oldest first."""
        found = sorted(self.sockets.glob("*[0-9]"), key=lambda path: path.stat().st_ctime_ns)
        return [Worker(path) for path in found if _is_alive(int(path.name))]

    def wait_for(self, count: int) -> list[Worker]:
        """Return the workers as soon as there are some."""
        return wait(lambda: len(found := self.alive()) == count and found)

    def serving(self) -> Worker:
        """Return the worker that has the port."""
        port = f":{int(self.address.rpartition(':')[2]):04X}"
        inodes = {
            line.split()[9]
            for line in Path("/proc/net/tcp").read_text().splitlines()[1:]
            if line.split()[1].endswith(port) and line.split()[3] == "0A"
        }
        for worker in self.alive():
            for descriptor in Path(f"/proc/{worker.pid}/fd").iterdir():
                found = re.fullmatch(r"socket:\[(\d+)\]", os.readlink(descriptor))
                if found and found[1] in inodes:
                    return worker
        raise AssertionError("no worker listens")

    def scrape(self, path: str = "/metrics") -> str:
        """Return the metrics, as soon as they can be had."""

        def read() -> str | None:
            try:
                url = f"http://{self.address}{path}"
                with urllib.request.urlopen(url, timeout=60) as answer:
                    return answer.read().decode()
            except OSError:
                return None

        return wait(read)

    def samples(self) -> Samples:
        """Return the metrics."""
        return samples_in(self.scrape())

    def wait_until(self, name: str, value: float, **labels: str) -> Samples:
        """Return the metrics as soon as one of them has a value."""
        wanted = (name, frozenset(labels.items()))
        return wait(lambda: (found := self.samples()).get(wanted) == value and found)


def wait(condition: Callable[[], object]):
    """Return what a function returns as soon as it is true."""
    end = time.monotonic() + SECONDS
    while not (found := condition()):
        assert time.monotonic() < end, "it did not happen in time"
        time.sleep(0.1)
    return found


@contextmanager
def started_workers(conf: Path, folder: Path, address: str) -> Iterator[Workers]:
    """Yield a nova-scheduler that is started; killed with its workers afterwards."""
    sockets, log = folder / "sockets", folder / "nova-scheduler.log"
    sockets.mkdir()
    module = "tests.functional.scheduler_workers"
    with (folder / "stderr").open("w") as errors:
        process = subprocess.Popen(
            [sys.executable, "-m", module, sockets, "--config-file", conf, "--log-file", log],
            cwd=ROOT,
            stderr=errors,
            start_new_session=True,
        )
    found = Workers(process, sockets, log, address)
    try:
        yield found
    finally:
        pids = [worker.pid for worker in found.alive()]
        process.kill()
        process.wait()
        for pid in pids:
            if _is_alive(pid):
                os.kill(pid, signal.SIGKILL)
        wait(lambda: not any(map(_is_alive, pids)))


def _is_alive(pid: int) -> bool:
    try:
        # A zombie of a parent that is gone, or has not looked, is none.
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def free_port() -> int:
    """Return a port that was free a moment ago."""
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return found.getsockname()[1]
