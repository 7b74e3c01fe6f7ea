"""Programs of the extra ``deployment``, which a few tests need."""

import shutil
import sys
from pathlib import Path

import pytest


def tool(name: str) -> Path:
    """Return the path of a program in this environment or on PATH; skip the test without it."""
    here = Path(sys.executable).parent / name
    found = here if here.exists() else shutil.which(name)
    if not found:
        pytest.skip(f"{name} is not installed: pip install 'hpc-sched[deployment]'")
    return Path(found)
