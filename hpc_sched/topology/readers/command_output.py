"""The output of a command, in bounded time whatever the command is."""

import os
import pwd
import selectors
import signal
import subprocess  # nosec B404
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple

from hpc_sched import exceptions
from hpc_sched.topology.readers.reader_errors import MAX_SHOWN, shown_command

# Seconds in which a killed command must end.
GRACE = 2.0
_POLL = 0.02
_PART = 65536
_PROC = Path("/proc")


class _Running(NamedTuple):
    """A process, or a process group of which /proc shows no process."""

    pid: int  # of the process or the group
    started: int | None = None  # clock ticks after boot; None for a group


@dataclass(frozen=True, slots=True)
class _Abandoned:
    """A command of which a process could not be killed."""

    process: subprocess.Popen[bytes]
    left: frozenset[_Running]  # at the last look
    name: str
    why: str


_lock = threading.Lock()  # held while a command is running: one at a time
_abandoned: _Abandoned | None = None


def output_of(command: Sequence[str], timeout: float, max_bytes: int) -> bytes:
    """Return what a command prints, or TopologyError. At most ``timeout`` + ``GRACE`` seconds.

    Afterwards what is left of the command and its children is killed. A command that cannot be
    killed, because it belongs to another user, is abandoned; none is started until it has ended.
    """
    with _lock:
        _check_abandoned(shown_command(command))
        return _run(command, timeout, max_bytes)


def _check_abandoned(name: str) -> None:
    """Raise a TopologyError as long as an abandoned command is running; else reap it."""
    global _abandoned
    if _abandoned is None:
        return
    # The leader keeps the session's number until it is reaped, and so does each other process.
    is_kept = _abandoned.process.returncode is None
    left = _survivors(_abandoned.process)
    if left and (is_kept or _abandoned.left & left.keys()):
        _abandoned = replace(_abandoned, left=frozenset(left))
        raise exceptions.TopologyError(
            f"{name}: not started: {_process(min(left))}, which {_abandoned.name} has left, is "
            f"still running and could not be killed: {_abandoned.why}"
        )
    _abandoned = None


def _run(command: Sequence[str], timeout: float, max_bytes: int) -> bytes:
    name = shown_command(command)
    try:
        # No shell, and the command is nova.conf's: no part of it comes from a request.
        process = subprocess.Popen(  # nosec B603
            list(command),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or str(error)
        raise exceptions.TopologyError(f"{name}: cannot be run: {why}") from error
    deadline = time.monotonic() + timeout
    output, errors, has_ended = bytearray(), bytearray(), False
    try:
        has_ended = _read(process, deadline, max_bytes, output, errors) and _wait(process, deadline)
    finally:
        left = _end(process, name)
    fault = ""
    if len(output) > max_bytes:
        fault = f"prints more than {max_bytes} bytes"
    elif not has_ended:
        fault = f"no end within {timeout:g} s"
    elif process.returncode:
        last = errors.decode("utf-8", "replace").strip().splitlines()[-1:]
        why = f": {last[0].strip()[:MAX_SHOWN]}" if last else ""
        fault = f"exit code {process.returncode}{why}"
    if fault:
        raise exceptions.TopologyError(f"{name}: {fault}{left}")
    return bytes(output)


def _read(
    process: subprocess.Popen[bytes],
    deadline: float,
    max_bytes: int,
    output: bytearray,
    errors: bytearray,
) -> bool:
    """Read output, up to its end or limit, and the end of the errors; False after the deadline."""
    with selectors.DefaultSelector() as selector:
        for stream, target in ((process.stdout, output), (process.stderr, errors)):
            if stream is not None:
                selector.register(stream, selectors.EVENT_READ, target)
        while selector.get_map() and len(output) <= max_bytes:
            left = deadline - time.monotonic()
            if left <= 0:
                return False
            for key, _ in selector.select(left):
                part = os.read(key.fd, _PART)
                if not part:
                    selector.unregister(key.fileobj)
                key.data.extend(part)
            del errors[:-_PART]
    return len(output) <= max_bytes


def _wait(process: subprocess.Popen[bytes], deadline: float) -> bool:
    """Return whether a command ends in time. It is not reaped: its process id stays its own."""
    how = os.WEXITED | os.WNOHANG | os.WNOWAIT
    with suppress(ChildProcessError):
        while os.waitid(os.P_PID, process.pid, how) is None:
            if time.monotonic() >= deadline:
                return False
            time.sleep(_POLL)
    return True


def _end(process: subprocess.Popen[bytes], name: str) -> str:
    """Kill a command with its children, and close its pipes. At most ``GRACE`` seconds.

    Returns what an error says of a process that is still running, and abandons it; empty if there
    is none.
    """
    global _abandoned
    why = _refusal(os.killpg, process.pid, signal.SIGKILL)
    for stream in filter(None, (process.stdout, process.stderr)):
        stream.close()
    deadline = time.monotonic() + GRACE
    while left := _survivors(process):
        # Children such as timeout(1) have a process group of their own.
        for running, group in left.items():
            if group != process.pid:
                why = _refusal(os.kill, running.pid, signal.SIGKILL) or why
        if time.monotonic() >= deadline:
            first = min(left)
            why = why or _refusal(os.kill, first.pid, 0) or _refusal(os.killpg, process.pid, 0)
            why = why or "it does not end"
            _abandoned = _Abandoned(process, frozenset(left), name, why)
            return f"; {_process(first)} could not be killed: {why}"
        time.sleep(_POLL)
    return ""


def _refusal(kill: Callable[[int, int], None], target: int, number: int) -> str:
    """Send a signal; return why that is not permitted, or an empty text."""
    try:
        kill(target, number)
    except ProcessLookupError:
        pass
    except PermissionError as error:
        return error.strerror or str(error)
    return ""


def _survivors(process: subprocess.Popen[bytes]) -> dict[_Running, int]:
    """Return the processes of a command's session that are alive, and their process groups.

    sudo may be killed by the user who has called it, but not what it runs. A command that has
    ended is reaped. O(processes of the host).
    """
    has_ended = process.poll() is not None
    found, zombies = {}, 0
    for path in _PROC.glob("[0-9]*/stat"):
        with suppress(OSError):
            fields = path.read_text("utf-8", "replace").rpartition(")")[2].split()
            state, _, group, session = fields[:4]
            is_its = int(session) == process.pid
            # A zombie is its parent's to reap.
            if is_its and state in "ZX":
                zombies += 1
            elif is_its:
                found[_Running(int(path.parent.name), int(fields[19]))] = int(group)
    # With hidepid=2 /proc has the processes of this user alone.
    if not found and (not has_ended or (not zombies and _is_hidden_group(process.pid))):
        found[_Running(process.pid)] = process.pid
    return found


def _is_hidden_group(number: int) -> bool:
    """True if a process group of another user is running whose leader has ended.

    A leader with the same number is another process: the command's was reaped.
    """
    return bool(_refusal(os.killpg, number, 0)) and not _refusal(os.kill, number, 0)


def _process(running: _Running) -> str:
    """Return a process and its user in words."""
    if running.started is None:
        return f"process group {running.pid}"
    owner = ""
    with suppress(OSError, KeyError):
        user = os.stat(_PROC / str(running.pid)).st_uid
        owner = f" of user {user}"
        owner = f" of user {pwd.getpwuid(user).pw_name}"
    return f"process {running.pid}{owner}"
