"""Groups whose VMs come back one by one: off hosts that died, or from the shelf.

Every host takes one VM. ::

          core                    a    b    c    three islands: the same leaves without a core
       /   |    \\
      a    b     c
    n1-n4 n5-n7 n8-n10
"""

from collections.abc import Callable, Iterator

import pytest

from tests.functional import moving_servers
from tests.functional.cloud_kinds import MOVES
from tests.functional.moving_servers import dead, decided_at_once, evacuate, only
from tests.functional.shared_clouds import cloud_mark
from tests.functional.tested_cloud import TestedCloud

pytestmark = [
    cloud_mark(MOVES),
    pytest.mark.nightly("moves", "evacuations and unshelving of groups on real computes"),
]

LEAVES = {"a": ["n1", "n2", "n3", "n4"], "b": ["n5", "n6", "n7"], "c": ["n8", "n9", "n10"]}
LEAF_OF = {host: leaf for leaf, below in LEAVES.items() for host in below}
HOSTS = [*LEAF_OF]
#: One free host on leaf b, two on leaf c
ONE_AND_TWO = ["n5", "n8", "n9"]

#: Of VMs that take a host
FLAVORS = {
    "whole": {},
    "whole leaf": {"hpc:require": "leaf"},
    "whole pair": {"hpc:require": "leaf", "hpc:group_size": "2"},
}


@pytest.fixture
def cloud(shared_cloud: TestedCloud) -> Iterator[TestedCloud]:
    for name, specs in FLAVORS.items():
        shared_cloud.flavor(name, vcpus=16, extra_specs=specs)
    with moving_servers.fabric(shared_cloud, {"core": LEAVES}), only(shared_cloud, HOSTS):
        yield shared_cloud


@pytest.fixture
def start_group(cloud: TestedCloud, boot) -> Callable[..., list[str]]:
    """Boot a group of VMs on some hosts and return the VMs."""

    def start(flavor: str, count: int, hosts: list[str]) -> list[str]:
        group = cloud.server_group("group", "soft-anti-affinity")
        with only(cloud, hosts):
            servers = boot(flavor, count=count, group=group)
            assert set(cloud.hosts_of(servers).values()) <= set(hosts)
        return servers

    return start


def leaves_of(cloud: TestedCloud, servers: list[str]) -> list[str]:
    """Return the leaf of each server, in the order of the servers."""
    return [LEAF_OF[host] for host in moving_servers.hosts_after(cloud, servers)]


@pytest.mark.ci
def test_two_groups_of_one_vm_that_require_a_leaf_are_evacuated_at_once_though_one_loses_a_place(
    cloud, start_group, monkeypatch
):
    """Each would take the one host of leaf b; leaf c has two."""
    servers = [*start_group("whole leaf", 1, ["n1"]), *start_group("whole leaf", 1, ["n2"])]
    with only(cloud, ONE_AND_TWO), dead(cloud, ["n1", "n2"]):
        with decided_at_once(monkeypatch, 2) as decisions:
            hosts = evacuate(cloud, *servers)
        assert decisions() == 2
        assert len(set(hosts) & set(ONE_AND_TWO)) == 2


def test_two_groups_of_one_vm_without_any_wish_are_evacuated_at_once_onto_islands(
    cloud, start_group, monkeypatch
):
    """A plan spans no two islands, but a VM alone may go to any of them."""
    servers = [*start_group("whole", 1, ["n1"]), *start_group("whole", 1, ["n2"])]
    with (
        moving_servers.fabric(cloud, LEAVES),
        only(cloud, ONE_AND_TWO),
        dead(cloud, ["n1", "n2"]),
    ):
        with decided_at_once(monkeypatch, 2):
            hosts = evacuate(cloud, *servers)
        assert len(set(hosts) & set(ONE_AND_TWO)) == 2


def assert_together(cloud: TestedCloud, *groups: list[str]) -> None:
    """Check that all VMs have left leaf a, each group for one leaf, each VM for a host."""
    for group in groups:
        leaves = leaves_of(cloud, group)
        assert len(set(leaves)) == 1
        assert "a" not in leaves
    moving_servers.wait_until_nothing_is_held()
    servers = [server for group in groups for server in group]
    assert len(set(moving_servers.hosts_after(cloud, servers))) == len(servers)


@pytest.mark.ci
def test_two_groups_of_a_dead_leaf_that_are_evacuated_in_turn_are_each_together_again(
    cloud, start_group
):
    """Leaves b and c have three hosts each: a second group that fills up a leaf that the first has
    begun would strand one VM."""
    first, second = (start_group("whole leaf", 2, LEAVES["a"]) for _ in range(2))
    with dead(cloud, LEAVES["a"]):
        for server in (first[0], second[0], first[1], second[1]):
            evacuate(cloud, server)
        assert_together(cloud, first, second)


def test_two_groups_of_a_dead_leaf_that_are_evacuated_at_once_are_each_together_again(
    cloud, start_group, monkeypatch
):
    first, second = (start_group("whole leaf", 2, LEAVES["a"]) for _ in range(2))
    with dead(cloud, LEAVES["a"]):
        with decided_at_once(monkeypatch, 4):
            evacuate(cloud, first[0], second[0], first[1], second[1])
        assert_together(cloud, first, second)


@pytest.mark.parametrize(
    "flavor",
    [pytest.param("whole pair", marks=pytest.mark.ci), "whole"],
    ids=["require", "no wish"],
)
def test_a_group_that_is_shelved_whole_comes_back_together_where_both_have_room(
    cloud, start_group, flavor
):
    """Leaf b would be the best fit for one VM."""
    servers = start_group(flavor, 2, HOSTS)
    for server in servers:
        cloud._shelve_server({"id": server}, expected_state="SHELVED_OFFLOADED")
    with only(cloud, ONE_AND_TWO):
        for server in servers:
            assert moving_servers.unshelve(cloud, server) == "ACTIVE"
        assert leaves_of(cloud, servers) == ["c", "c"]
    moving_servers.wait_until_nothing_is_held()
