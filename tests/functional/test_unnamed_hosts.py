"""Hosts that the topology does not name, on a real Nova with two islands.

::

    west     east     unnamed              west and east are the description's, and full
     |        |       /  |  |  \\
    w1 w2    e1 e2   u1 u2 u3  u4          the description does not have u1 to u4
"""

from collections.abc import Callable

import pytest

from hpc_sched.demo.nova_cloud import NovaCloud
from tests.functional.trees import write_tree

ISLANDS = {"west": ["w1", "w2"], "east": ["e1", "e2"]}
NAMED = [host for hosts in ISLANDS.values() for host in hosts]
UNNAMED = ["u1", "u2", "u3", "u4"]


@pytest.fixture(scope="module")
def cloud(
    start_cloud: Callable[..., NovaCloud], tmp_path_factory: pytest.TempPathFactory
) -> NovaCloud:
    path = write_tree(tmp_path_factory.mktemp("fabric") / "topology.yaml", ISLANDS)
    cloud = start_cloud(path, {("hpc_sched", "implicit_groups"): True})
    cloud.start_computes([*NAMED, *UNNAMED])
    cloud.flavor("whole", vcpus=16)
    cloud.flavor("one-leaf", vcpus=16, extra_specs={"hpc:require": "leaf"})
    cloud.wait([server for host in NAMED for server in cloud.boot("whole", host=host)])
    return cloud


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


def test_no_two_hosts_outside_the_topology_are_under_one_leaf(cloud, boot):
    servers = boot("one-leaf", count=2, group=cloud.server_group("leaf", "soft-anti-affinity"))
    shown = cloud.wait(servers)
    assert {server["status"] for server in shown.values()} == {"ERROR"}
    assert "needs one leaf" in cloud.api.get_server(servers[0])["fault"]["message"]
