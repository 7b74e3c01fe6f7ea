"""Short runs of the contention harness; ``tox -e contention`` makes long ones."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from hpc_sched.nova_glue import nova_release

ROOT = Path(__file__).resolve().parents[2]
ROUNDS = os.environ.get("HPC_SCHED_CONTENTION", "2")
TIMEOUT = 20 * 60 + 60 * int(ROUNDS)  # seconds
NO_SERVER = 2

pytestmark = pytest.mark.skipif(
    not nova_release.is_threaded(), reason="the harness starts schedulers with native threads"
)


def run(*options: str) -> str:
    """Return what the harness prints; fails if an invariant is broken."""
    command = (sys.executable, "-m", "tests.contention", "--rounds", ROUNDS, *options)
    done = subprocess.run(command, cwd=ROOT, timeout=TIMEOUT, capture_output=True, text=True)
    if done.returncode == NO_SERVER:
        pytest.skip(done.stderr.strip().splitlines()[-1])
    print(done.stdout)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_groups_that_compete_leave_nothing_behind_and_are_refused_only_without_room():
    assert "allocation left" in run("--scenario", "mixed")


@pytest.mark.slow
@pytest.mark.parametrize("scenario", ["leaves", "singles", "sigkill"])
def test_the_invariants_hold_in_every_scenario(scenario):
    run("--scenario", scenario)


@pytest.mark.slow
def test_the_invariants_hold_on_postgresql_with_placements_own_retries():
    run("--database", "postgresql", "--conflict-retries", "10")
