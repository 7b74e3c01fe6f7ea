"""What the real SimGrid says of a case, from a process of Debian's own Python."""

import json
import os
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest

# The package python3-simgrid is built for this interpreter: no virtual environment has it.
PYTHON = "/usr/bin/python3"
#: ``required``: a test that needs SimGrid fails where it is missing, and is not skipped.
VARIABLE = "HPC_SCHED_TEST_SIMGRID"
_ROOT = Path(__file__).resolve().parents[2]
_SECONDS = 120.0


class ReplayError(Exception):
    """SimGrid has not replayed a case: what it printed."""


@dataclass(frozen=True, slots=True)
class Replayed:
    """When the last rank has ended, and each in the order of the case, s."""

    seconds: float
    ends: tuple[float, ...]
    cpu: float  # of SimGrid, s


def replayed(case_text: str, model: str = "equal") -> Replayed:
    """Return the times of a case, see :func:`all_replayed`."""
    (found,) = all_replayed([case_text], model)
    return found


def all_replayed(
    case_texts: Sequence[str], model: str = "equal", seconds: float = _SECONDS
) -> list[Replayed]:
    """Return the times of cases; the test is skipped where there is no SimGrid.

    Most of what a small case takes is the start of the process: many of them are best replayed by
    one.

    :param model: ``equal``: max-min fair shares, each flow of a link alike, whatever its latency;
        ``defaults``: SimGrid's own model, LV08
    :param seconds: in which all must be replayed
    :raises ReplayError: if a text is not a case, or a rank waits for ever
    """
    require()
    command = [PYTHON, "-E", "-s", "-m", "tests.simgrid.replay_case", "--model", model]
    texts = json.dumps(list(case_texts))
    try:
        ran = subprocess.run(
            command, input=texts, cwd=_ROOT, capture_output=True, text=True, timeout=seconds
        )
    except subprocess.TimeoutExpired as error:
        raise ReplayError(f"no end after {seconds:.0f} s: {error.stderr!r}") from error
    if ran.returncode != 0:
        raise ReplayError(f"{' '.join(command)}: exit code {ran.returncode}\n{ran.stderr}")
    return [
        Replayed(one["seconds"], tuple(one["ends"]), one["cpu"]) for one in json.loads(ran.stdout)
    ]


def require() -> None:
    """Skip the test where SimGrid is missing; fail it where SimGrid is required."""
    reason = missing(PYTHON)
    if reason is None:
        return
    if os.environ.get(VARIABLE) == "required":
        pytest.fail(f"{VARIABLE}=required: {reason}")
    pytest.skip(f"{reason} (Debian: python3-simgrid)")


@cache
def missing(python: str) -> str | None:
    """Return why an interpreter has no SimGrid, or None."""
    command = [python, "-E", "-s", "-c", "import simgrid"]
    try:
        ran = subprocess.run(command, capture_output=True, text=True, timeout=_SECONDS)
    except OSError as error:
        return f"no SimGrid: {error}"
    if ran.returncode == 0:
        return None
    return f"no SimGrid for {python}: {ran.stderr.strip().splitlines()[-1]}"


@pytest.fixture(scope="session")
def needs_simgrid() -> None:
    """Skip or fail a test as :func:`require` does, before anything else of it runs."""
    require()
