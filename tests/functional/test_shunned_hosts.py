"""Groups on a whole Nova of which some hosts have failed builds, and small VMs of soft groups.

Nova's BuildFailureWeigher outvotes every plan: a group planned on such a host is torn apart.
"""

from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import nova.conf
import pytest
from nova import context as nova_context
from nova import exception
from oslo_utils import uuidutils

from hpc_sched.demo.nova_cloud import NovaCloud
from hpc_sched.snapshot.log import record_text
from tests.functional import claims
from tests.functional.clouds import four_by_eight, leaves_used
from tests.functional.states import read_decisions, read_landings

CONF = nova.conf.CONF

LEAVES = four_by_eight()
FIRST = [hosts[0] for hosts in LEAVES.values()]  # of each leaf
FAILED = "failed builds (BuildFailureWeigher)"


@pytest.fixture(scope="module")
def cloud(start_cloud: Callable[..., NovaCloud], tmp_path_factory) -> NovaCloud:
    options = {
        ("hpc_sched", "decision_log"): str(tmp_path_factory.mktemp("log") / "decisions"),
        # Nova's fixtures set it to 0.
        ("filter_scheduler", "build_failure_weight_multiplier"): 1000000.0,
    }
    cloud = start_cloud(LEAVES, options)
    cloud.start_computes([host for hosts in LEAVES.values() for host in hosts])
    cloud.flavor("rank", vcpus=16, memory_mb=1024)
    cloud.flavor("leaf", vcpus=16, memory_mb=1024, extra_specs={"hpc:require": "leaf"})
    cloud.flavor("small", vcpus=1, memory_mb=1024)
    cloud.flavor("small in a leaf", vcpus=1, extra_specs={"hpc:require": "leaf"})
    return cloud


@pytest.fixture(autouse=True)
def log(cloud: NovaCloud) -> Iterator[Path]:
    """Return the decision log, empty, and forget failed builds afterwards."""
    path = Path(CONF.hpc_sched.decision_log)
    path.write_text("")
    yield path
    fail_builds(cloud, [host for hosts in LEAVES.values() for host in hosts], failed=False)


def fail_builds(cloud: NovaCloud, hosts: list[str], *, failed: bool = True) -> None:
    """Let a build fail on hosts, or succeed, as their computes count it."""
    for host in hosts:
        tracker = cloud.computes[host].manager.rt
        (tracker.build_failed if failed else tracker.build_succeeded)(host)
        tracker.update_available_resource(nova_context.get_admin_context(), host)


def test_groups_of_8_go_whole_to_the_leaves_without_failed_builds(cloud, boot, log):
    fail_builds(cloud, FIRST[:2])
    for name in ("one", "two"):
        group = cloud.server_group(name, "anti-affinity")
        hosts = cloud.hosts_of(boot("rank", count=8, group=group))
        [leaf] = leaves_used(LEAVES, hosts.values())
        assert leaf in ("leaf3", "leaf4")
        assert len(hosts) == 8
    for record in read_decisions(log):
        assert record["shunned"] == {FAILED: {"count": 2, "hosts": FIRST[:2]}}
        assert "uses_shunned" not in record
    assert [record["landed"]["as_planned"] for record in read_landings(log, 2)] == [True, True]


def test_a_group_that_fits_in_no_leaf_is_split_and_still_avoids_failed_hosts(cloud, boot, log):
    fail_builds(cloud, FIRST)
    group = cloud.server_group("split", "anti-affinity")
    hosts = cloud.hosts_of(boot("rank", count=8, group=group))
    assert sorted(leaves_used(LEAVES, hosts.values()).values()) == [1, 7]
    assert not set(hosts.values()) & set(FIRST)
    [landing] = read_landings(log)
    assert landing["landed"]["as_planned"]


def test_a_required_leaf_is_worth_a_failed_host(cloud, boot, log):
    fail_builds(cloud, FIRST)
    group = cloud.server_group("leaf", "anti-affinity")
    hosts = cloud.hosts_of(boot("leaf", count=8, group=group))
    assert list(leaves_used(LEAVES, hosts.values()).values()) == [8]
    [decision], [landing] = read_decisions(log), read_landings(log)
    assert decision["uses_shunned"]
    text = record_text.text_of(decision, landing)
    assert f"  shunned     {FAILED}: 4 hosts: n[01,09,17,25]\n" in text
    assert "              the plan has to use some of them\n" in text
    [leaf] = landing["landed"]["leaves"]
    assert f"\n  landed      8 in {leaf} (8), as planned\n" in text


def test_nothing_is_refused_for_failed_builds(cloud, boot):
    fail_builds(cloud, [*LEAVES["leaf1"], *LEAVES["leaf2"], *LEAVES["leaf3"]])
    group = cloud.server_group("all", "anti-affinity")
    hosts = cloud.hosts_of(boot("rank", count=32, group=group))
    assert len(set(hosts.values())) == 32


def test_16_small_vms_with_soft_anti_affinity_have_16_hosts(cloud, boot, log):
    group = cloud.server_group("small", "soft-anti-affinity")
    hosts = cloud.hosts_of(boot("small", count=16, group=group))
    assert set(Counter(hosts.values()).values()) == {1}
    assert sorted(leaves_used(LEAVES, hosts.values()).values()) == [8, 8]
    more = cloud.hosts_of(boot("small", count=8, group=group))
    assert not set(more.values()) & set(hosts.values())
    assert [record["landed"]["as_planned"] for record in read_landings(log, 2)] == [True, True]


def test_they_share_hosts_where_they_must_be_in_one_leaf(cloud, boot):
    group = cloud.server_group("leaf of small", "soft-anti-affinity")
    hosts = cloud.hosts_of(boot("small in a leaf", count=12, group=group))
    assert list(leaves_used(LEAVES, hosts.values()).values()) == [12]
    assert sorted(Counter(hosts.values()).values()) == [1, 1, 1, 1, 2, 2, 2, 2]


def test_a_request_that_fails_after_some_claims_landed_nowhere(cloud, log, monkeypatch):
    spec = claims.request(count=5, group=cloud.server_group("fails", "anti-affinity"))
    vms = [spec.instance_uuid, *(uuidutils.generate_uuid() for _ in range(4))]
    providers = cloud.placement.get("/resource_providers").body["resource_providers"]
    hosts = {provider["uuid"]: provider["name"] for provider in providers}
    failed = False
    with claims.watched_claims(monkeypatch, hosts, lambda vm, *_: vm in vms[3:]):
        try:
            claims.ask(cloud.scheduler.manager, nova_context.get_admin_context(), spec, vms)
        except exception.NoValidHost:
            # Its traceback would hold the request.
            failed = True
    assert failed
    del spec
    [landing] = read_landings(log)
    assert landing["landed"]["released"]
    assert sum(landing["landed"]["hosts"].values()) == 3
    assert "landed      nowhere" in record_text.text_of(landing)


def test_a_vm_that_moves_lands_too(cloud, boot, log):
    group = cloud.server_group("moves", "anti-affinity")
    first, *_ = boot("rank", count=4, group=group)
    cloud.hosts_of([first])
    read_landings(log)
    cloud.api.post_server_action(first, {"migrate": None})
    cloud._wait_for_state_change({"id": first}, "VERIFY_RESIZE")
    *_, landing = read_landings(log, 2)
    assert landing["instance"] == first
    assert landing["landed"]["as_planned"]
    assert sum(landing["landed"]["hosts"].values()) == 1
