"""The topology file becomes garbage, is emptied and deleted while many threads schedule.

The fabric is that of :mod:`tests.functional.pods`; at last its leaves are dealt anew.
"""

import os
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

import pytest
from oslo_utils import uuidutils

from hpc_sched.filters.group import HPCGroupFilter
from hpc_sched.nova_glue.io import loaded_topology, periodic_thread
from hpc_sched.topology import Topology
from hpc_sched.weighers.hop_byte import HopByteWeigher
from tests.functional import faults
from tests.functional.pods import FABRIC, states_of
from tests.functional.states import run, spec, weigh, wishing
from tests.functional.trees import write_tree

THREADS = 16
# Every leaf has a host of each of four leaves of before.
TREE_AT_LAST = {f"new{n}": list(FABRIC.hosts[n::8]) for n in range(8)}
AT_LAST = Topology.from_tree({"spine": TREE_AT_LAST})


class Placing:
    """Threads that place groups of four under one leaf, one after the other."""

    def __init__(self) -> None:
        self._ended = threading.Event()
        self._placed: list[tuple[float, list[str]]] = []  # when the request came, and its hosts
        self.running: list[Future[None]] = []
        # Nova has one object of each for all threads.
        self._filter, self._weigher = HPCGroupFilter(), HopByteWeigher()

    def run(self) -> None:
        while not self._ended.is_set():
            began = time.monotonic()
            asked = spec(
                count=4, uuid=uuidutils.generate_uuid(), extra_specs=wishing(require="leaf")
            )
            best = weigh(self._weigher, run(states_of(), asked, self._filter), asked)[:4]
            self._placed.append((began, best))

    def end(self) -> None:
        """Let the threads end; what one of them has raised is raised again."""
        self._ended.set()
        for thread in self.running:
            thread.result()

    def some(self) -> list[list[str]]:
        """Return the hosts of some requests that have come since."""
        now = time.monotonic()

        def since() -> list[list[str]]:
            return [hosts for began, hosts in list(self._placed) if began >= now]

        faults.wait_until(
            lambda: len(since()) >= THREADS or any(thread.done() for thread in self.running), 60
        )
        return since()


@pytest.fixture
def placing(two_pods: Path, group, monkeypatch: pytest.MonkeyPatch) -> Iterator[Placing]:
    """Schedule in sixteen threads as long as the test lasts; look at the file every 50 ms."""
    group(left=4)
    placing = Placing()
    watch = periodic_thread.PeriodicThread(loaded_topology.reload, lambda: 0.05)
    monkeypatch.setattr(loaded_topology, "watch", watch)
    with ThreadPoolExecutor(THREADS) as pool:
        placing.running = [pool.submit(placing.run) for _ in range(THREADS)]
        try:
            yield placing
        finally:
            placing.end()
            watch.interval = lambda: 0  # the thread ends with the process


def stands_under_one_leaf(topology: Topology, placed: list[list[str]]) -> bool:
    return bool(placed) and all(len({topology.leaf_of(h) for h in hosts}) == 1 for hosts in placed)


def replacement(path: Path) -> Path:
    """Return where to write a file that then replaces another in one step."""
    return path.with_suffix(".new")


def garbage(path: Path) -> None:
    replacement(path).write_bytes(b"switches: [}{\x00\x01" + os.urandom(1000))
    replacement(path).replace(path)


def a_tree_that_contradicts_itself(path: Path) -> None:
    write_tree(replacement(path), {"leaf1": ["n01"], "leaf2": ["n01"]}).replace(path)


def nothing(path: Path) -> None:
    replacement(path).touch()
    replacement(path).replace(path)


SPOILT: list[tuple[Callable[[Path], object], str]] = [
    (garbage, ""),
    (a_tree_that_contradicts_itself, ":"),
    (nothing, ": the file is empty"),
    (Path.unlink, ": cannot be read: No such file"),
    (Path.mkdir, ": cannot be read: Is a directory"),
]


def test_all_threads_keep_the_last_good_topology_and_take_a_new_good_one(
    two_pods, placing, caplog, tmp_path
):
    path, good = two_pods, loaded_topology.current()
    for spoil, error in SPOILT:
        caplog.clear()
        spoil(path)
        faults.wait_until(lambda: bool(faults.said(caplog)))
        assert stands_under_one_leaf(FABRIC, placing.some())
        assert loaded_topology.current() is good
        # It has been looked at several times since.
        time.sleep(0.2)
        [line] = faults.said(caplog)
        assert f"{path}{error}" in line
        assert "the last good topology stays in use" in line
    path.rmdir()
    write_tree(tmp_path / "new", {"spine": TREE_AT_LAST}).replace(path)
    faults.wait_until(lambda: loaded_topology.current() is not good)
    assert stands_under_one_leaf(AT_LAST, placing.some())
    placing.end()
