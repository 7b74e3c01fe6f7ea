"""Groups with members in two cells."""

from collections import Counter

import pytest
from nova.scheduler.filters import compute_filter

from hpc_sched.nova_glue.claim import claim_followup
from tests.functional.faults import wait_until
from tests.functional.placement_state import held
from tests.functional.shared_clouds import CloudKind, cloud_mark
from tests.functional.tested_cloud import TestedCloud
from tests.functional.truth import believed, nodes, true_members

# leaf1: a1 a2 (cell1), b1 b2 (cell2)      leaf2: a3 (cell1), b3 (cell2)
LEAVES = {"leaf1": ["a1", "a2", "b1", "b2"], "leaf2": ["a3", "b3"]}


pytestmark = cloud_mark(
    CloudKind("two cells, two leaves", {"core": LEAVES}, second_cell=["b1", "b2", "b3"])
)


@pytest.fixture
def cloud(shared_cloud: TestedCloud) -> TestedCloud:
    shared_cloud.flavor("rank", vcpus=16)
    return shared_cloud


@pytest.fixture
def spread_group(cloud: TestedCloud):
    """Return a group with two members in each cell, and its servers."""
    group = cloud.server_group("two cells", "anti-affinity")
    servers = cloud.boot("rank", count=4, group=group)
    hosts = set(cloud.hosts_of(servers).values())
    assert hosts == set(LEAVES["leaf1"])
    yield group, servers
    cloud.remove(servers)


def test_members_in_another_cell_count(cloud, spread_group, monkeypatch):
    group, _servers = spread_group
    truth = true_members(cloud, group)
    with believed(monkeypatch) as seen:
        more = cloud.boot("rank", count=2, group=group)
        assert set(cloud.hosts_of(more).values()) == set(LEAVES["leaf2"])
    cloud.remove(more)
    # Read again once the two are claimed: they still await their places.
    assert len(seen) == 2
    for read in seen:
        assert nodes(read) == truth == Counter(LEAVES["leaf1"])
        assert read.awaiting == 2
        assert read.problems == ()


def test_a_request_over_two_cells_that_dies_at_its_last_vm_holds_nothing(cloud, monkeypatch):
    seen = set()

    def passes(self, state, spec):
        seen.add(spec.instance_uuid)
        return len(seen) < 4

    group = cloud.server_group("dies", "anti-affinity")
    with monkeypatch.context() as patch:
        patch.setattr(compute_filter.ComputeFilter, "host_passes", passes)
        patch.setattr(compute_filter.ComputeFilter, "run_filter_once_per_request", False)
        servers = cloud.boot("rank", count=4, group=group)
        shown = cloud.wait(servers)
    assert {server["status"] for server in shown.values()} == {"ERROR"}
    wait_until(lambda: not claim_followup._followed)
    assert held(cloud) == {}
    cloud.remove(servers)


def test_each_vm_of_a_request_over_two_cells_has_one_allocation(cloud, spread_group):
    _group, servers = spread_group
    wait_until(lambda: not claim_followup._followed)
    hosts = cloud.hosts_of(servers)
    assert held(cloud) == {server: [host] for server, host in hosts.items()}
