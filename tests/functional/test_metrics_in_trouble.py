"""Metrics that cannot be had: one ERROR, and no request notices."""

import os
import shutil
import socket
import subprocess
import sys
import threading
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import nova.conf
import pytest
from oslo_utils import uuidutils

from hpc_sched.filters.group import HPCGroupFilter
from hpc_sched.metrics import counts, endpoint
from hpc_sched.nova_glue.exporter import decision_counts, worker
from hpc_sched.nova_glue.exporter.worker import Exporter
from hpc_sched.weighers.hop_byte import HopByteWeigher
from tests.functional.pods import FABRIC, states_of
from tests.functional.states import run, spec, weigh
from tests.scraped import Samples, samples_in

CONF = nova.conf.CONF


as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root may mount a disk")
DECIDED = ("hpc_sched_decisions_total", frozenset({("answer", "planned"), ("mode", "active")}))


@pytest.fixture(autouse=True)
def quiet(two_pods: Path, group, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[None]:
    """Set up metrics without the thread: a test says when it runs."""
    group(left=4)
    monkeypatch.setattr(worker._thread, "start", lambda: None)
    # Tests before these may have started it.
    monkeypatch.setattr(worker._thread, "_function", lambda: None)
    monkeypatch.setattr(endpoint, "REUSE", 0.0)
    CONF.set_override("metrics_directory", str(tmp_path / "metrics"), "hpc_sched")
    CONF.set_override("metrics_address", "127.0.0.1:0", "hpc_sched")
    worker.reset()
    yield
    worker.reset()


def schedule() -> None:
    """Place a group of four, which comes under one leaf."""
    request = spec(count=4, uuid=uuidutils.generate_uuid())
    best = weigh(HopByteWeigher(), run(states_of(), request, HPCGroupFilter()), request)[:4]
    assert len({FABRIC.leaf_of(host) for host in best}) == 1


def scrape(port: int | None = None) -> Samples:
    """Return what is served at a port, by default that of this process."""
    port = port or worker._exporter._endpoint.port
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=60) as answer:
        return samples_in(answer.read().decode())


