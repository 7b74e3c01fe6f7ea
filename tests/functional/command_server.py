"""Commands in forks of one process that has imported Nova, which takes seconds each time."""

from __future__ import annotations

import importlib
import json
import os
import signal
import subprocess
import sys
import tempfile
import traceback
from pathlib import Path
from typing import BinaryIO

ROOT = Path(__file__).resolve().parents[2]


class CommandServer:
    """A process that runs console scripts in forks of itself."""

    def __init__(self, environment: dict[str, str]) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.functional.command_server"],
            cwd=ROOT,
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def run(self, module: str, *arguments: object) -> subprocess.CompletedProcess[str]:
        """Run the function ``main`` of a module in a process of its own."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        command = [module, *map(str, arguments)]
        print(json.dumps(command), file=self._process.stdin, flush=True)
        return subprocess.CompletedProcess(command, *json.loads(self._process.stdout.readline()))

    def close(self) -> None:
        """End the process."""
        self._process.communicate(timeout=120)


def _serve() -> None:
    import hpc_sched.cli.status_command
    import hpc_sched.status.command_line  # noqa: F401 - what takes long

    for line in sys.stdin:
        module, *arguments = json.loads(line)
        with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
            pid = os.fork()
            if not pid:
                _run(module, arguments, out, err)
            _, status = os.waitpid(pid, 0)
            texts = [_content(out), _content(err)]
        print(json.dumps([os.waitstatus_to_exitcode(status), *texts]), flush=True)


def _run(module: str, arguments: list[str], out: BinaryIO, err: BinaryIO) -> None:
    signal.alarm(120)  # a command that hangs
    code = 1
    try:
        for stream, number in ((open(os.devnull), 0), (out, 1), (err, 2)):  # noqa: SIM115
            os.dup2(stream.fileno(), number)
        sys.argv = [module, *arguments]
        code = importlib.import_module(module).main(arguments)
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def _content(stream: BinaryIO) -> str:
    stream.seek(0)
    return stream.read().decode()


if __name__ == "__main__":
    _serve()
