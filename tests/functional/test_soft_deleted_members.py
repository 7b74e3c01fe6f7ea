"""VMs that a user has deleted, on a cloud that keeps them for a while, and their group.

Every host takes one VM. ::

         core
        /    \\
     leaf1  leaf2
     n1-n4  n5-n8
"""

from collections.abc import Callable
from types import SimpleNamespace

import pytest

from tests.functional.cloud_kinds import TWO_BY_FOUR
from tests.functional.shared_clouds import cloud_mark
from tests.functional.tested_cloud import TestedCloud
from tests.functional.trees import hosts_below

pytestmark = cloud_mark(TWO_BY_FOUR)

[LEAVES] = TWO_BY_FOUR.tree.values()
LEAF_OF = {host: leaf for leaf, below in LEAVES.items() for host in below}
FLAVORS = {"whole": {}, "whole leaf": {"hpc:require": "leaf"}}


@pytest.fixture
def cloud(shared_cloud: TestedCloud) -> TestedCloud:
    for name, specs in FLAVORS.items():
        shared_cloud.flavor(name, vcpus=16, extra_specs=specs)
    shared_cloud.flags(reclaim_instance_interval=3600)
    return shared_cloud


@pytest.fixture
def start_deleted(cloud: TestedCloud, boot) -> Callable[..., SimpleNamespace]:
    """Boot a group of three, delete all as a user does; return it with its leaf and the other."""

    def start(flavor: str) -> SimpleNamespace:
        group = cloud.server_group("group", "soft-anti-affinity")
        servers = boot(flavor, count=3, group=group)
        [leaf] = leaves_of(cloud, servers)
        [other] = LEAVES.keys() - {leaf}
        for server in servers:
            cloud.api.delete_server(server)
            assert cloud.api.get_server(server)["status"] == "SOFT_DELETED"
        return SimpleNamespace(uuid=group, servers=servers, leaf=leaf, other=other)

    return start


def leaves_of(cloud: TestedCloud, servers: list[str]) -> set[str]:
    """Return the leaves of servers, all of which have a host of their own."""
    hosts = cloud.hosts_of(servers)
    assert len(set(hosts.values())) == len(servers)
    return {LEAF_OF[host] for host in hosts.values()}


@pytest.mark.parametrize("flavor", FLAVORS, ids=["no wish", "require"])
def test_new_vms_in_place_of_all_that_a_user_has_deleted_go_where_they_are_together(
    cloud, boot, start_deleted, flavor
):
    """The leaf of the old ones, which take their hosts until they are reclaimed, has one left."""
    group = start_deleted(flavor)
    assert leaves_of(cloud, boot(flavor, count=3, group=group.uuid)) == {group.other}


def test_deleted_vms_take_their_hosts_until_they_are_reclaimed(cloud, boot, start_deleted):
    group = start_deleted("whole leaf")
    for host in LEAVES[group.other]:
        cloud.wait(boot("whole", host=host))
    servers = boot("whole leaf", count=2, group=group.uuid)
    faults = [one["fault"]["message"] for one in cloud.wait(servers).values()]
    assert all("largest gang that fits under one leaf: 1" in fault for fault in faults)
    [free] = set(hosts_below(LEAVES[group.leaf])) - occupied(cloud)
    [server] = boot("whole leaf", group=group.uuid)
    assert cloud.hosts_of([server]) == {server: free}


def occupied(cloud: TestedCloud) -> set[str]:
    """Return the hosts on which Placement holds something."""
    return {
        provider["name"]
        for provider in cloud._get_all_providers()
        if any(cloud._get_provider_usages(provider["uuid"]).values())
    }


def test_a_vm_that_its_user_restores_is_a_member_again(cloud, boot, start_deleted):
    group = start_deleted("whole leaf")
    cloud.api.post_server_action(group.servers[0], {"restore": None})
    assert leaves_of(cloud, boot("whole leaf", group=group.uuid)) == {group.leaf}


def test_those_that_are_left_of_a_group_hold_the_new_ones(cloud, boot, start_deleted):
    """Two of a group's VMs live, three are soft-deleted: the two count."""
    group = start_deleted("whole leaf")
    with cloud.only(LEAVES[group.other]):
        cloud.wait(boot("whole leaf", count=2, group=group.uuid))
    assert leaves_of(cloud, boot("whole leaf", count=2, group=group.uuid)) == {group.other}