def errors(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [
        record.getMessage()
        for record in caplog.records
        if record.name.startswith("hpc_sched") and record.levelname in ("ERROR", "WARNING")
    ]


def test_a_process_that_is_not_forked_serves_from_its_first_run_on(caplog):
    schedule()
    worker._run()
    assert scrape()[DECIDED] == 1
    schedule()
    # A scrape writes what was counted since.
    assert scrape()[DECIDED] == 2
    assert errors(caplog) == []


@pytest.mark.parametrize("module", ["prometheus_client", "prometheus_client.multiprocess"])
def test_without_prometheus_client_there_is_one_error(caplog, monkeypatch, module):
    for name in [name for name in sys.modules if name.startswith("hpc_sched.metrics.")]:
        if name.endswith(("endpoint", "value_files")):
            monkeypatch.delitem(sys.modules, name)
            monkeypatch.delattr(name)
    for name in [name for name in sys.modules if name.startswith(module)]:
        monkeypatch.setitem(sys.modules, name, None)
    schedule()
    schedule()
    worker._run()
    [error] = errors(caplog)
    assert "metrics_address needs the package prometheus_client" in error
    assert error.endswith("; there are no metrics")
    assert counts.numbers() == {}


@pytest.mark.parametrize("address", ["9", "localhost", "::1:9"])
def test_a_wrong_address_is_one_error(caplog, address):
    CONF.set_override("metrics_address", address, "hpc_sched")
    schedule()
    schedule()
    [error] = errors(caplog)
    assert f"expected HOST:PORT or [IPv6]:PORT, found '{address}'" in error


def test_a_port_that_is_taken_is_one_error_and_had_as_soon_as_it_is_free(caplog):
    caplog.set_level("INFO", "hpc_sched")
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        address = f"127.0.0.1:{other.getsockname()[1]}"
        CONF.set_override("metrics_address", address, "hpc_sched")
        schedule()
        for _ in range(3):
            worker._run()
        assert errors(caplog) == [
            f"[hpc_sched] metrics_address: {address}: Address already in use; there are no metrics"
        ]
    worker._run()
    assert scrape()[DECIDED] == 1
    assert "There are metrics again" in caplog.messages


def test_a_directory_that_is_a_file_is_one_error(caplog, tmp_path):
    (tmp_path / "file").write_text("")
    CONF.set_override("metrics_directory", str(tmp_path / "file" / "metrics"), "hpc_sched")
    schedule()
    worker._run()
    schedule()
    worker._run()
    [error] = errors(caplog)
    assert f"{tmp_path}/file/metrics: Not a directory" in error


def test_a_directory_that_is_removed_is_one_error_and_made_again(caplog, tmp_path):
    caplog.set_level("INFO", "hpc_sched")
    CONF.set_override("metrics_directory", str(tmp_path / "metrics"), "hpc_sched")
    schedule()
    worker._run()
    shutil.rmtree(tmp_path / "metrics")
    schedule()
    for _ in range(3):
        worker._run()
    assert scrape()[DECIDED] == 2
    [error] = errors(caplog)
    assert "slot-0.lock: No such file or directory" in error
    assert "There are metrics again" in caplog.messages


@as_root
def test_a_full_disk_is_one_error_and_the_metrics_come_back(caplog, tmp_path):
    disk = tmp_path / "disk"
    disk.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", disk], check=True)
    try:
        CONF.set_override("metrics_directory", str(disk / "metrics"), "hpc_sched")
        schedule()
        worker._run()
        assert scrape()[DECIDED] == 1
        with (disk / "others").open("wb", buffering=0) as others:
            try:
                while True:
                    others.write(bytes(1000))
            except OSError:
                pass
        for _ in range(3):
            schedule()
            worker._run()
        [error] = errors(caplog)
        assert "No space left on device" in error
        # Old values are not shown as if they were new.
        with pytest.raises(urllib.error.HTTPError, match="500"):
            scrape()
        assert errors(caplog) == [error]
        (disk / "others").unlink()
        worker._run()
        assert scrape()[DECIDED] == 4
    finally:
        worker.reset()
        subprocess.run(["umount", disk], check=True)


def test_a_damaged_file_of_another_worker_is_an_error_and_an_answer_without_details(
    caplog, tmp_path
):
    schedule()
    worker._run()
    (worker.directory() / "counter_7.db").write_bytes(b"\x7f" * 4096)
    for _ in range(3):
        with pytest.raises(urllib.error.HTTPError, match="500"):
            scrape()
        worker._run()
    [error] = errors(caplog)
    assert "there are no metrics" in error
    schedule()


def test_a_child_does_not_report_again_what_its_parent_has(caplog, tmp_path):
    (tmp_path / "metrics").write_text("")
    schedule()
    worker._before_fork()
    [error] = errors(caplog)
    assert f"{tmp_path}/metrics: File exists" in error
    pid = os.fork()
    if pid == 0:
        worker._run()
        os._exit(len(errors(caplog)))
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 1
    (tmp_path / "metrics").unlink()
    worker._run()
    assert scrape()[DECIDED] == 1


def test_a_process_that_neither_forks_nor_serves_requests_touches_no_file(tmp_path):
    """As a command that builds filters to look at them, perhaps as another user."""
    HPCGroupFilter()
    assert counts.numbers()
    assert not (tmp_path / "metrics").exists()


def test_a_directory_that_is_removed_is_an_error_and_harms_no_request(caplog, tmp_path):
    schedule()
    worker._run()
    shutil.rmtree(tmp_path / "metrics")
    schedule()
    worker._run()
    [error] = errors(caplog)
    assert "No such file or directory" in error


@pytest.mark.parametrize("first", [0, 1], ids=["that serves first", "that does not serve first"])
def test_workers_go_on_in_a_directory_that_is_made_again(tmp_path, first):
    counts.start()
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    folder = tmp_path / "made" / "again"
    workers = [Exporter(f"127.0.0.1:{port}", folder) for _ in range(2)]
    for each in workers:
        each.run()
    shutil.rmtree(folder)
    folder.mkdir()
    # A new worker may be before all of them.
    new = Exporter(f"127.0.0.1:{port}", folder)
    new._is_prepared = True
    new.run()
    for _ in range(3):
        for each in (workers[first], workers[1 - first], new):
            each.run()
    assert [each._problem for each in (*workers, new)] == [""] * 3
    assert scrape(port)["hpc_sched_workers", frozenset()] == 3
    for each in (*workers, new):
        each.close()


def test_projects_are_bounded_also_where_workers_take_the_place_of_others(monkeypatch):
    monkeypatch.setattr(decision_counts, "MAX_PROJECTS", 2)
    schedule()
    CONF.set_override("metrics_project", True, "hpc_sched")
    decision_counts._projects.clear()
    for generation in range(3):
        pid = os.fork()
        if pid == 0:
            worker._run()
            for number in range(3):
                decision_counts.add("planned", f"{generation}.{number}")
            worker._run()
            os._exit(0)
        assert os.waitpid(pid, 0)[1] == 0
    worker._run()
    shown = {
        dict(labels)["project"]: number
        for (name, labels), number in scrape().items()
        if name == "hpc_sched_project_decisions_total" and ("answer", "planned") in labels
    }
    assert shown == {"0.0": 1, "0.1": 1, "other": 7}


def test_a_child_of_a_worker_is_no_worker(tmp_path):
    schedule()
    worker._run()
    pid = os.fork()
    if pid == 0:
        is_off = worker._exporter is None and not counts.numbers()
        os._exit(0 if is_off else 1)
    assert os.waitpid(pid, 0)[1] == 0
    # What the child has closed are its own descriptors.
    assert scrape()[DECIDED] == 1
    assert counts.numbers()


def test_a_request_does_not_wait_while_files_are_written(monkeypatch):
    """The disk hangs in the middle of a write."""
    schedule()
    worker._run()
    hangs, goes_on = threading.Event(), threading.Event()
    real = os.replace

    def replace(*paths: object) -> None:
        hangs.set()
        assert goes_on.wait(120)
        real(*paths)

    schedule()
    with monkeypatch.context() as patch:
        patch.setattr(os, "replace", replace)
        thread = threading.Thread(target=worker._run)
        thread.start()
        assert hangs.wait(120)
        schedule()
        goes_on.set()
        thread.join(30)
    worker._run()
    assert scrape()[DECIDED] == 3
