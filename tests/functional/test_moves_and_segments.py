"""VMs of groups in parts that move between real computes.

The fabric is drawn at MOVES in :mod:`tests.functional.cloud_kinds`: three hosts on each of leaf1 to
leaf3, two on leaf4. A VM fills a host.
"""

from collections import Counter
from collections.abc import Iterable, Mapping

import pytest

from tests.functional.cloud_kinds import MOVES
from tests.functional.moving_servers import dead, disabled, evacuate, hosts_after
from tests.functional.shared_clouds import cloud_mark
from tests.functional.test_moves_and_wishes import migrate, unshelve
from tests.functional.tested_cloud import TestedCloud

pytestmark = [
    cloud_mark(MOVES),
    pytest.mark.nightly("moves", "migrations and evacuations on real computes"),
]

[SWITCHES] = MOVES.tree.values()
LEAVES = {leaf: hosts for pod in SWITCHES.values() for leaf, hosts in pod.items()}
LEAF_OF = {host: leaf for leaf, hosts in LEAVES.items() for host in hosts}


@pytest.fixture
def cloud(shared_cloud: TestedCloud) -> TestedCloud:
    shared_cloud.flavor("whole", vcpus=16)
    return shared_cloud


@pytest.fixture
def hosts(cloud, boot) -> Mapping[str, str]:
    """Return the hosts of a group of two parts, of two VMs each, on leaves of three hosts."""
    pairs = cloud.flavor("pairs", vcpus=16, extra_specs={"hpc:segment": "2"})
    group = cloud.server_group("pairs", "anti-affinity")
    found = cloud.hosts_of(boot(pairs, count=4, group=group))
    assert sizes(found.values()) == [2, 2]
    return found


def sizes(hosts: Iterable[str]) -> list[int]:
    """Return the numbers of VMs of the used leaves, largest first."""
    return sorted(Counter(LEAF_OF[host] for host in hosts).values(), reverse=True)


def of_three(hosts: Mapping[str, str]) -> str:
    """Return a VM on a leaf of three hosts."""
    return next(vm for vm in sorted(hosts) if len(LEAVES[LEAF_OF[hosts[vm]]]) == 3)


@pytest.mark.parametrize("move", [migrate, unshelve])
def test_a_vm_that_moves_stays_in_its_part(cloud, hosts, move):
    server = of_three(hosts)
    move(cloud, server)
    assert sizes(hosts_after(cloud, hosts)) == [2, 2]


def test_a_vm_that_is_evacuated_stays_in_its_part(cloud, hosts):
    server = of_three(hosts)
    with dead(cloud, [hosts[server]]):
        [after] = evacuate(cloud, server)
        assert after != hosts[server]
        assert LEAF_OF[after] == LEAF_OF[hosts[server]]


def test_a_vm_does_not_leave_its_part_unless_moves_are_relaxed(cloud, boot, caplog, hosts):
    server = of_three(hosts)
    leaf = LEAF_OF[hosts[server]]
    for free in sorted(set(LEAVES[leaf]) - set(hosts.values())):
        cloud.wait(boot("whole", host=free))
    caplog.clear()
    cloud.api.post_server_action(server, {"migrate": None})
    cloud._wait_for_action_fail_completion({"id": server}, "migrate", "cold_migrate")
    assert cloud.hosts_of([server])[server] == hosts[server]
    assert (
        "1 more of a group with 3 members needs parts of 2 under one leaf switch each: no room "
        "beside its members; [hpc_sched] relax_moves can lift the guarantees of moves"
    ) in caplog.text
    cloud.flags(relax_moves="always", group="hpc_sched")
    migrate(cloud, server)
    assert LEAF_OF[cloud.hosts_of([server])[server]] != leaf


def test_a_part_on_a_dead_leaf_is_a_part_again_after_its_evacuation_one_by_one(cloud, hosts):
    server = of_three(hosts)
    leaf = LEAF_OF[hosts[server]]
    part = sorted(vm for vm in hosts if LEAF_OF[hosts[vm]] == leaf)
    with dead(cloud, LEAVES[leaf]):
        for vm in part:
            evacuate(cloud, vm)
        after = hosts_after(cloud, hosts)
        assert leaf not in map(LEAF_OF.get, after)
        assert sizes(after) == [2, 2]


def test_a_part_on_a_dead_leaf_is_a_part_again_after_its_evacuation_all_at_once(cloud, hosts):
    server = of_three(hosts)
    leaf = LEAF_OF[hosts[server]]
    part = sorted(vm for vm in hosts if LEAF_OF[hosts[vm]] == leaf)
    with dead(cloud, LEAVES[leaf]):
        evacuate(cloud, *part)
        after = hosts_after(cloud, hosts)
        assert leaf not in map(LEAF_OF.get, after)
        assert sizes(after) == [2, 2]


def test_a_part_follows_from_a_disabled_leaf_vm_by_vm(cloud, hosts):
    server = of_three(hosts)
    leaf = LEAF_OF[hosts[server]]
    part = sorted(vm for vm in hosts if LEAF_OF[hosts[vm]] == leaf)
    with disabled(cloud, LEAVES[leaf]):
        for vm in part:
            migrate(cloud, vm)
        after = hosts_after(cloud, hosts)
        assert leaf not in map(LEAF_OF.get, after)
        assert sizes(after) == [2, 2]


def test_a_vm_of_a_balanced_group_moves_where_the_group_is_balanced(cloud, boot):
    even = cloud.flavor("even", vcpus=16, extra_specs={"hpc:balance": "true"})
    group = cloud.server_group("even", "anti-affinity")
    found = cloud.hosts_of(boot(even, count=4, group=group))
    assert sizes(found.values()) == [2, 2]
    migrate(cloud, of_three(found))
    assert sizes(hosts_after(cloud, found)) == [2, 2]
