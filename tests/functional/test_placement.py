"""Where groups land on a real Nova: API, conductor, scheduler, Placement, 32 fake computes."""

import pytest

from tests.functional.cloud_kinds import FOUR_BY_EIGHT
from tests.functional.clouds import four_by_eight, leaves_used
from tests.functional.shared_clouds import cloud_mark
from tests.functional.tested_cloud import TestedCloud

LEAVES = four_by_eight()


pytestmark = cloud_mark(FOUR_BY_EIGHT)


@pytest.fixture
def cloud(shared_cloud: TestedCloud) -> TestedCloud:
    # All but one processor of a host: one VM a host, ballast or not.
    shared_cloud.flavor("rank", vcpus=15, memory_mb=1024)
    shared_cloud.flavor("small", vcpus=1, memory_mb=1024)
    return shared_cloud


@pytest.mark.default
@pytest.mark.parametrize("policy", ["anti-affinity", "soft-anti-affinity"])
def test_a_group_of_8_lands_in_one_leaf(cloud, boot, policy):
    group = cloud.server_group("eight", policy)
    hosts = cloud.hosts_of(boot("rank", count=8, group=group))
    assert list(leaves_used(LEAVES, hosts.values()).values()) == [8]


def test_a_group_of_16_fills_two_leaves(cloud, boot):
    group = cloud.server_group("sixteen", "anti-affinity")
    hosts = cloud.hosts_of(boot("rank", count=16, group=group))
    assert sorted(leaves_used(LEAVES, hosts.values()).values()) == [8, 8]


@pytest.mark.default
def test_a_group_with_3_members_in_a_leaf_with_5_free_hosts_gets_its_next_5_there(cloud, boot):
    group = cloud.server_group("grows", "anti-affinity")
    first = cloud.hosts_of(boot("rank", count=3, group=group))
    [leaf] = leaves_used(LEAVES, first.values())
    after = cloud.hosts_of(boot("rank", count=5, group=group))
    assert leaves_used(LEAVES, after.values()) == {leaf: 5}


def test_single_creates_in_a_row_stay_in_the_leaf_of_the_first(cloud, boot):
    group = cloud.server_group("one by one", "anti-affinity")
    hosts = []
    for _ in range(4):
        hosts += cloud.hosts_of(boot("rank", group=group)).values()
    assert list(leaves_used(LEAVES, hosts).values()) == [4]
    assert len(set(hosts)) == 4


@pytest.mark.default
def test_a_multi_create_without_a_server_group_is_a_group_of_its_own(cloud, boot):
    classed = cloud.flavor("rank-sync", vcpus=16, extra_specs={"hpc:app_class": "sync"})
    hosts = cloud.hosts_of(boot(classed, count=8))
    assert list(leaves_used(LEAVES, hosts.values()).values()) == [8]


@pytest.mark.default
def test_vms_of_a_group_without_anti_affinity_fill_the_fewest_hosts(cloud, boot):
    group = cloud.server_group("dense", "soft-affinity")
    hosts = cloud.hosts_of(boot("small", count=6, group=group))
    assert len(set(hosts.values())) == 1


def test_a_soft_anti_affinity_group_is_spread_over_the_hosts_of_its_leaf(cloud, boot):
    group = cloud.server_group("spread", "soft-anti-affinity")
    hosts = cloud.hosts_of(boot("small", count=6, group=group))
    assert len(set(hosts.values())) == 6
    assert list(leaves_used(LEAVES, hosts.values()).values()) == [6]


def test_a_group_of_class_none_goes_where_novas_ram_weigher_wants_it(cloud, boot):
    """Its memory is in use on leaf2 and on six hosts of leaf1."""
    cloud.flavor("ballast", vcpus=1, memory_mb=30000)
    cloud.flavor("rank-none", vcpus=15, memory_mb=1024, extra_specs={"hpc:app_class": "none"})
    for host in LEAVES["leaf1"][:6] + LEAVES["leaf2"]:
        boot("ballast", host=host)
    group = cloud.server_group("available", "anti-affinity")
    hosts = cloud.hosts_of(boot("rank-none", count=16, group=group))
    assert set(leaves_used(LEAVES, hosts.values())) <= {"leaf1", "leaf3", "leaf4"}
    assert leaves_used(LEAVES, hosts.values()).get("leaf1", 0) <= 2


def test_the_weigher_keeps_nothing_of_any_request(cloud, boot):
    [weigher] = [w for w in cloud.weighers if type(w).__name__ == "HopByteWeigher"]
    before = dict(vars(weigher))
    group = cloud.server_group("traceless", "anti-affinity")
    cloud.hosts_of(boot("rank", count=2, group=group))
    assert vars(weigher) == before == {}
