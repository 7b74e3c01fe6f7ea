"""Files: errors that name them, and writing that leaves no halves."""

import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from hpc_sched import exceptions, files

ERROR = exceptions.InterferenceError


def test_a_missing_file_is_named(tmp_path: Path):
    with pytest.raises(ERROR, match=r"nothing\.csv: cannot be read: No such file or directory"):
        files.read_bytes(tmp_path / "nothing.csv", ERROR)


def test_a_file_beyond_the_limit_is_refused_and_one_at_the_limit_is_read(tmp_path: Path):
    path = tmp_path / "file"
    path.write_bytes(b"12345")
    assert files.read_bytes(path, ERROR, 5) == b"12345"
    with pytest.raises(ERROR, match=r"file: expected at most 4 bytes, found more$"):
        files.read_bytes(path, ERROR, 4)


def test_a_device_without_end_is_refused():
    with pytest.raises(ERROR, match=r"/dev/zero: expected at most 1000 bytes"):
        files.read_bytes("/dev/zero", ERROR, 1000)


def test_a_pipe_that_nobody_writes_to_is_empty_and_holds_nobody(tmp_path: Path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    assert files.read_bytes(pipe, ERROR) == b""


def test_a_pipe_is_read_to_its_end_however_slowly_it_is_written():
    shell = '"$@" <(sleep 0.2; echo one; sleep 0.2; echo two)'
    code = "import sys; from hpc_sched import exceptions, files; " + (
        "print(files.read_bytes(sys.argv[1], exceptions.TopologyError))"
    )
    command = ["bash", "-c", shell, "bash", sys.executable, "-c", code]
    assert subprocess.check_output(command, text=True).strip() == r"b'one\ntwo\n'"


def test_a_byte_that_is_not_utf_8_is_named_with_its_line():
    with pytest.raises(ERROR, match=r"^a:3: expected UTF-8, found byte 0xe4$"):
        files.decode(b"\xef\xbb\xbfone\ntwo\nthr\xe4e", "a", ERROR)


def test_a_byte_order_mark_is_no_part_of_the_text():
    assert files.decode(b"\xef\xbb\xbfone", "a", ERROR) == "one"


def test_a_new_file_has_the_mode_that_the_umask_leaves(tmp_path: Path):
    path = tmp_path / "new"
    before = os.umask(0o027)
    try:
        files.write_atomically(path, b"x", ERROR)
    finally:
        os.umask(before)
    assert path.read_bytes() == b"x"
    assert stat.S_IMODE(path.stat().st_mode) == 0o640


def test_a_file_that_exists_keeps_its_mode_and_nothing_is_left_beside_it(tmp_path: Path):
    path = tmp_path / "old"
    path.write_bytes(b"old")
    path.chmod(0o604)
    files.write_atomically(path, b"new", ERROR)
    assert path.read_bytes() == b"new"
    assert stat.S_IMODE(path.stat().st_mode) == 0o604
    assert os.listdir(tmp_path) == ["old"]


def test_a_symbolic_link_stays_one(tmp_path: Path):
    (tmp_path / "link").symlink_to("target")
    files.write_atomically(tmp_path / "link", b"x", ERROR)
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "target").read_bytes() == b"x"


def test_a_write_that_fails_leaves_the_old_content_and_nothing_beside_it(tmp_path, monkeypatch):
    path = tmp_path / "old"
    path.write_bytes(b"old")

    def full(*_args):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(files.os, "fsync", full)
    with pytest.raises(ERROR, match=r"old: cannot be written: No space left on device"):
        files.write_atomically(path, b"new", ERROR)
    monkeypatch.undo()
    assert path.read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["old"]


@pytest.mark.parametrize(
    ("place", "why"),
    [("", "not a regular file"), ("no/where", "No such file or directory")],
    ids=["a directory", "in a directory that is not there"],
)
def test_what_cannot_be_written_is_named(tmp_path: Path, place: str, why: str):
    with pytest.raises(ERROR, match=rf"cannot be written: {why}$"):
        files.write_atomically(tmp_path / place, b"x", ERROR)


@pytest.mark.parametrize(("umask", "mode"), [(0o022, 0o600), (0o277, 0o400), (0, 0o600)])
def test_a_new_private_file_is_its_writers_alone_whatever_the_umask(tmp_path, umask, mode):
    before = os.umask(umask)
    try:
        files.write_atomically(tmp_path / "new", b"x", ERROR, files.PRIVATE)
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "new").stat().st_mode) == mode


def test_what_only_its_owner_could_read_is_at_no_time_read_by_others(tmp_path, monkeypatch):
    path = tmp_path / "old"
    path.write_bytes(b"old")
    path.chmod(0o600)
    seen = []
    opened = os.open

    def open_(name, flags, mode=0o777, **options):
        descriptor = opened(name, flags, mode, **options)
        if flags & os.O_CREAT:
            seen.append(stat.S_IMODE(os.fstat(descriptor).st_mode))
        return descriptor

    monkeypatch.setattr(files.os, "open", open_)
    before = os.umask(0)
    try:
        files.write_atomically(path, b"new", ERROR)
    finally:
        os.umask(before)
    assert seen == [0o600]
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


@pytest.fixture
def everybodys(tmp_path: Path) -> Path:
    """Return a folder such as /tmp."""
    folder = tmp_path / "everybodys"
    folder.mkdir()
    folder.chmod(0o1777)
    return folder


as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root makes files of other users")
OTHER = 65534


@as_root
@pytest.mark.parametrize("kind", ["file", "link", "link of mine to one"])
def test_what_another_user_has_laid_into_everybodys_folder_is_not_written(
    tmp_path: Path, everybodys: Path, kind: str
):
    victim = tmp_path / "victim"
    victim.write_bytes(b"old")
    path = laid = everybodys / "state.json"
    if kind == "file":
        laid.write_bytes(b"")
    else:
        laid.symlink_to(victim)
    os.lchown(laid, OTHER, OTHER)
    if kind == "link of mine to one":
        path = tmp_path / "mine"
        path.symlink_to(laid)
    with pytest.raises(ERROR, match="another user's, in a folder that everybody may write"):
        files.write_atomically(path, b"secret", ERROR)
    assert victim.read_bytes() == b"old"
    assert os.listdir(everybodys) == ["state.json"]
    assert not laid.is_file() or laid.read_bytes() in (b"", b"old")


@as_root
def test_what_is_ones_own_there_or_another_users_elsewhere_is_written(tmp_path, everybodys):
    mine = everybodys / "mine"
    mine.symlink_to(tmp_path / "target")
    files.write_atomically(mine, b"1", ERROR)
    assert (tmp_path / "target").read_bytes() == b"1"
    theirs = tmp_path / "theirs"
    theirs.write_bytes(b"old")
    os.chown(theirs, OTHER, OTHER)
    files.write_atomically(theirs, b"2", ERROR)
    assert theirs.read_bytes() == b"2"
    assert theirs.stat().st_uid == OTHER


def test_links_in_a_circle_are_told(tmp_path: Path):
    (tmp_path / "a").symlink_to("b")
    (tmp_path / "b").symlink_to("a")
    with pytest.raises(ERROR, match=r"a: cannot be written: more than 40 symbolic links"):
        files.write_atomically(tmp_path / "a", b"x", ERROR)
