"""The runs of the demo as child processes, and their results."""

import contextlib
import json
import os
import signal
import subprocess  # nosec B404
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict
from typing import Any

from hpc_sched import exceptions
from hpc_sched.demo.scenario import Settings

# Nova sorts hosts of equal weight in the order of a Python set. Fixed, for reproducible results.
_HASH_SEED = "0"


class DemoError(exceptions.HPCSchedError):
    """A run of the demo failed; the text has the reason and the path of the log."""


def run_all(
    runs: Mapping[str, Settings],
    progress: Callable[[str, str], None],
    *,
    timeout: float,
    verbose: bool,
) -> dict[str, dict[str, Any]]:
    """Run all runs at the same time; return their results by name.

    :param progress: called with a run's name and its stage
    :param verbose: log of Nova to standard error
    :raises DemoError: where a run fails or takes longer than ``timeout`` seconds
    """
    results: dict[str, dict[str, Any]] = {}
    with contextlib.ExitStack() as stack:
        children = {}
        for name, settings in runs.items():
            # The log of a failed run is kept.
            log = tempfile.NamedTemporaryFile(  # noqa: SIM115 - closed by the stack
                prefix=f"hpc-sched-demo-{name.split()[0].lower()}-", suffix=".log", delete=False
            )
            stack.callback(log.close)
            children[name] = (_start(settings, None if verbose else log.fileno()), log.name)
            stack.callback(_stop, children[name][0])
        readers = [
            threading.Thread(target=_read, args=(name, child, progress, results), daemon=True)
            for name, (child, _log) in children.items()
        ]
        deadline = time.monotonic() + timeout
        for reader in readers:
            reader.start()
        for reader in readers:
            reader.join(max(deadline - time.monotonic(), 0))
        for name, (_child, log_name) in children.items():
            found = results.get(name)
            if found is None or "error" in found:
                why = found["error"] if found else f"no result within {timeout:.0f} s"
                where = "" if verbose else f"; its log: {log_name}"
                raise DemoError(f"{name}: {why}{where}")
        for _child, log_name in children.values():
            os.unlink(log_name)
    return {name: results[name] for name in runs}


def _start(settings: Settings, stderr: int | None) -> "subprocess.Popen[str]":
    # No shell, this Python; the settings are one argument, JSON written here.
    return subprocess.Popen(  # nosec B603
        [sys.executable, "-m", "hpc_sched.demo.scenario", json.dumps(asdict(settings))],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=stderr,
        text=True,
        start_new_session=True,
        env=os.environ | {"PYTHONHASHSEED": _HASH_SEED},
    )


def _stop(child: "subprocess.Popen[str]") -> None:
    if child.poll() is None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(child.pid, signal.SIGKILL)
    child.wait()


def _read(
    name: str,
    child: "subprocess.Popen[str]",
    progress: Callable[[str, str], None],
    results: dict[str, dict[str, Any]],
) -> None:
    assert child.stdout is not None
    for line in child.stdout:
        message = json.loads(line)
        if "progress" in message:
            progress(name, message["progress"])
        elif "error" in message:
            results[name] = message
        else:
            results[name] = message["result"]
    if name not in results:
        results[name] = {"error": f"ended with exit code {child.wait()} before it had a result"}
