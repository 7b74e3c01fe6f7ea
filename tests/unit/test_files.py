"""Files: errors that name them, and writing that leaves no halves."""

import os
import stat
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
