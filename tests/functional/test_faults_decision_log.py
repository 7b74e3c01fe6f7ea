"""A decision log that cannot be written, or a pipe without a reader: scheduling goes on."""

import fcntl
import json
import os
import subprocess
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import nova.conf
import pytest
from oslo_utils import uuidutils

from hpc_sched.filters.group import HPCGroupFilter
from hpc_sched.nova_glue.io import decision_log
from hpc_sched.weighers.hop_byte import HopByteWeigher
from tests.functional import faults
from tests.functional.pods import FABRIC, states_of
from tests.functional.states import read_decisions, run, spec, weigh, why_refused

CONF = nova.conf.CONF

pytestmark = pytest.mark.usefixtures("two_pods")

as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root may mount a disk")


@pytest.fixture(autouse=True)
def members(group) -> None:
    group(left=4)


def schedule(count: int = 1) -> None:
    """Place groups of four, which come under one leaf each."""
    for _ in range(count):
        request = spec(count=4, uuid=uuidutils.generate_uuid())
        best = weigh(HopByteWeigher(), run(states_of(), request, HPCGroupFilter()), request)[:4]
        assert len({FABRIC.leaf_of(host) for host in best}) == 1


def in_time(work, seconds: float = 20) -> None:
    """Do work in a thread: what blocks must not block the tests."""
    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    thread.join(seconds)
    assert not thread.is_alive()


@pytest.fixture
def no_directory(tmp_path: Path) -> Path:
    """Return a path below what is a file."""
    (tmp_path / "file").write_text("")
    return tmp_path / "file" / "decisions"


@pytest.fixture
def read_only(tmp_path: Path) -> Iterator[Path]:
    """Return a path on a disk that is mounted read-only."""
    disk = tmp_path / "disk"
    disk.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "ro,size=64k", "tmpfs", disk], check=True)
    yield disk / "decisions"
    subprocess.run(["umount", disk], check=True)


@pytest.fixture
def full(tmp_path: Path) -> Iterator[Path]:
    """Return a path on a disk of 64 KiB that other files fill but for some bytes."""
    disk = tmp_path / "disk"
    disk.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", disk], check=True)
    (disk / "decisions").write_bytes(b'{"x":"' + b"x" * (4096 - 108) + b'"}\n')
    # The first page of the log has 100 bytes left, and there is no other.
    with (disk / "ballast").open("wb", buffering=0) as ballast:
        ballast.write(b"x" * 65536)
    yield disk / "decisions"
    subprocess.run(["umount", disk], check=True)


@pytest.mark.parametrize(
    ("where", "error"),
    [
        ("dev_full", "No space left on device"),
        ("no_directory", "Not a directory"),
        pytest.param("read_only", "Read-only file system", marks=as_root),
    ],
)
def test_a_log_that_cannot_be_written_is_one_warning_however_many_requests(
    request, caplog, where, error
):
    path = "/dev/full" if where == "dev_full" else request.getfixturevalue(where)
    CONF.set_override("decision_log", str(path), "hpc_sched")
    in_time(lambda: schedule(5))
    # A refusal is a decision too.
    assert "group of 4" in why_refused(states_of("leaf1")[:2], spec(count=4))
    [warning] = faults.said(caplog)
    assert str(path) in warning
    assert error in warning


