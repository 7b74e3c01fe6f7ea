"""What of the soak runs when."""

import os

import pytest

LONG = pytest.mark.skipif(
    "HPC_SCHED_SOAK" not in os.environ, reason="takes minutes: part of tox -e soak"
)
