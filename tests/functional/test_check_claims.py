"""hpc-sched check claims on a cloud: what is listed, what is released, and exit codes.

::

      core
     /    \\
  leaf1  leaf2
   n1     n2
"""

import datetime
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from oslo_utils import uuidutils

from hpc_sched import clock
from hpc_sched.nova_glue.claim.holds import store
from hpc_sched.nova_glue.io import allocations
from hpc_sched.nova_glue.io.allocations import Answer, Consumer, Owner
from hpc_sched.nova_glue.read.hold import Hold
from tests.functional import build_requests, rows
from tests.functional.claims import ClaimsOnly, claims_on
from tests.functional.cloud_kinds import EMPTY
from tests.functional.clouds import ROOT, write_topology
from tests.functional.placement_state import held
from tests.functional.scheduler_processes import needs_files, served
from tests.functional.shared_clouds import cloud_mark
from tests.functional.tested_cloud import TestedCloud

pytestmark = [needs_files, cloud_mark(EMPTY), pytest.mark.ci]

LEAVES = {"leaf1": ["n1"], "leaf2": ["n2"]}
OWNER = Owner("project", "user")


class Claims:
    """A cloud with hosts, and claims of schedulers that are gone."""

    def __init__(self, claims: ClaimsOnly, conf: Path) -> None:
        self.cloud = claims.cloud
        self._claims, self._conf = claims, conf

    def claim(self, host: str) -> str:
        """Claim a host for a VM that nova-api has accepted, as a gang claim does; return it."""
        vm = uuidutils.generate_uuid()
        build_requests.add([vm], f"r-{vm}")
        self._claims.consumers.append(vm)
        wanted = {self._claims.provider_of[host]: {"resources": {"VCPU": 1, "MEMORY_MB": 64}}}
        consumer = Consumer(vm, wanted, None, is_claim=True)
        assert allocations.write(OWNER, [consumer]).answer is Answer.DONE
        return vm

    def claim_by_nova(self, vm: str) -> None:
        """Claim what a VM holds once more, as Nova does: its type stays."""
        found = allocations.read(vm)
        assert allocations.write(OWNER, [found]).answer is Answer.DONE

    def check(self, *options: str) -> tuple[int, dict[str, tuple[str, str, str]]]:
        """Run the command; return its exit code, and hosts, state and verdict by VM."""
        code, found = self.rows(*options)
        assert all(row["Kind"] == "claim" for row in found)
        return code, {
            row["Instance"]: (row["Hosts"], row["State"], row["Request"]) for row in found
        }

    def rows(self, *options: str) -> tuple[int, list[dict[str, str]]]:
        """Run the command; return its exit code and rows."""
        command = (sys.executable, "-m", "hpc_sched.cli.main", "check", "claims", "-f", "json")
        done = subprocess.run(
            [*command, "--config-file", str(self._conf), *options],
            cwd=ROOT,
            capture_output=True,
            text=True,
        )
        assert not done.stderr
        return done.returncode, json.loads(done.stdout)


@pytest.fixture
def claims(cloud_of_module: TestedCloud, tmp_path: Path) -> Iterator[Claims]:
    with (
        claims_on(cloud_of_module, {"n1": 0, "n2": 0}) as found,
        served(cloud_of_module, tmp_path, write_topology(tmp_path, LEAVES)) as conf,
    ):
        yield Claims(found, conf)
        found.release()
        rows.clear(found.cloud)


def test_claims_of_dead_requests_are_released_and_nothing_else(claims):
    buried, living, taken, orphan = (claims.claim(host) for host in ("n1", "n1", "n2", "n2"))
    build_requests.bury([buried, taken])
    claims.claim_by_nova(taken)
    build_requests.remove([orphan])
    before = {
        buried: ("n1", "in cell0", "dead"),
        living: ("n1", "being created", "not proved dead"),
        orphan: ("n2", "unknown to Nova", "dead"),
    }
    assert claims.check() == (1, before)
    code, released = claims.check("--release")
    assert code == 0
    assert {vm: row[2] for vm, row in released.items()} == {
        buried: "dead, released",
        living: "not proved dead",
        orphan: "dead, released",
    }
    assert held(claims.cloud).keys() == {living, taken}
    assert claims.check("--release") == (0, {living: before[living]})


def test_places_that_are_held_for_followers_are_listed_with_their_end(claims):
    first, second = (uuidutils.generate_uuid() for _ in range(2))
    until = int(clock.current.unix_time()) + 300
    amounts = {"VCPU": 1}
    places = [
        Hold(first, "n1", amounts, until, is_moving=True),
        Hold(second, "n2", amounts, until),
    ]
    holds = store.read()
    while (written := store.write(holds, places)).answer is Answer.CONSUMER_CHANGED:
        holds = store.read()
    assert written.answer is Answer.DONE
    try:
        code, found = claims.rows()
    finally:
        store.release([first, second])
    assert code == 0
    assert {(row["Kind"], row["Instance"], row["Hosts"], row["State"]) for row in found} == {
        ("hold", first, "n1", "is being placed"),
        ("hold", second, "n2", "follows"),
    }
    assert {row["Request"] for row in found} == {
        f"ends {datetime.datetime.fromtimestamp(until, datetime.UTC):%Y-%m-%d %H:%M:%S}"
    }
