"""Processes that are supervised: their logs, and their end."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from tests.contention.deployment import ROOT

ENDS_IN = 15  # seconds, at most; then it is killed
LOOK_EVERY = 0.2


@dataclass
class Processes:
    """The services of a cloud, by name."""

    folder: Path  # for their logs
    running: dict[str, subprocess.Popen[str]] = field(default_factory=dict)

    def start(self, name: str, service: str, *arguments: object, **environment: str) -> None:
        """Start a service of ``tests.cloud.service``, in a session of its own."""
        command = (sys.executable, "-m", "tests.cloud.service", service, *map(str, arguments))
        with (self.folder / f"{name}.out").open("w") as errors:
            self.running[name] = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                cwd=self.folder,
                env={**os.environ, "PYTHONPATH": str(ROOT), **environment},
                start_new_session=True,
                text=True,
            )

    def command(self, name: str, *words: str) -> None:
        """Write a line to the standard input of a service that reads it."""
        commands = self.running[name].stdin
        assert commands is not None
        commands.write(" ".join(words) + "\n")
        commands.flush()

    def port(self, name: str) -> int:
        """Return the port that a service says it serves."""
        output = self.running[name].stdout
        assert output is not None
        line = output.readline()
        self.check()
        return int(line)

    def wait_for(self, what: str, seconds: float, is_true: Callable[[], bool]) -> None:
        """Wait for something that the services do; TimeoutError names it."""
        until = time.monotonic() + seconds
        while not is_true():
            self.check()
            if time.monotonic() > until:
                raise TimeoutError(f"after {seconds:.0f} s not yet: {what}; logs: {self.folder}")
            time.sleep(LOOK_EVERY)

    def check(self) -> None:
        """Raise RuntimeError if a service has ended."""
        for name, process in self.running.items():
            if process.poll() is not None:
                last = (self.folder / f"{name}.out").read_text()[-2000:]
                raise RuntimeError(f"{name} has ended ({process.returncode}): {last}")

    def stop(self, *names: str) -> None:
        """End services and all processes that they have started; all services without a name."""
        ended = [self.running.pop(name) for name in names or tuple(self.running)]
        for process in ended:
            _signal(process, signal.SIGTERM)
        until = time.monotonic() + ENDS_IN
        for process in ended:
            with suppress(subprocess.TimeoutExpired):
                process.wait(max(until - time.monotonic(), 0))
            _signal(process, signal.SIGKILL)  # what is left of its session
            process.wait()
            for pipe in (process.stdin, process.stdout):
                assert pipe is not None
                pipe.close()


def _signal(process: subprocess.Popen[str], number: signal.Signals) -> None:
    with suppress(ProcessLookupError):
        os.killpg(process.pid, number)
