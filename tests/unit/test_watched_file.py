"""A file that is read again when it changes."""

import os
import threading
import time
from pathlib import Path

from hpc_sched.nova_glue.io.watched_file import WatchedFile, fingerprint


def test_one_reads_a_change_and_the_others_go_on_with_what_they_have(tmp_path: Path):
    path = tmp_path / "file"
    path.write_text("old")
    begun, go_on = threading.Event(), threading.Event()

    def read(name: str) -> str:
        text = Path(name).read_text()
        if text == "newer":
            begun.set()
            assert go_on.wait(120)
        return text

    watched = WatchedFile("file", read)
    watched.start(str(path))
    path.write_text("newer")
    found: list[str | None] = []
    reader = threading.Thread(target=lambda: found.append(watched.current(str(path))))
    reader.start()
    try:
        assert begun.wait(120)
        assert watched.current(str(path)) == "old"
    finally:
        go_on.set()
        reader.join()
    assert found == ["newer"]
    assert watched.current(str(path)) == "newer"


def test_a_file_that_becomes_readable_has_another_fingerprint(tmp_path: Path):
    path = tmp_path / "file"
    path.write_text("the same")
    before, end = fingerprint(str(path)), time.monotonic() + 120
    while fingerprint(str(path)) == before:
        # The kernel's clock of files stands still for some milliseconds.
        assert time.monotonic() < end
        os.chmod(path, 0o640)
