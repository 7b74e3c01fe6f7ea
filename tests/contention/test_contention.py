"""Short runs of the contention harness; ``tox -e contention`` makes long ones."""

import os
import re
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from hpc_sched.nova_glue import nova_release

ROOT = Path(__file__).resolve().parents[2]
ROUNDS = os.environ.get("HPC_SCHED_CONTENTION", "1")
TIMEOUT = 5 * 60 + 60 * int(ROUNDS)  # seconds
NO_SERVER = 77

pytestmark = [
    pytest.mark.skipif(
        not nova_release.is_threaded(), reason="the harness starts schedulers with native threads"
    ),
]


def run(*options: str, databases: Sequence[str] = ("mariadb", "postgresql")) -> str:
    """Return what the harness prints; fails if an invariant is broken.

    :param databases: the first of them that answers is used
    """
    reason = ""
    for database in databases:
        command = (sys.executable, "-m", "tests.contention", "--rounds", ROUNDS)
        own = ("--database", database, *options)
        done = subprocess.run(
            (*command, *own), cwd=ROOT, timeout=TIMEOUT, capture_output=True, text=True
        )
        if done.returncode != NO_SERVER:
            print(done.stdout)
            assert done.returncode == 0, done.stdout + done.stderr
            return done.stdout
        reason = done.stderr.strip().splitlines()[-1]
    pytest.skip(reason)


@pytest.mark.nightly("processes", "schedulers in processes of their own")
def test_groups_that_compete_leave_nothing_behind_and_are_refused_only_without_room():
    run("--scenario", "mixed")


@pytest.mark.nightly("processes", "schedulers in processes of their own")
def test_the_invariants_hold_if_a_scheduler_is_killed():
    run("--scenario", "sigkill")


@pytest.mark.nightly("processes", "schedulers in processes of their own")
def test_no_request_is_lost_and_nothing_left_if_a_scheduler_gets_sighup():
    run("--scenario", "sighup")


@pytest.mark.nightly("processes", "schedulers in processes of their own")
def test_all_groups_are_placed_where_there_is_a_leaf_for_each():
    assert re.search(rf"^rounds with all placed +{ROUNDS}$", run("--scenario", "leaves"), re.M)


@pytest.mark.nightly("processes", "schedulers in processes of their own")
def test_all_groups_are_placed_without_the_api_database():
    """A request has twice the time for which it waits for the database."""
    printed = run("--scenario", "leaves", "--cell-timeout", "20", "--api-delay", "25")
    assert re.search(rf"^rounds with all placed +{ROUNDS}$", printed, re.M)


@pytest.mark.nightly("processes", "schedulers in processes of their own")
def test_all_single_creates_are_placed_that_are_served_before_their_deadline():
    """Other tests may run on the same cores."""
    printed = run("--scenario", "singles")
    [placed, requests] = re.findall(r"^groups: placed +(\d+) of (\d+)$", printed, re.M)[0]
    [late] = re.findall(r"^refused after their deadline +(\d+)$", printed, re.M)
    assert int(placed) + int(late) == int(requests)
    assert int(placed) > int(requests) / 2


@pytest.mark.nightly("processes", "schedulers in processes of their own")
def test_the_invariants_hold_on_postgresql():
    run(databases=["postgresql"])


@pytest.mark.nightly("processes", "schedulers in processes of their own")
def test_with_placements_own_retries_hosts_may_be_overbooked_and_all_else_holds():
    run("--conflict-retries", "10")
