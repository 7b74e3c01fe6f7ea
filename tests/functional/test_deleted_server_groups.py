"""VMs whose server group has been deleted, and that move.

Nova removes the hint from their RequestSpecs; the VMs of the same create are then their group.
Every host takes one VM. The fabric is drawn at MOVES in :mod:`tests.functional.cloud_kinds`.
"""

from collections.abc import Callable

import pytest

from tests.functional.cloud_kinds import MOVES
from tests.functional.moving_servers import dead, evacuate, hosts_after, only
from tests.functional.shared_clouds import cloud_mark
from tests.functional.tested_cloud import TestedCloud

pytestmark = [
    cloud_mark(MOVES),
    pytest.mark.nightly("moves", "migrations and evacuations on real computes"),
]

LEAF1, LEAF2, LEAF3 = ["n1", "n2", "n3"], ["n4", "n5", "n6"], ["n7", "n8", "n9"]
FLAVORS = {
    "whole leaf": {"hpc:require": "leaf"},
    "whole sync leaf": {"hpc:app_class": "sync", "hpc:require": "leaf"},
}


@pytest.fixture
def cloud(shared_cloud: TestedCloud) -> TestedCloud:
    for name, specs in FLAVORS.items():
        shared_cloud.flavor(name, vcpus=16, extra_specs=specs)
    return shared_cloud


@pytest.fixture
def start_left(cloud: TestedCloud, boot) -> Callable[..., list[str]]:
    """Boot a group onto some hosts, delete its server group and return its VMs."""

    def start(flavor: str, count: int, hosts: list[str]) -> list[str]:
        group = cloud.server_group("group", "soft-anti-affinity")
        with only(cloud, hosts):
            servers = boot(flavor, count=count, group=group)
            assert set(cloud.hosts_of(servers).values()) == set(hosts)
        cloud.api.delete_server_group(group)
        return servers

    return start


def is_migrated(cloud: TestedCloud, server: str) -> bool:
    """Migrate a server cold; return whether it found a host."""
    [before] = hosts_after(cloud, [server])
    cloud.api.post_server_action(server, {"migrate": None})
    seen = cloud._wait_for_server_parameter({"id": server}, {"OS-EXT-STS:task_state": None})
    if seen["status"] == "VERIFY_RESIZE":
        cloud._confirm_resize({"id": server})
    return hosts_after(cloud, [server]) != [before]


@pytest.mark.parametrize(
    "flavor", [pytest.param("whole leaf", marks=pytest.mark.ci), "whole sync leaf"]
)
def test_a_vm_keeps_what_its_flavor_requires_after_its_server_group_is_deleted(
    cloud, start_left, flavor
):
    server, _ = start_left(flavor, 2, LEAF1[:2])
    with only(cloud, [*LEAF1[:2], *LEAF2]):
        assert not is_migrated(cloud, server)
    with only(cloud, [*LEAF1, *LEAF2]):
        assert is_migrated(cloud, server)
    assert hosts_after(cloud, [server]) == ["n3"]


def test_vms_of_a_deleted_server_group_on_a_dead_leaf_follow_each_other(cloud, start_left):
    """The first alone would fit best on the one host of leaf2."""
    servers = start_left("whole leaf", 2, LEAF1[:2])
    with only(cloud, ["n4", *LEAF3[:2]]), dead(cloud, LEAF1):
        for server in servers:
            evacuate(cloud, server)
        assert set(hosts_after(cloud, servers)) == set(LEAF3[:2])


def test_a_vm_whose_siblings_are_gone_moves_as_one_vm(cloud, start_left, caplog):
    server, other = start_left("whole leaf", 2, LEAF1[:2])
    cloud.remove([other])
    with only(cloud, ["n1", *LEAF2]):
        assert is_migrated(cloud, server)
    assert f"Ignored for instance {server}: hpc:require: the VM belongs to no group" in caplog.text


def test_a_vm_that_was_created_alone_moves_as_one_vm(cloud, boot):
    """Its reservation id names no other VM of the group."""
    group = cloud.server_group("group", "soft-anti-affinity")
    first, second = (boot("whole leaf", host=host, group=group)[0] for host in LEAF1[:2])
    cloud.wait([first, second])
    cloud.api.delete_server_group(group)
    with only(cloud, [*LEAF1[:2], *LEAF2]):
        assert is_migrated(cloud, first)
