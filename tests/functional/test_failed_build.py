"""A build that fails on a real compute, and what the scheduler makes of the report.

Which hosts are chosen where more builds have failed is in
:mod:`tests.functional.test_shunned_hosts`.
"""

from collections.abc import Iterator
from pathlib import Path

import pytest
from nova import context as nova_context
from nova import exception
from nova.virt import fake

from tests.functional.cloud_kinds import REAL_PODS
from tests.functional.shared_clouds import cloud_mark
from tests.functional.states import read_decisions, read_landings
from tests.functional.tested_cloud import TestedCloud

pytestmark = [cloud_mark(REAL_PODS), pytest.mark.ci]

HOST = "la1"


@pytest.fixture
def cloud(shared_cloud: TestedCloud) -> Iterator[TestedCloud]:
    # Nova's fixtures set it to 0.
    shared_cloud.flags(build_failure_weight_multiplier=1000000.0, group="filter_scheduler")
    shared_cloud.flavor("whole", vcpus=16, memory_mb=1024)
    yield shared_cloud
    shared_cloud.computes[HOST].manager.rt.build_succeeded(HOST)
    report(shared_cloud)


def report(cloud: TestedCloud) -> None:
    """Have the compute report its resources, as it does once a minute."""
    tracker = cloud.computes[HOST].manager.rt
    tracker.update_available_resource(nova_context.get_admin_context(), HOST)


def test_a_group_avoids_the_leaf_of_a_host_on_which_a_build_has_failed(
    cloud, boot, tmp_path: Path, monkeypatch
):
    def spawn(self, context, instance, *_args, **_said):
        raise exception.BuildAbortException(instance_uuid=instance.uuid, reason="a broken image")

    with monkeypatch.context() as patch:
        patch.setattr(fake.FakeDriver, "spawn", spawn)
        [server] = boot("whole", host=HOST)
        assert cloud.wait([server])[server]["status"] == "ERROR"
    cloud.remove([server])
    report(cloud)
    log = tmp_path / "decisions"
    cloud.flags(decision_log=str(log), group="hpc_sched")
    group = cloud.server_group("pair", "anti-affinity")
    hosts = cloud.hosts_of(boot("whole", count=2, group=group))
    assert len(set(hosts.values())) == 2
    [record] = read_decisions(log)
    failed = {"count": 1, "hosts": [HOST]}
    assert record["shunned"] == {"failed builds (BuildFailureWeigher)": failed}
    assert "la" not in record["plan"]["leaves"]
    [landing] = read_landings(log)
    assert landing["landed"]["as_planned"]
