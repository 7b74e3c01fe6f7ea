"""VMs that move between real computes, and what their group requires.

::

              core
            /      \\
         pod1      pod2
        /    \\    /    \\
      la    lb   lc    ld      2 hosts each: la1 .. ld2; a VM fills a host
"""

from pathlib import Path

import pytest

from hpc_sched.nova_glue.io import allocations
from tests.functional.cloud_kinds import REAL_PODS
from tests.functional.shared_clouds import cloud_mark
from tests.functional.states import read_landings
from tests.functional.tested_cloud import TestedCloud
from tests.functional.trees import hosts_below

pytestmark = cloud_mark(REAL_PODS)

[PODS] = REAL_PODS.tree.values()
LEAVES = {leaf: hosts for pod in PODS.values() for leaf, hosts in pod.items()}
REPEATED = pytest.mark.nightly("moves", "a migration more on real computes")
# What openstackclient sends when it sets extra specs: nova-api then validates nothing.
OPENSTACKCLIENT = "2.61"


@pytest.fixture
def cloud(shared_cloud: TestedCloud) -> TestedCloud:
    shared_cloud.flavor("whole", vcpus=16, memory_mb=1024)
    shared_cloud.flavor("pod", vcpus=16, memory_mb=1024, extra_specs={"hpc:require": "pod"})
    return shared_cloud


def leaf_of(host: str) -> str:
    [leaf] = [name for name, hosts in LEAVES.items() if host in hosts]
    return leaf


def pod_of(host: str) -> str:
    [pod] = [name for name, below in PODS.items() if host in hosts_below(below)]
    return pod


@pytest.fixture
def hosts_in_pod(cloud, boot) -> dict[str, str]:
    """Return the hosts of a group under the pod that it requires: three of the pod's four."""
    group = cloud.server_group("moves", "anti-affinity")
    hosts = cloud.hosts_of(boot("pod", count=3, group=group))
    assert len(set(hosts.values())) == 3
    return hosts


def migrate(cloud: TestedCloud, server: str) -> None:
    cloud.api.post_server_action(server, {"migrate": None})
    cloud._wait_for_state_change({"id": server}, "VERIFY_RESIZE")
    cloud.api.post_server_action(server, {"confirmResize": None})
    cloud._wait_for_state_change({"id": server}, "ACTIVE")


def unshelve(cloud: TestedCloud, server: str) -> None:
    cloud.api.post_server_action(server, {"shelve": {}})
    cloud._wait_for_state_change({"id": server}, "SHELVED_OFFLOADED")
    cloud.api.post_server_action(server, {"unshelve": None})
    cloud._wait_for_state_change({"id": server}, "ACTIVE")


@pytest.mark.ci
@pytest.mark.parametrize("move", [migrate, unshelve])
def test_a_vm_that_moves_stays_under_the_switch_that_its_group_requires(cloud, hosts_in_pod, move):
    [pod] = {pod_of(host) for host in hosts_in_pod.values()}
    server = next(iter(hosts_in_pod))
    move(cloud, server)
    after = cloud.hosts_of([server])[server]
    assert pod_of(after) == pod


@REPEATED
def test_a_vm_does_not_move_out_of_the_pod_that_its_group_requires(cloud, boot, hosts_in_pod):
    [pod] = {pod_of(host) for host in hosts_in_pod.values()}
    [free] = set(hosts_below(PODS[pod])) - set(hosts_in_pod.values())
    cloud.wait(boot("whole", host=free))
    server = next(iter(hosts_in_pod))
    cloud.api.post_server_action(server, {"migrate": None})
    cloud._wait_for_action_fail_completion({"id": server}, "migrate", "cold_migrate")
    assert cloud.hosts_of([server])[server] == hosts_in_pod[server]


@pytest.mark.ci
def test_a_vm_of_a_group_on_the_fewest_leaves_moves_to_another_leaf_unless_moves_are_relaxed(
    cloud, boot, caplog
):
    spread = cloud.flavor("spread", vcpus=16, memory_mb=1024, extra_specs={"hpc:min_leaves": "2"})
    group = cloud.server_group("moves", "anti-affinity")
    server, other = before = boot(spread, count=2, group=group)
    hosts = cloud.hosts_of(before)
    assert leaf_of(hosts[server]) != leaf_of(hosts[other])
    # The nearest host to the other VM is on its leaf, which alone has room later.
    migrate(cloud, server)
    now = cloud.hosts_of([server])[server]
    assert now != hosts[server]
    assert leaf_of(now) != leaf_of(hosts[other])
    [near] = set(LEAVES[leaf_of(hosts[other])]) - {hosts[other]}
    for host in set(hosts_below(PODS)) - {now, hosts[other], near}:
        cloud.wait(boot("whole", host=host))
    caplog.clear()
    cloud.api.post_server_action(server, {"migrate": None})
    cloud._wait_for_action_fail_completion({"id": server}, "migrate", "cold_migrate")
    assert cloud.hosts_of([server])[server] == now
    assert (
        "1 more of a group with 1 member needs at least 2 leaf switches: no room beside its "
        "members; [hpc_sched] relax_moves can lift the guarantees of moves"
    ) in caplog.text
    cloud.flags(relax_moves="always", group="hpc_sched")
    migrate(cloud, server)
    assert cloud.hosts_of([server])[server] == near


@REPEATED
def test_moves_are_not_claimed(cloud, boot, monkeypatch):
    sent = []
    real = allocations.write

    def write(owner, consumers):
        sent.append(len(consumers))
        return real(owner, consumers)

    monkeypatch.setattr(allocations, "write", write)
    group = cloud.server_group("moves", "anti-affinity")
    [server] = boot("whole", group=group)
    before = cloud.hosts_of([server])[server]
    assert sent == [1]
    migrate(cloud, server)
    assert sent == [1]
    assert cloud.hosts_of([server])[server] != before


@REPEATED
def test_a_vm_that_moves_lands_too(cloud, boot, tmp_path: Path):
    log = tmp_path / "decisions"
    cloud.flags(decision_log=str(log), group="hpc_sched")
    group = cloud.server_group("moves", "anti-affinity")
    first, *_ = boot("whole", count=2, group=group)
    cloud.hosts_of([first])
    read_landings(log)
    cloud.api.post_server_action(first, {"migrate": None})
    cloud._wait_for_state_change({"id": first}, "VERIFY_RESIZE")
    *_, landing = read_landings(log, 2)
    assert landing["instance"] == first
    assert landing["landed"]["as_planned"]
    assert sum(landing["landed"]["hosts"].values()) == 1


@REPEATED
@pytest.mark.parametrize("grouped", [True, False], ids=["of a group", "alone"])
def test_a_vm_with_a_misspelt_constraint_that_moves_is_not_refused(cloud, boot, warnings, grouped):
    latest, cloud.api.microversion = cloud.api.microversion, OPENSTACKCLIENT
    cloud.flavor("typo", vcpus=8, extra_specs={"hpc:requires": "leaf", "hpc:bogus": "1"})
    cloud.api.microversion = latest
    group = cloud.server_group("moves", "soft-anti-affinity") if grouped else None
    # Created past the filters, as before an upgrade.
    [server] = boot("typo", host="la1", group=group)
    assert set(cloud.hosts_of([server]).values()) == {"la1"}
    assert warnings() == []
    cloud._migrate_server({"id": server})
    shown = cloud._wait_for_state_change(cloud.api.get_server(server), "VERIFY_RESIZE")
    assert shown["OS-EXT-SRV-ATTR:host"] != "la1"
    [text] = warnings()
    assert "did you mean hpc:require?" in text
    assert "hpc:bogus" in text
