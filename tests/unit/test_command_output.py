"""A command ends in bounded time, whatever it is and whether or not it can be killed."""

import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from hpc_sched import exceptions
from hpc_sched.topology.readers import command_output
from hpc_sched.topology.readers.command_output import output_of

ROOT = Path(__file__).resolve().parents[2]
NOBODY = 65534

# Becomes root in full, as sudo does: a user's signals no longer reach it.
AS_ROOT = r"""
#include <stdio.h>
#include <unistd.h>
int main(int argc, char **argv) {
    if (setgid(0) || setuid(0)) return 1;
    if (argc > 1) { execv(argv[1], argv + 1); return 1; }
    puts("root");
    return 0;
}
"""


def pid_in(error: object) -> int:
    """Return the id of the process that an error names."""
    found = re.search(r"process (\d+) of user \w+", str(error))
    assert found is not None
    return int(found[1])


def wait_for_end(pid: int) -> None:
    deadline = time.monotonic() + 120
    while is_running(pid):
        assert time.monotonic() < deadline
        time.sleep(0.02)


def is_running(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


def failing(command: list[str], timeout: float = 0.5) -> str:
    """Return the error of a command that takes far longer than its timeout."""
    with pytest.raises(exceptions.TopologyError) as caught:
        output_of(command, timeout, 1_000_000)
    return str(caught.value)


def test_a_command_that_cannot_be_killed_is_abandoned_until_it_has_ended(unkillable, tmp_path):
    code = "trap '' TERM; exec sleep 600"
    error = failing(["sh", "-c", code])
    pid = pid_in(error)
    try:
        assert error == (
            f"{shlex.join(['sh', '-c', code])}: no end within 0.5 s; process {pid} of user "
            f"{Path(f'/proc/{pid}').owner()} could not be killed: Operation not "
            "permitted"
        )
        # Another one is not started meanwhile.
        started = tmp_path / "started"
        error = failing(["touch", str(started)])
        assert error.startswith(f"touch {started}: not started: process {pid} of user ")
        assert "is still running and could not be killed: Operation not permitted" in error
        assert not started.exists()
    finally:
        os.kill(pid, signal.SIGKILL)
    wait_for_end(pid)
    assert output_of(["echo", "hi"], 600, 100) == b"hi\n"
    assert not Path(f"/proc/{pid}").exists()  # nor is it a zombie


def test_so_is_a_child_that_a_command_has_left(unkillable):
    pid = pid_in(failing(["sh", "-c", "sleep 600 & exit 0"]))
    try:
        assert Path(f"/proc/{pid}/cmdline").read_bytes().startswith(b"sleep")
        assert f"not started: process {pid} of" in failing(["true"])
    finally:
        os.kill(pid, signal.SIGKILL)
    wait_for_end(pid)
    assert output_of(["echo", "hi"], 600, 100) == b"hi\n"


def test_what_a_command_has_printed_counts_though_its_child_cannot_be_killed(unkillable):
    pid = int(output_of(["sh", "-c", "sleep 600 >/dev/null 2>&1 & echo $!"], 600, 100))
    try:
        assert f"not started: process {pid} of" in failing(["true"])
    finally:
        os.kill(pid, signal.SIGKILL)
    wait_for_end(pid)
    assert output_of(["echo", "hi"], 600, 100) == b"hi\n"


def test_another_session_with_the_number_of_an_abandoned_one_blocks_no_command(unkillable):
    pid = pid_in(failing(["sh", "-c", "sleep 600 & exit 0"]))
    os.kill(pid, signal.SIGKILL)
    wait_for_end(pid)
    # A daemon's: its leader has ended.
    code = "sleep 600 >/dev/null & echo $! $$"
    daemon = subprocess.run(["setsid", "sh", "-c", code], stdout=subprocess.PIPE, check=True)
    child, session = map(int, daemon.stdout.split())
    try:
        assert command_output._abandoned is not None
        command_output._abandoned.process.pid = session  # as if the kernel had given it again
        assert output_of(["echo", "hi"], 600, 100) == b"hi\n"
    finally:
        os.kill(child, signal.SIGKILL)


def test_what_an_abandoned_process_starts_is_waited_for_too(unkillable):
    code = "trap '' TERM; sleep 1 >/dev/null 2>&1; sleep 600 & exit"
    pid = pid_in(failing(["sh", "-c", code]))
    wait_for_end(pid)
    child = pid_in(failing(["true"]))
    try:
        assert child != pid
        assert f"not started: process {child} of" in failing(["true"])
    finally:
        os.kill(child, signal.SIGKILL)
    wait_for_end(child)
    assert output_of(["echo", "hi"], 600, 100) == b"hi\n"


def test_a_child_that_proc_does_not_show_is_waited_for(unkillable, monkeypatch, tmp_path):
    monkeypatch.setattr(command_output, "_PROC", tmp_path)
    code = "sleep 600 >/dev/null 2>&1 & echo $! $$"
    child, group = map(int, output_of(["sh", "-c", code], 10, 100).split())
    try:
        assert f"not started: process group {group}, which sh " in failing(["true"])
    finally:
        os.kill(child, signal.SIGKILL)
    # As a zombie it is in the group until it is reaped.
    with monkeypatch.context() as patched:
        patched.setattr(os, "killpg", lambda *_: os.kill(1 << 30, 0))
        assert output_of(["echo", "hi"], 600, 100) == b"hi\n"


def test_a_child_in_the_background_ends_with_its_command():
    pid = int(output_of(["sh", "-c", "sleep 600 >/dev/null 2>&1 & echo $!"], 600, 100))
    wait_for_end(pid)


def test_so_does_one_with_a_process_group_of_its_own(tmp_path: Path):
    # timeout(1) makes one, where it is not the first of its session.
    pid = tmp_path / "pid"
    code = f"timeout 600 sh -c 'echo $$ > {pid}; exec sleep 600'; exit"
    assert failing(["sh", "-c", code]).endswith(": no end within 0.5 s")
    wait_for_end(int(pid.read_text()))


@pytest.mark.parametrize(
    "code",
    [
        pytest.param("kill -STOP $$", id="it is stopped"),
        pytest.param("trap '' TERM HUP INT; while :; do sleep 1; done", id="it ignores signals"),
        pytest.param("exec yes >&2", id="it reports errors for ever"),
    ],
)
def test_a_command_that_does_not_end_is_killed_and_another_started(code: str):
    assert failing(["sh", "-c", code]).endswith(": no end within 0.5 s")
    assert output_of(["echo", "hi"], 600, 100) == b"hi\n"


def test_a_daemon_that_keeps_the_output_open_is_waited_for_until_the_timeout(tmp_path: Path):
    pid = tmp_path / "pid"
    code = f"setsid sh -c 'echo $$ > {pid}; exec sleep 600' & exit 0"
    try:
        assert failing(["sh", "-c", code]).endswith(": no end within 0.5 s")
        assert output_of(["echo", "hi"], 600, 100) == b"hi\n"
    finally:
        os.kill(int(pid.read_text()), signal.SIGKILL)


@pytest.fixture
def as_root() -> Iterator[str]:
    """Return a program that runs another one as root, whoever starts it."""
    if os.getuid() != 0 or shutil.which("gcc") is None:
        pytest.skip("a program that becomes root is made by root, with gcc")
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o755)
        program = os.path.join(folder, "as-root")
        subprocess.run(["gcc", "-o", program, "-x", "c", "-"], input=AS_ROOT, text=True, check=True)
        os.chmod(program, 0o4755)
        found = subprocess.run([program], user=NOBODY, capture_output=True, check=False)
        if found.stdout != b"root\n":
            pytest.skip(f"{folder}: no program becomes root there")
        yield program


