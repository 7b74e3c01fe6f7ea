"""hpc-sched explain: how decisions are looked for in rotated logs, by related VMs, by name."""

import gzip
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from hpc_sched.cli.common import sources
from hpc_sched.snapshot.log import log_lines
from hpc_sched.snapshot.source import snapshot_file
from tests.snapshots import group, saved, server, uuid_of
from tests.test_explain import explain, lines, planned, times

JOB = uuid_of("job")


def truncated(path: Path) -> Path:
    name = Path(f"{path}.2.gz")
    name.write_bytes(gzip.compress(lines(planned("t1")).encode())[:-20])
    return name


def folder(path: Path) -> Path:
    name = Path(f"{path}.1")
    name.mkdir()
    return name


def dangling(path: Path) -> Path:
    name = Path(f"{path}.1")
    os.symlink("/nonexistent", name)
    return name


def large(path: Path) -> Path:
    name = Path(f"{path}.3.gz")
    name.write_bytes(gzip.compress(lines(planned("t1"), planned("t2")).encode()))
    return name


@pytest.mark.parametrize(
    ("make", "error"),
    [
        (truncated, "Compressed file ended"),
        (folder, "Is a directory"),
        (dangling, "No such file"),
        (large, "expected at most 100 bytes of records"),
    ],
)
def test_of_rotated_files_the_one_that_cannot_be_read_is_named(
    tmp_path, capsys, monkeypatch, make: Callable[[Path], Path], error: str
):
    monkeypatch.setattr(log_lines, "MAX_BYTES", 100)
    path = tmp_path / "decisions.json"
    path.write_text(lines(planned("t5")))
    bad = make(path)
    code, out, err = explain(capsys, JOB, "--decision-log", str(path))
    assert (code, out) == (1, "")
    assert err.startswith(f"{bad}: cannot be read: {error}")


@pytest.fixture
def cloud(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Answer for a cloud with 60 VMs of one request, one of them in a group too."""
    vms = [server(f"vm{number:02}", "n01", reservation_id="r-1") for number in range(60)]
    state = snapshot_file.read(saved(tmp_path, vms, [group("job", vms[59:])]))
    monkeypatch.setattr(sources, "snapshot_of", lambda args: state)


def of_vm(number: int, at: str) -> dict[str, object]:
    uuid = uuid_of(f"vm{number:02}")
    return {"instance": uuid, "group": None, "decision": "planned", "time": at}


@pytest.mark.usefixtures("cloud")
def test_a_log_is_read_once_for_all_vms_of_a_request(tmp_path, capsys, monkeypatch):
    path = tmp_path / "decisions.json"
    path.write_text(lines(of_vm(40, "t1"), planned("t2"), of_vm(40, "t3")))
    opened = []
    real = log_lines._opened
    monkeypatch.setattr(log_lines, "_opened", lambda name: opened.append(name) or real(name))
    log = ["--decision-log", str(path)]
    assert times(capsys, uuid_of("vm59"), *log) == ["t1", "t3"]
    # For the VM itself, and for all others and the group.
    assert opened == [str(path)] * 2
    code, _, err = explain(capsys, uuid_of("vm59"), *log, "--last")
    assert (code, err) == (0, "note: looking for decisions on vm00-uuid, 59 more IDs\n")


@pytest.mark.usefixtures("cloud")
def test_decisions_on_the_request_come_before_newer_ones_on_the_group(tmp_path, capsys):
    path = tmp_path / "decisions.json"
    log = [uuid_of("vm59"), "--decision-log", str(path)]
    path.write_text(lines(of_vm(3, "t1"), of_vm(7, "t2"), planned("t3")))
    assert times(capsys, *log) == times(capsys, *log, "--last") == ["t1"]
    path.write_text(lines(planned("t3"), planned("t4")))
    assert times(capsys, *log) == ["t3", "t4"]
    assert times(capsys, *log, "--last") == ["t4"]


def test_decisions_on_a_vm_come_before_newer_ones_that_list_it(tmp_path, capsys):
    path = tmp_path / "decisions.json"
    listing = planned("t2", instances=["vm-t2", "vm-t1"])
    path.write_text(lines(planned("t1"), listing))
    log = ["vm-t1", "--decision-log", str(path)]
    assert times(capsys, *log) == times(capsys, *log, "--last") == ["t1"]


@pytest.mark.parametrize("cloud", [(), ("--cloud", "nowhere")], ids=["none", "named"])
def test_a_name_that_needs_a_cloud_is_missing_in_the_log_whatever_the_cloud_says(
    tmp_path, capsys, monkeypatch, cloud: tuple[str, ...]
):
    for name in ("OS_CLOUD", "OS_AUTH_URL"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("OS_CLIENT_CONFIG_FILE", "/nonexistent.yaml")
    path = tmp_path / "decisions.json"
    path.write_text(lines(planned("t1")))
    code, out, err = explain(capsys, "foo", "--decision-log", str(path), *cloud)
    assert (code, out) == (1, "")
    assert err.startswith(
        f"no decision on 'foo' in {path}; and the cloud cannot be asked for its name or group: "
        f"cloud {'nowhere' if cloud else 'of the OS_* variables'}: "
    )
