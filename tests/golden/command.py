"""The command hpc-sched in this process: what it prints, and its exit code."""

import contextlib
import io
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from hpc_sched.cli.main import main

_PROGRESS = re.compile(r"\r[^\n]*\n?")


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

    # What a progress bar draws, and whether it appears, depends on how fast the machine is.
    told = _PROGRESS.sub("", bare(err.getvalue())).splitlines()
    return Said(code, bare(out.getvalue()), "\n".join(told))
