"""Databases, Placement and schedulers, each a process of its own; nova.conf for all of them."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from nova import objects

from tests.contention import fabric
from tests.functional import engines, servers
from tests.functional.database_files import write_conf
from tests.functional.trees import write_tree

ROOT = Path(__file__).resolve().parents[2]
SAMPLE_CONF = ROOT / "etc" / "nova.conf.sample"
# What differs between the sides that are compared.
SIDES: Mapping[str, str] = {
    "claims": "",
    "plans": "[hpc_sched]\ngang_claims = false\n",
    "stock": "[filter_scheduler]\nenabled_filters = ComputeFilter,ComputeCapabilitiesFilter,"
    "ImagePropertiesFilter,ServerGroupAntiAffinityFilter,ServerGroupAffinityFilter\n"
    "weight_classes = nova.scheduler.weights.all_weighers\n",
}


class SchedulerDiedError(Exception):
    """The scheduler ended before it answered, as the conductor sees by a timeout."""


@dataclass
class Scheduler:
    """A scheduler's process, which serves many requests at a time."""

    command: Sequence[str]
    decisions: Path  # its decision log
    times: Path  # what it measures of each decision
    pending: dict[str, Future[Mapping[str, Any]]] = field(default_factory=dict)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def start(self) -> None:
        """Start the process and wait until it takes requests."""
        self.process = subprocess.Popen(
            self.command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=ROOT, text=True
        )
        assert self.process.stdout is not None
        if json.loads(self.process.stdout.readline() or "null") != "ready":
            raise SystemExit(f"a scheduler did not start: {' '.join(map(str, self.command))}")
        threading.Thread(target=self._read, args=(self.process,), daemon=True).start()

    def ask(self, spec: objects.RequestSpec, uuids: Sequence[str]) -> Mapping[str, Any]:
        """Return the answer to a request.

        :raises SchedulerDiedError: if the process ends before
        """
        asked = {"spec": spec.obj_to_primitive(), "uuids": list(uuids), "alternates": True}
        future: Future[Mapping[str, Any]] = Future()
        with self.lock:
            if self.process.poll() is not None:
                raise SchedulerDiedError
            self.pending[uuids[0]] = future
            assert self.process.stdin is not None
            try:
                self.process.stdin.write(json.dumps(asked) + "\n")
                self.process.stdin.flush()
            except BrokenPipeError:
                raise SchedulerDiedError from None
        return future.result()

    def kill(self) -> None:
        """End the process at once, wherever it is."""
        self.process.kill()
        self.process.wait()

    def _read(self, process: subprocess.Popen[str]) -> None:
        assert process.stdout is not None
        for line in process.stdout:
            answer = json.loads(line)
            with self.lock:
                future = self.pending.pop(answer["first"])
            future.set_result(answer)
        process.wait()
        with self.lock:
            left, self.pending = self.pending, {}
        for future in left.values():
            future.set_exception(SchedulerDiedError())


@dataclass
class ReloadingScheduler(Scheduler):
    """A scheduler's master process, whose worker serves requests until it gets SIGHUP."""

    path: str = ""  # of the socket that stands for the queue of messages

    def start(self) -> None:
        """Start master and worker, and wait until that takes requests."""
        self.process = subprocess.Popen(self.command, stdout=subprocess.PIPE, cwd=ROOT, text=True)
        assert self.process.stdout is not None
        if json.loads(self.process.stdout.readline() or "null") != "ready":
            raise SystemExit(f"a scheduler did not start: {' '.join(map(str, self.command))}")
        # Each further worker says that it is ready.
        threading.Thread(target=self.process.stdout.read, daemon=True).start()

    def ask(self, spec: objects.RequestSpec, uuids: Sequence[str]) -> Mapping[str, Any]:
        """Return the answer to a request.

        :raises SchedulerDiedError: if the worker ends before
        """
        asked = {"spec": spec.obj_to_primitive(), "uuids": list(uuids), "alternates": True}
        with socket.socket(socket.AF_UNIX) as connection:
            connection.connect(self.path)
            connection.sendall(json.dumps(asked).encode() + b"\n")
            with connection.makefile() as stream:
                line = stream.readline()
        if not line:
            raise SchedulerDiedError
        found: Mapping[str, Any] = json.loads(line)
        return found

    def reload(self) -> None:
        """Send SIGHUP."""
        self.process.send_signal(signal.SIGHUP)

    def kill(self) -> None:
        """End master and worker at once."""
        # Nova's launcher makes its master the leader of a group.
        os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()