DROPPED = f"""
import os, sys
from hpc_sched import exceptions
from hpc_sched.topology.readers.command_output import output_of
os.setgroups([]); os.setgid({NOBODY}); os.setuid({NOBODY})
for command in (sys.argv[1:], ["echo", "hi"]):
    try:
        output_of(command, 0.5, 1000)
    except exceptions.TopologyError as error:
        print(error)
"""


@pytest.mark.parametrize("through", [[], ["sh", "-c", '"$@"; exit', "sh"]], ids=["alone", "by sh"])
def test_a_command_of_root_is_abandoned_in_bounded_time(as_root: str, through: list[str]):
    command = [*through, as_root, "/bin/sleep", "600"]
    process = subprocess.Popen(
        [sys.executable, "-c", DROPPED, *command], cwd=ROOT, stdout=subprocess.PIPE, text=True
    )
    try:
        out, _ = process.communicate(timeout=300)
    finally:
        process.kill()  # what it has left ends by itself
    first, second = out.splitlines()
    assert first.startswith(f"{shlex.join(command)}: no end within 0.5 s; process ")
    pid = pid_in(first)
    assert f"process {pid} of user root could not be killed: Operation not permitted" in first
    assert second.startswith(f"echo hi: not started: process {pid} of user root, which ")
    os.kill(pid, signal.SIGKILL)


HIDING = 'mount -o remount,hidepid=2 /proc && exec "$@"'


@pytest.fixture
def hidden() -> list[str]:
    """Return a command that runs another one where /proc hides the processes of other users."""
    if shutil.which("unshare") is None:
        pytest.skip("there is no unshare(1)")
    # All processes end with the first one of their namespace.
    names = ["unshare", "--mount", "--pid", "--fork", "--mount-proc"]
    command = [*names, "sh", "-c", HIDING, "sh"]
    if subprocess.run([*command, "true"], check=False).returncode:
        pytest.skip("no /proc can be mounted with hidepid=2")
    return command


def test_a_child_of_root_that_proc_hides_is_waited_for(as_root: str, hidden: list[str]):
    command = ["sh", "-c", '"$@" & exit', "sh", as_root, "/bin/sleep", "600"]
    done = subprocess.run(
        [*hidden, sys.executable, "-c", DROPPED, *command],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        text=True,
        timeout=300,
        check=True,
    )
    first, second = done.stdout.splitlines()
    assert "no end within 0.5 s; process group " in first
    assert "could not be killed: Operation not permitted" in first
    assert second.startswith("echo hi: not started: process group ")