def test_many_threads_that_cannot_write_the_log_say_so_once(tmp_path, caplog):
    CONF.set_override("decision_log", "/dev/full", "hpc_sched")
    threads = [threading.Thread(target=schedule) for _ in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(faults.said(caplog)) == 1


@as_root
def test_a_disk_that_is_full_loses_lines_and_those_after_it_are_whole(full, caplog):
    CONF.set_override("decision_log", str(full), "hpc_sched")
    caplog.set_level("INFO", "hpc_sched")
    before = full.read_bytes()
    schedule(3)
    [warning] = faults.said(caplog)
    assert f"decision_log = {full} cannot be written" in warning
    caplog.clear()
    (full.parent / "ballast").unlink()
    schedule(2)
    assert [text for text in caplog.messages if "can be written again" in text] == [
        f"[hpc_sched] decision_log = {full} can be written again"
    ]
    # What was half written is a line of its own.
    *_, torn, first, second = full.read_bytes()[len(before) :].split(b"\n")[:-1]
    with pytest.raises(ValueError, match=r"Expecting|Unterminated"):
        json.loads(torn)
    assert json.loads(first)["decision"] == json.loads(second)["decision"] == "planned"
    # The next fault is logged again.
    caplog.clear()
    CONF.set_override("decision_log", "/dev/full", "hpc_sched")
    schedule()
    assert len(faults.said(caplog)) == 1


@as_root
def test_a_line_that_another_thread_has_just_torn_is_not_continued(full, monkeypatch):
    is_incomplete, write = decision_log.is_incomplete, decision_log.write
    first_looked, first_wrote = threading.Event(), threading.Event()

    def look(path: str) -> bool:
        answer = is_incomplete(path)
        if first_looked.is_set():
            assert first_wrote.wait(120)
        else:
            first_looked.set()
            time.sleep(0.2)
        return answer

    def write_and_make_room(path: str, text: bytes) -> bool:
        has_all = write(path, text)
        (full.parent / "ballast").unlink(missing_ok=True)
        first_wrote.set()
        return has_all

    monkeypatch.setattr(decision_log, "is_incomplete", look)
    monkeypatch.setattr(decision_log, "write", write_and_make_room)
    text = "x" * 200  # more than the disk takes
    first = threading.Thread(target=decision_log.append, args=(str(full), {"first": text}))
    first.start()
    assert first_looked.wait(120)
    # The second thread comes before the first has written, and writes after it.
    decision_log.append(str(full), {"second": text})
    first.join()
    *_, half, whole = full.read_text().splitlines()
    assert half.startswith('{"first":')
    assert json.loads(whole) == {"second": text}


def test_a_line_that_another_worker_has_torn_is_not_continued(tmp_path):
    log = tmp_path / "decisions"
    log.write_text('{"decision":"pla')  # its disk was full
    CONF.set_override("decision_log", str(log), "hpc_sched")
    schedule(2)
    torn, *ours = log.read_text().splitlines()
    assert torn == '{"decision":"pla'
    assert [json.loads(line)["decision"] for line in ours] == ["planned"] * 2


def test_a_pipe_without_a_reader_does_not_hold_the_scheduler(tmp_path, caplog):
    pipe = tmp_path / "decisions"
    os.mkfifo(pipe)
    CONF.set_override("decision_log", str(pipe), "hpc_sched")
    in_time(lambda: schedule(3))
    assert len(faults.said(caplog)) == 1
    # A reader that does not read: a pipe holds 64 KiB.
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    try:
        caplog.clear()
        in_time(lambda: schedule(120))
        assert len(faults.said(caplog)) == 1
    finally:
        os.close(reader)
    # A reader gets whole lines.
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    try:
        in_time(schedule)
        [line] = os.read(reader, 65536).splitlines()
        assert json.loads(line)["decision"] == "planned"
    finally:
        os.close(reader)


def test_a_record_that_a_pipe_has_taken_in_part_does_not_spoil_the_next_one(tmp_path, caplog):
    pipe = tmp_path / "decisions"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    try:
        fcntl.fcntl(reader, fcntl.F_SETPIPE_SZ, 4096)
        decision_log.append(str(pipe), {"first": "x" * 50_000})
        assert "no space for the whole line" in faults.said(caplog)[0]
        taken = os.read(reader, 65536)
        for number in (2, 3):
            decision_log.append(str(pipe), {"number": number})
        taken += os.read(reader, 65536)
    finally:
        os.close(reader)
    half, *whole = taken.splitlines()
    assert half.startswith(b'{"first":')
    assert [json.loads(line) for line in whole] == [{"number": 2}, {"number": 3}]


def test_a_folder_that_comes_back_gets_lines_again(tmp_path, caplog):
    folder = tmp_path / "logs"
    CONF.set_override("decision_log", str(folder / "decisions"), "hpc_sched")
    schedule(2)
    folder.mkdir()
    schedule(2)
    assert len(read_decisions(folder / "decisions")) == 2
    (folder / "decisions").unlink()
    folder.rmdir()
    schedule(2)
    assert len(faults.said(caplog)) == 2
