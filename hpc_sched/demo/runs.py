"""The runs of the demo as child processes, and their results."""

import contextlib
import functools
import json
import os
import signal
import subprocess  # nosec B404
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
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
    deadline = time.monotonic() + timeout
    results: dict[str, dict[str, Any]] = {}
    with contextlib.ExitStack() as stack:
        # Entered first, to end last: its threads read until the children are stopped.
        pool = stack.enter_context(ThreadPoolExecutor(len(runs)))
        logs, readers = {}, {}
        for name, settings in runs.items():
            # The log of a failed run is kept.
            log = tempfile.NamedTemporaryFile(  # noqa: SIM115 - closed by the stack
                prefix=f"hpc-sched-demo-{name.split()[0].lower()}-", suffix=".log", delete=False
            )
            stack.callback(log.close)
            child = _start(settings, None if verbose else log.fileno())
            stack.callback(_stop, child)
            logs[name] = log.name
            readers[name] = pool.submit(_result, child, functools.partial(progress, name))
        for name, reader in readers.items():
            where = "" if verbose else f"; its log: {logs[name]}"
            try:
                results[name] = reader.result(max(deadline - time.monotonic(), 0))
            except TimeoutError:
                raise DemoError(f"{name}: no result within {timeout:.0f} s{where}") from None
            except DemoError as error:
                raise DemoError(f"{name}: {error}{where}") from None
        for log_name in logs.values():
            os.unlink(log_name)
    return results


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


def _result(child: "subprocess.Popen[str]", progress: Callable[[str], None]) -> dict[str, Any]:
    """Return the result that a child reports.

    :raises DemoError: with its error, or its exit code
    """
    assert child.stdout is not None
    for line in child.stdout:
        message: dict[str, Any] = json.loads(line)
        if "progress" in message:
            progress(message["progress"])
        elif "error" in message:
            raise DemoError(message["error"])
        else:
            result: dict[str, Any] = message["result"]
            return result
    raise DemoError(f"ended with exit code {child.wait()} before it had a result")
