"""WholeLeafWeigher on a running Nova.

The cloud is that of :data:`tests.functional.cloud_kinds.MDOBP`: two leaves of three hosts, four
VMs a host.
"""

from collections import Counter

import pytest

from hpc_sched.weighers.whole_leaf import WholeLeafWeigher
from tests.functional.cloud_kinds import MDOBP
from tests.functional.scheduling_costs import placed, scheduling
from tests.functional.shared_clouds import cloud_mark
from tests.functional.tested_cloud import TestedCloud

pytestmark = cloud_mark(MDOBP)


@pytest.fixture
def cloud(shared_cloud: TestedCloud, monkeypatch: pytest.MonkeyPatch) -> TestedCloud:
    """Enable the weigher after those of Nova; no other one of hpc_sched places single VMs."""
    manager = shared_cloud.scheduler.manager.host_manager
    monkeypatch.setattr(manager, "weighers", [*manager.weighers, WholeLeafWeigher()])
    shared_cloud.flags(whole_leaf_weight_multiplier=100000.0, group="hpc_sched")
    shared_cloud.flavor("plain", memory_mb=2048)
    return shared_cloud


def leaves_of(cloud: TestedCloud) -> list[int]:
    """Return the VMs below each leaf that has any, most first."""
    servers = cloud.api.get_servers(detail=True)
    hosts = [server["OS-EXT-SRV-ATTR:host"] for server in servers]
    return sorted(Counter((int(host[1:]) - 1) // 3 for host in hosts).values(), reverse=True)


def test_single_vms_fill_a_leaf_host_by_host_and_with_the_multiplier_of_0_nova_spreads_them(
    cloud, boot
):
    assert placed(cloud, boot, "plain", 6) == [4, 2]
    assert leaves_of(cloud) == [6]
    cloud.flags(whole_leaf_weight_multiplier=0.0, group="hpc_sched")
    assert placed(cloud, boot, "plain", 4) == [1, 1, 1, 1]
    assert len(leaves_of(cloud)) == 2


def test_the_vms_of_one_request_without_a_group_fill_a_leaf_too(cloud, boot):
    assert placed(cloud, boot, "plain", 1, count=10) == [4, 4, 2]
    assert leaves_of(cloud) == [10]


def test_a_request_costs_the_queries_that_it_costs_without_the_weigher(cloud, boot, monkeypatch):
    # The first request of a scheduler reads the cells as well.
    cloud.wait(boot("plain"))
    costs = []
    for multiplier in (0.0, 100000.0):
        cloud.flags(whole_leaf_weight_multiplier=multiplier, group="hpc_sched")
        with scheduling(monkeypatch) as found:
            cloud.wait(boot("plain"))
        costs += found
    assert costs[0] == costs[1]
