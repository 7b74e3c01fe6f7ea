"""Groups where some hosts have failed builds, and small VMs of soft groups.

Nova's BuildFailureWeigher outvotes every plan: a group planned on such a host is torn apart.
Builds that fail are in :mod:`tests.functional.test_failed_build`; here hosts only report them.
"""

from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest
from nova import context as nova_context
from nova import exception
from oslo_utils import uuidutils

from hpc_sched.snapshot.log import record_text
from tests.functional import claims
from tests.functional.cloud_kinds import FOUR_BY_EIGHT
from tests.functional.clouds import four_by_eight, leaves_used
from tests.functional.shared_clouds import cloud_mark
from tests.functional.states import read_decisions, read_landings
from tests.functional.thin_cloud import ThinCloud

LEAVES = four_by_eight()
FIRST = [hosts[0] for hosts in LEAVES.values()]  # of each leaf
FAILED = "failed builds (BuildFailureWeigher)"

pytestmark = cloud_mark(FOUR_BY_EIGHT)


@pytest.fixture
def log(tmp_path: Path) -> Path:
    """Return the decision log."""
    return tmp_path / "decisions"


@pytest.fixture
def cloud(shared_cloud: ThinCloud, log: Path) -> Iterator[ThinCloud]:
    """Return the cloud with a decision log; failed builds are forgotten afterwards."""
    shared_cloud.flags(decision_log=str(log), group="hpc_sched")
    # Nova's fixtures set it to 0.
    shared_cloud.flags(build_failure_weight_multiplier=1000000.0, group="filter_scheduler")
    shared_cloud.flavor("rank", vcpus=16, memory_mb=1024)
    shared_cloud.flavor("leaf", vcpus=16, memory_mb=1024, extra_specs={"hpc:require": "leaf"})
    shared_cloud.flavor("small", vcpus=1, memory_mb=1024)
    shared_cloud.flavor("small in a leaf", vcpus=1, extra_specs={"hpc:require": "leaf"})
    yield shared_cloud
    for host, compute in shared_cloud.thin.items():
        if compute.tracker.stats[host].get("failed_builds"):
            compute.count_builds(failed=False)


def fail_builds(cloud: ThinCloud, hosts: Iterable[str]) -> None:
    """Have hosts report a failed build."""
    for host in hosts:
        cloud.thin[host].count_builds(failed=True)


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
