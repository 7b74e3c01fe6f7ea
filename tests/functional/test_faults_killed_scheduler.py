"""A scheduler's process is killed in the middle of a request, with all its VMs claimed.

Placement has answered a call of that scheduler, which never gets the answer. A user deletes the
last VM while the call is under way: its build request is gone, and Placement is not asked to
remove what it will hold for the VM. Another scheduler releases what was claimed ahead of Nova, with
no word of operator or user.

::

               core
            /        \\
         leaf1      leaf2
        n01-n04    n05-n07

Only leaf1 has room for a group, with all its hosts.
"""

import re
import signal
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from nova import objects
from nova.scheduler.client import report
from oslo_utils import uuidutils

from hpc_sched.nova_glue.claim import abandoned_claims
from tests.contention.wsgi_server import Application, Environ
from tests.functional import build_requests, rows
from tests.functional.claims import ClaimsOnly, claims_on, request
from tests.functional.cloud_kinds import EMPTY
from tests.functional.clouds import write_topology
from tests.functional.faults import wait_until
from tests.functional.placement_state import held
from tests.functional.scheduler_processes import (
    Scheduler,
    add_group,
    needs_files,
    served,
    started,
)
from tests.functional.shared_clouds import cloud_mark
from tests.functional.states import wishing
from tests.functional.tested_cloud import TestedCloud

pytestmark = [needs_files, cloud_mark(EMPTY)]

LEAVES = {"leaf1": ["n01", "n02", "n03", "n04"], "leaf2": ["n05", "n06", "n07"]}
RESOURCES = {"VCPU": 16, "MEMORY_MB": 1024, "DISK_GB": 1}  # of each VM, which fills a host


@dataclass
class Interruption:
    """Kills a scheduler once Placement has answered one call, before the answer is sent."""

    call: str  # a pattern of method and path
    scheduler: Scheduler
    before: Callable[[], object]  # is called when the call arrives
    statuses: list[str] = field(default_factory=list)  # what Placement answered


class InterruptedPlacement:
    """Placement as an application that makes the next interruption."""

    def __init__(self, application: Application) -> None:
        self._application = application
        self.next: Interruption | None = None

    def __call__(self, environ: Environ, start_response: Callable[..., Any]) -> Iterable[bytes]:
        """Answer a call as Placement does; a dead process gets no answer."""
        found = self.next
        call = f"{environ['REQUEST_METHOD']} {environ['PATH_INFO']}"
        if found is None or not re.fullmatch(found.call, call):
            return self._application(environ, start_response)
        self.next = None

        def answered(status: str, *others: Any) -> Any:
            found.statuses.append(status)
            return start_response(status, *others)

        found.before()
        body = list(self._application(environ, answered))
        found.scheduler.kill()
        return body


@dataclass(frozen=True)
class InterruptedCloud:
    """A cloud of hosts, without a scheduler."""

    claims: ClaimsOnly
    placement: InterruptedPlacement
    conf: Path

    def accept(self) -> tuple[objects.RequestSpec, list[str]]:
        """Return a request for a group that fills leaf1, and the uuids of its VMs."""
        vms = [uuidutils.generate_uuid() for _ in LEAVES["leaf1"]]
        group = add_group(self.claims, "anti-affinity", vms)
        build_requests.add(vms, f"r-{vms[0]}")
        self.claims.consumers += vms
        spec = request(
            count=len(vms), group=group, extra_specs=wishing(require="leaf"), uuid=vms[0]
        )
        return spec, vms

    def expect_one_allocation_each(self, vms: list[str]) -> dict[str, str]:
        """Check that these VMs have one allocation each, and no others have any; return hosts."""
        found = held(self.claims.cloud)
        assert found.keys() == set(vms)
        for vm in vms:
            assert len(found[vm]) == 1
            [allocation] = self.claims.cloud._get_allocations_by_server_uuid(vm).values()
            assert allocation["resources"] == RESOURCES
        return {vm: hosts[0] for vm, hosts in found.items()}


@pytest.fixture(scope="module")
def module_cloud(
    cloud_of_module: TestedCloud, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[InterruptedCloud]:
    hosts = [host for below in LEAVES.values() for host in below]
    folder = tmp_path_factory.mktemp("cloud")
    wrapped: list[InterruptedPlacement] = []

    def wrap(application: Application) -> Application:
        wrapped.append(InterruptedPlacement(application))
        return wrapped[0]

    with (
        claims_on(cloud_of_module, dict.fromkeys(hosts, 0)) as claims,
        served(cloud_of_module, folder, write_topology(folder, LEAVES), wrap) as conf,
    ):
        yield InterruptedCloud(claims, wrapped[0], conf)


@pytest.fixture
def cloud(module_cloud: InterruptedCloud) -> Iterator[InterruptedCloud]:
    yield module_cloud
    module_cloud.placement.next = None
    module_cloud.claims.release()
    rows.clear(module_cloud.claims.cloud)


@pytest.mark.parametrize(
    ("call", "by_nova"),
    [
        pytest.param(
            "POST /allocations",
            0,
            id="after the gang claim",
            marks=pytest.mark.nightly("processes", "two schedulers are started"),
        ),
        pytest.param("PUT /allocations/[^/]+", 1, id="after the first claim of Nova"),
    ],
)
def test_another_scheduler_releases_what_a_killed_one_has_claimed(cloud, tmp_path, call, by_nova):
    spec, vms = cloud.accept()
    last = vms[-1]
    with started(cloud.conf, tmp_path / "killed.log") as [killed]:
        interruption = Interruption(call, killed, lambda: build_requests.delete([last]))
        cloud.placement.next = interruption
        killed.begin(spec, vms)
        assert killed.process.stdout.readline() == "", "the request was answered"
        assert killed.process.wait() == -signal.SIGKILL
    assert interruption.statuses == ["204 No Content"]
    hosts = cloud.expect_one_allocation_each(vms)
    assert sorted(hosts.values()) == LEAVES["leaf1"]

    with started(cloud.conf, tmp_path / "next.log") as [scheduler]:
        # While the conductor waits nothing is proved.
        scheduler.begin(*cloud.accept())
        assert "refused" in scheduler.answer()
        time.sleep(abandoned_claims.INTERVAL + 1)
        assert cloud.expect_one_allocation_each(vms) == hosts

        # The conductor's call has timed out.
        build_requests.bury(vms)
        wait_until(lambda: len(held(cloud.claims.cloud)) == by_nova)
        cloud.expect_one_allocation_each(vms[:by_nova])
        # What Nova has claimed stays until the user deletes the server, as without hpc_sched.
        placement = report.SchedulerReportClient()
        for vm in vms[:by_nova]:
            assert placement.delete_allocation_for_instance(cloud.claims.context, vm, force=True)

        spec, vms = cloud.accept()
        scheduler.begin(spec, vms)
        answer = scheduler.answer()
    assert "hosts" in answer, answer
    assert dict(zip(vms, answer["hosts"], strict=True)) == cloud.expect_one_allocation_each(vms)
    assert sorted(answer["hosts"]) == LEAVES["leaf1"]
