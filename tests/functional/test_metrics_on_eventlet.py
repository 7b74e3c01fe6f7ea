"""Metrics of two workers on eventlet: from the first request on, and after one is killed."""

import os
import signal
import subprocess
import sys
import urllib.request
from pathlib import Path

import pytest

from tests.functional.clouds import ROOT, write_topology
from tests.functional.worker_processes import free_port, wait
from tests.scraped import samples_in

pytestmark = pytest.mark.ci

DECIDED = ("hpc_sched_decisions_total", frozenset({("answer", "planned"), ("mode", "active")}))
WORKERS = ("hpc_sched_workers", frozenset())
# logging.config imports socketserver, here before eventlet has replaced anything.
LATE = """
import logging.config
import eventlet
eventlet.monkey_patch()
import urllib.request
from hpc_sched.metrics import endpoint as module
from hpc_sched.metrics.address import Address
from hpc_sched.metrics.endpoint import Endpoint

class Nothing:
    def collect(self):
        return []

# The server waits for a connection for half a minute at a time: others run meanwhile.
module._Server.serve_forever.__defaults__ = (30.0,)
waits = []
real = module._Server.service_actions
module._Server.service_actions = lambda self: (waits.append(1), real(self))
endpoint = Endpoint(Address("127.0.0.1", 0), Nothing, print)
for _ in range(10):
    eventlet.sleep(0.01)
print(not waits)
print(urllib.request.urlopen(f"http://127.0.0.1:{endpoint.port}/metrics").status)
endpoint.close()
"""
# A scrape comes when there is no file descriptor left to accept it with. Argument: threads.
EXHAUSTED = """
import sys
if sys.argv[1] == "green":
    import eventlet
    eventlet.monkey_patch()
import os
import resource
import socket
import threading
import time
from hpc_sched import clock
from hpc_sched.metrics import endpoint as module
from hpc_sched.metrics.address import Address
from hpc_sched.metrics.endpoint import Endpoint

class Nothing:
    def collect(self):
        return []

class Pausing(clock.SystemClock):
    # Its pause between two failures ends when file descriptors are free.
    def sleep(self, seconds):
        if seconds == module.RETRY:
            pauses.append(seconds)
            free.wait()
        else:
            super().sleep(seconds)

pauses, tried, free = [], [], threading.Event()
clock.current = Pausing()
real = module._Server.get_request
module._Server.get_request = lambda self: (tried.append(1), real(self))[1]
endpoint = Endpoint(Address("127.0.0.1", 0), Nothing, print)
client = socket.socket()
client.settimeout(120)
while not tried:
    time.sleep(0.01)
resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))
held = []
try:
    while True:
        held.append(os.open(os.devnull, os.O_RDONLY))
except OSError:
    pass
client.connect(("127.0.0.1", endpoint.port))
client.sendall(b"GET /metrics HTTP/1.0\\r\\n\\r\\n")
while not pauses:
    time.sleep(0.01)
before = len(tried)
for _ in range(40):
    time.sleep(0.01)
print(len(pauses), len(tried) - before)
for each in held:
    os.close(each)
free.set()
print(client.recv(15).decode())
"""


def test_green_workers_share_an_endpoint_that_outlives_the_one_that_serves(tmp_path: Path):
    address = f"127.0.0.1:{free_port()}"
    topology = write_topology(tmp_path, {"leaf1": ["n1", "n2"]})
    arguments = [topology, address, tmp_path]
    with (tmp_path / "log").open("w") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", "tests.functional.eventlet_workers", *arguments],
            cwd=ROOT,
            stderr=log,
            env={**os.environ, "OS_NOVA_DISABLE_EVENTLET_PATCHING": "false"},
        )

    def workers() -> list[int]:
        return [int(path.name) for path in tmp_path.glob("[0-9]*")]

    def decide(pid: int) -> None:
        (tmp_path / str(pid) / "request").touch()

    def shown(sample: tuple) -> float | None:
        try:
            with urllib.request.urlopen(f"http://{address}/metrics", timeout=60) as answer:
                return samples_in(answer.read().decode()).get(sample)
        except OSError:
            return None

    try:
        first, second = wait(lambda: len(found := workers()) == 2 and found)
        # Without a request there is no thread.
        assert shown(WORKERS) is None
        decide(first)
        wait(lambda: shown(DECIDED) == 1)
        decide(second)
        wait(lambda: (shown(DECIDED), shown(WORKERS)) == (2, 2))
        os.kill(first, signal.SIGKILL)
        wait(lambda: shown(DECIDED) == 2 and shown(WORKERS) == 1)
        [third] = wait(lambda: set(workers()) - {first, second})
        decide(third)
        wait(lambda: (shown(DECIDED), shown(WORKERS)) == (3, 2))
    finally:
        process.terminate()
        try:
            process.wait(120)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def test_the_endpoint_holds_no_green_thread_up_if_eventlet_comes_late():
    done = subprocess.run(
        [sys.executable, "-c", LATE], cwd=ROOT, capture_output=True, text=True, timeout=300
    )
    assert done.stdout.split() == ["True", "200"], done.stderr


@pytest.mark.parametrize("threads", ["green", "native"])
def test_a_worker_without_file_descriptors_serves_requests_and_answers_later(threads: str):
    done = subprocess.run(
        [sys.executable, "-c", EXHAUSTED, threads],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.stdout.splitlines() == ["1 0", "HTTP/1.0 200 OK"], done.stderr
