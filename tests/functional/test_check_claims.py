"""hpc-sched check claims on a cloud: what is listed, what is released, and exit codes.

::

      core
     /    \\
  leaf1  leaf2
   n1     n2
"""

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from oslo_utils import uuidutils

from hpc_sched.nova_glue.io import allocations
from hpc_sched.nova_glue.io.allocations import Answer, Consumer, Owner
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
        command = (sys.executable, "-m", "hpc_sched.cli.main", "check", "claims", "-f", "json")
        done = subprocess.run(
            [*command, "--config-file", str(self._conf), *options],
            cwd=ROOT,
            capture_output=True,
            text=True,
        )
        assert not done.stderr
        found = json.loads(done.stdout)
        assert all(row["Kind"] == "claim" for row in found)
        return done.returncode, {
            row["Instance"]: (row["Hosts"], row["State"], row["Request"]) for row in found
        }


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
