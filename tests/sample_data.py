"""Where tests find the sample data, which is no part of the project."""

import os
from pathlib import Path

import pytest

_BESIDE = Path(__file__).resolve().parents[2] / "shared" / "data"


def path(name: str) -> Path:
    """Return the path of a sample file; the test is skipped where it is missing."""
    folder = Path(os.environ.get("HPC_SCHED_DATA") or _BESIDE)
    found = folder / name
    if not found.exists():
        pytest.skip(f"no sample data: {found} (HPC_SCHED_DATA names the folder)")
    return found
