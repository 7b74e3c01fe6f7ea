"""Holds that are written at the same moment, on database servers: as if one after the other.

On a server others come between any two steps of Placement; its ``allocation_conflict_retry_count``
is the default here, so that it repeats what conflicts.
"""

import json
import subprocess
import sys

import pytest

from tests.checkouts import ROOT
from tests.functional import servers

THREADS, WRITES = 6, 25


@pytest.mark.ci
@pytest.mark.parametrize("engine", servers.SERVERS)
def test_six_threads_that_hold_places_of_the_same_vms_write_as_one_after_the_other(engine):
    with servers.databases_on(engine) as make:
        done = subprocess.run(
            [
                *(sys.executable, "-m", "tests.protocol.hold_writers", make("placement")),
                *map(str, (THREADS, WRITES)),
            ],
            capture_output=True,
            text=True,
            cwd=ROOT,
            check=False,
        )
    assert done.returncode == 0, done.stderr[-3000:]
    found = json.loads(done.stdout.splitlines()[-1])
    assert not found["problems"]
    assert found["answers"].keys() <= {"DONE", "CONSUMER_CHANGED"}
    # Of those that have read the same one is always done.
    assert found["answers"]["DONE"] >= WRITES
    assert sum(found["answers"].values()) == THREADS * WRITES