@dataclass(frozen=True)
class Deployment:
    """What all sides share."""

    databases: engines.Databases
    placement_url: str  # of its database
    placement_log: Path
    conf: Path  # nova.conf
    folder: Path
    cell_timeout: int  # of hpc_sched, in seconds

    @property
    def api_delay(self) -> Path:
        """The file with the seconds by which what schedulers send to the API database is late."""
        return self.folder / "api_delay"

    @contextmanager
    def schedulers(
        self, side: str, count: int, *, reload: bool = False
    ) -> Iterator[list[Scheduler]]:
        """Yield schedulers of one side that have started; they end afterwards.

        :param reload: whether they can be sent SIGHUP
        """
        found: list[Scheduler] = []
        for number in range(count):
            name = f"{side}{number}"
            decisions = self.folder / f"{name}.jsonl"
            own = self.folder / f"{name}.conf"
            own.write_text(f"{SIDES[side]}\n[hpc_sched]\ndecision_log = {decisions}\n")
            files = ("--config-file", str(self.conf), "--config-file", str(own))
            log = ("--log-file", str(self.folder / f"{name}.log"))
            times = self.folder / f"{name}.times"
            if reload:
                path = str(self.folder / f"{name}.socket")
                process = ("tests.contention.reloading_scheduler", path, str(times))
            else:
                process = ("tests.contention.timed_scheduler", str(times), str(self.api_delay))
            command = (sys.executable, "-m", *process, *files, *log)
            found.append(
                ReloadingScheduler(command, decisions, times, path=path)
                if reload
                else Scheduler(command, decisions, times)
            )
        with ExitStack() as stack:
            for scheduler in found:
                scheduler.start()
                stack.callback(scheduler.kill)
            yield found


@contextmanager
def deployed(
    engine: str, folder: Path, conflict_retries: int, cell_timeout: int, delay: float = 0.0
) -> Iterator[Deployment]:
    """Yield an empty deployment on databases of its own, which are dropped afterwards.

    :param conflict_retries: Placement's ``allocation_conflict_retry_count``
    :param cell_timeout: of hpc_sched, in seconds
    :param delay: of Placement's answers, in seconds
    """
    with ExitStack() as stack:
        databases = stack.enter_context(engines.migrated(engine))
        url = stack.enter_context(servers.databases_on(engine))("placement")
        served = placement_served(url, folder, conflict_retries, delay)
        endpoint, log = stack.enter_context(served)
        conf = write_conf(
            folder / "nova.conf",
            {
                # Nobody reports.
                "DEFAULT": {"transport_url": "fake://", "service_down_time": "1000000"},
                "api_database": {"connection": databases.urls["api"]},
                "database": {"connection": databases.urls["cell1"]},
                "placement": {"auth_type": "none", "endpoint_override": endpoint},
                "hpc_sched": {
                    "cell_timeout": str(cell_timeout),
                    "topology_file": str(
                        write_tree(folder / "topology.yaml", fabric.TREE, fabric.PROCESSORS)
                    ),
                },
            },
            text=sample_conf(),
        )
        yield Deployment(databases, url, log, conf, folder, cell_timeout)


@contextmanager
def placement_served(
    url: str, folder: Path, conflict_retries: int, delay: float = 0.0
) -> Iterator[tuple[str, Path]]:
    """Yield the URL of a Placement that is a process of its own, and the log of its calls.

    :param url: of its database
    :param conflict_retries: its ``allocation_conflict_retry_count``
    :param delay: of its answers, in seconds
    """
    log = folder / "placement.jsonl"
    placement = write_conf(
        folder / "placement.conf",
        {
            "api": {"auth_strategy": "noauth2"},
            "placement": {"allocation_conflict_retry_count": str(conflict_retries)},
            "placement_database": {"connection": url, "sync_on_startup": "true"},
        },
    )
    arguments = (placement, log, str(delay))
    command = (sys.executable, "-m", "tests.contention.placement_server", *arguments)
    with ExitStack() as stack:
        errors = stack.enter_context((folder / "placement.log").open("w"))
        served = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=errors, cwd=ROOT, text=True
        )
        stack.callback(served.wait)
        stack.callback(served.kill)
        assert served.stdout is not None
        port = served.stdout.readline().strip()
        if not port:
            raise SystemExit("Placement did not start")
        yield f"http://127.0.0.1:{port}/", log


def sample_conf() -> str:
    """Return how the sample enables the filters and weighers."""
    return SAMPLE_CONF.read_text().partition("[hpc_sched]")[0]
