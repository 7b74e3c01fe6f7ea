"""The election of one worker among those that a process has forked."""

import os
import subprocess
import sys
import tempfile

from hpc_sched.nova_glue.io.periodic_thread import OneWorker

# Each worker answers a letter by whether it is elected, and ends with its input.
WORKERS = """
import os, sys
from hpc_sched.nova_glue.io.periodic_thread import OneWorker

one = OneWorker()
one.prepare()
file = one._file
one.prepare()
assert one._file is file, "a second filter makes no second file"

def forked():
    ask, asked = os.pipe(), os.pipe()
    pid = os.fork()
    if not pid:
        os.close(ask[1])
        while os.read(ask[0], 1):
            os.write(asked[1], b"%d" % one.is_this())
        os._exit(0)
    os.close(ask[0])
    def is_elected():
        os.write(ask[1], b"?")
        return os.read(asked[0], 1) == b"1"
    return pid, is_elected

(first, is_first), (second, is_second) = forked(), forked()
print(is_second(), is_first(), is_second(), is_first())
os.kill(second, 9)
os.waitpid(second, 0)
third, is_third = forked()
print(is_first(), is_third())
os.kill(first, 9)
os.waitpid(first, 0)
print(is_third())
os.kill(third, 9)
"""


def test_one_worker_is_elected_and_another_after_its_end():
    found = subprocess.run(
        [sys.executable, "-c", WORKERS], capture_output=True, text=True, timeout=60, check=True
    )
    assert found.stdout.splitlines() == ["True False True False", "True False", "True"]


def test_without_a_file_each_worker_is_elected(monkeypatch):
    assert OneWorker().is_this()

    def fail() -> None:
        raise OSError("No usable temporary directory found")

    monkeypatch.setattr(tempfile, "TemporaryFile", fail)
    one = OneWorker()
    one.prepare()
    assert one.is_this()


def test_a_process_that_is_elected_stays_so():
    one = OneWorker()
    one.prepare()
    assert one.is_this()
    assert one.is_this(), os.getpid()
