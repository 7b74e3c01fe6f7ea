"""Hosts that the topology does not name, beside two islands.

::

    west     east     unnamed              west and east are the description's, and full
     |        |       /  |  |  \\
    w1 w2    e1 e2   u1 u2 u3  u4          the description does not have u1 to u4
"""

from collections.abc import Iterator

import pytest

from tests.functional.cloud_kinds import ISLANDS, PODS, UNNAMED
from tests.functional.shared_clouds import cloud_mark
from tests.functional.thin_cloud import ThinCloud
from tests.functional.trees import hosts_below

pytestmark = cloud_mark(PODS)


@pytest.fixture
def cloud(shared_cloud: ThinCloud) -> Iterator[ThinCloud]:
    shared_cloud.flags(implicit_groups=True, group="hpc_sched")
    shared_cloud.flavor("whole", vcpus=16)
    shared_cloud.flavor("one-leaf", vcpus=16, extra_specs={"hpc:require": "leaf"})
    with shared_cloud.only([*hosts_below(ISLANDS), *UNNAMED]):
        yield shared_cloud


@pytest.mark.parametrize(
    "policy", [None, "soft-anti-affinity", "anti-affinity"], ids=lambda policy: policy or "no group"
)
def test_two_vms_are_placed_on_idle_hosts_outside_the_topology(cloud, boot, policy):
    group = cloud.server_group("pair", policy) if policy else None
    servers = boot("whole", count=2, group=group)
    used = cloud.hosts_of(servers)
    assert used.keys() == set(servers)
    assert len(set(used.values())) == 2
    assert set(used.values()) < set(UNNAMED)


@pytest.mark.default
def test_no_two_hosts_outside_the_topology_are_under_one_leaf(cloud, boot):
    servers = boot("one-leaf", count=2, group=cloud.server_group("leaf", "soft-anti-affinity"))
    shown = cloud.wait(servers)
    assert {server["status"] for server in shown.values()} == {"ERROR"}
    assert "needs one leaf" in cloud.api.get_server(servers[0])["fault"]["message"]
