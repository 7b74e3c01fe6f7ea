"""The command hpc-sched in this process: what it prints, and its exit code."""

import contextlib
import io
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from hpc_sched.cli.main import main


@dataclass(frozen=True)
class Said:
    """What a run of the command has told."""

    code: int
    out: str
    err: str


def run(arguments: Sequence[str], folder: Path) -> Said:
    """Run the command; names of files in a folder are told without it.

    :param arguments: without the name of the program
    """
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = main(list(arguments))

    def bare(text: str) -> str:
        return text.replace(f"{folder}/", "").replace(str(folder), "FOLDER")

    # What a progress bar draws depends on how fast the machine is.
    lines = [line for line in bare(err.getvalue()).splitlines() if "\r" not in line]
    told = [line for line in lines if "jobs/s" not in line and " jobs [" not in line]
    return Said(code, bare(out.getvalue()), "\n".join(told))
