"""Groups of up to 128 VMs on three levels: Nova's host manager, filters, weighers and claims.

::

                        core
         /         /           \\        \\
      pod1       pod2         pod3      pod4
     / .. \\     / .. \\       / .. \\    / .. \\
    4 leaves of 16 hosts each: p1l1n01 .. p4l4n16

and, for groups of VMs that need more memory than those hosts have, an island of eight leaves::

                east
     /      /    ..    \      \
    e1     e2          e7     e8        8 hosts each: e1n1 .. e8n8
"""

import json
import random
import threading
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from nova import exception
from nova.scheduler import manager
from oslo_utils import uuidutils

from hpc_sched.core.hopbyte import hop_bytes_of_counts
from hpc_sched.core.plan.planner import plan
from hpc_sched.core.plan.result import Plan
from hpc_sched.demo.nova_cloud import read_options
from hpc_sched.topology import Topology
from tests.functional.claims import (
    MEMORY_MB,
    VCPUS,
    ClaimsOnly,
    claims_on,
    hosts_of,
    request,
    seeded_half,
    watched_claims,
)
from tests.functional.cloud_kinds import EMPTY
from tests.functional.clouds import SAMPLE_CONF
from tests.functional.shared_clouds import cloud_mark
from tests.functional.tested_cloud import BUSY_MACHINE, TestedCloud
from tests.functional.trees import write_tree

pytestmark = [
    cloud_mark(EMPTY),
    pytest.mark.nightly("streams", "groups of 128 VMs, each claimed in Placement, on 256 hosts"),
]

TREE = {
    "core": {
        f"pod{pod}": {
            f"p{pod}l{leaf}": [f"p{pod}l{leaf}n{number:02}" for number in range(1, 17)]
            for leaf in range(1, 5)
        }
        for pod in range(1, 5)
    }
}
EAST = {"east": {f"e{leaf}": [f"e{leaf}n{n}" for n in range(1, 9)] for leaf in range(1, 9)}}
BIG_MB = 2 * MEMORY_MB
FABRIC = Topology.from_tree(TREE)
# Some of the hosts belong to others: different numbers in each leaf.
BUSY = {host for host in FABRIC.hosts if random.Random(f"{host[:4]} {host}").random() < 0.13}
FREE = {host: 1 for host in FABRIC.hosts if host not in BUSY}


@pytest.fixture(scope="module")
def decisions(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("log") / "decisions.jsonl"


@pytest.fixture(scope="module")
def nova(
    cloud_of_module: TestedCloud,
    tmp_path_factory: pytest.TempPathFactory,
    decisions: Path,
) -> Iterator[ClaimsOnly]:
    ours = {
        "topology_file": str(
            write_tree(tmp_path_factory.mktemp("fabric") / "topology.yaml", TREE | EAST)
        ),
        "topology_reload_interval": 0,
        "cell_timeout": BUSY_MACHINE,
        "decision_log": str(decisions),
    }
    used = {host: VCPUS if host in BUSY else 0 for host in FABRIC.hosts}
    with claims_on(cloud_of_module, used) as claims:
        east = [host for below in EAST["east"].values() for host in below]
        claims.add_hosts(dict.fromkeys(east, VCPUS // 2), memory_mb=BIG_MB)
        claims.start_scheduler(
            read_options(SAMPLE_CONF) | {("hpc_sched", name): ours[name] for name in ours}
        )
        yield claims


@pytest.fixture(autouse=True)
def released(nova: ClaimsOnly) -> Iterator[None]:
    yield
    nova.release()


def cost_of(hosts: list[str]) -> float:
    return hop_bytes_of_counts(topology=FABRIC, counts=Counter(hosts))


def least(free: dict[str, int], count: int, **constraints: object) -> float:
    best = plan(topology=FABRIC, capacity=free, members={}, count=count, **constraints)
    assert isinstance(best, Plan)
    return best.hop_bytes


@pytest.mark.parametrize("count", [16, 64, 128])
def test_a_group_costs_the_least_that_the_planner_knows(nova, count):
    hosts = hosts_of(nova.place(request(count=count, group=uuidutils.generate_uuid())))
    assert len(set(hosts)) == count
    assert cost_of(hosts) == least(FREE, count)


@pytest.mark.parametrize("count", [16, 96])
def test_the_candidates_are_the_plans_leaves_and_as_many_spares_as_vms_left(
    nova, monkeypatch, count
):
    weighed: list[int] = []
    host_manager = nova.scheduler.host_manager
    real = host_manager.get_weighed_hosts

    def weigh(hosts, spec):
        weighed.append(sum(not host.num_instances for host in hosts))
        return real(hosts, spec)

    monkeypatch.setattr(host_manager, "get_weighed_hosts", weigh)
    nova.place(request(count=count, group=uuidutils.generate_uuid()))
    assert len(weighed) == count
    # Twice the places and 2 retries, rounded up to whole leaves of at most 16 hosts.
    assert 2 * count + 2 <= weighed[0] < 2 * count + 2 + 16
    if count > 64:
        # The filter has run again: 64 spares, and in the leaves that are used some more.
        assert count - 64 + 64 + 2 <= weighed[64] < weighed[63] - 16


def pod_of(host: str) -> str:
    return FABRIC.ancestors(host)[1]


@pytest.mark.parametrize("seed", range(5))
def test_with_half_of_the_first_claims_lost_a_group_of_32_ends_complete_under_its_pod(
    nova, monkeypatch, seed
):
    providers = {uuid: host for host, uuid in nova.provider_of.items()}
    spec = request(count=32, group=uuidutils.generate_uuid(), extra_specs={"hpc:require": "pod"})
    with watched_claims(monkeypatch, providers, seeded_half(seed)) as tried:
        hosts = hosts_of(nova.place(spec))
    lost = {host for _, host, won in tried if not won}
    assert lost
    assert len(set(hosts)) == 32
    assert len({pod_of(host) for host in hosts}) == 1
    for i, (_, host, _) in enumerate(tried):
        assert host not in {earlier for _, earlier, won in tried[:i] if not won}


def test_a_group_whose_vms_all_lose_their_first_claim_ends_complete(nova, monkeypatch):
    """As many spares as VMs left are enough to the last VM, whose host is lost as well."""
    providers = {uuid: host for host, uuid in nova.provider_of.items()}
    spec = request(count=96, group=uuidutils.generate_uuid())
    with watched_claims(monkeypatch, providers, lambda *claim: claim[-1] == 0) as tried:
        hosts = hosts_of(nova.place(spec))
    lost = {host for _, host, won in tried if not won}
    assert len(lost) == len(set(hosts)) == 96
    assert not lost & set(hosts)


def test_the_last_of_65_vms_finds_a_host_when_others_have_taken_its_leaf(nova, monkeypatch):
    """Since the request began, that is; the spares of one VM would all be in that leaf."""
    providers = {uuid: host for host, uuid in nova.provider_of.items()}
    taken: set[str] = set()
    before: list[str] = []

    def loses(_vm: str, host: str, _attempt: int) -> bool:
        before.append(host)
        if len(before) == 65:
            taken.add(FABRIC.leaf_of(host))
        return FABRIC.leaf_of(host) in taken

    spec = request(count=65, group=uuidutils.generate_uuid())
    with watched_claims(monkeypatch, providers, loses) as tried:
        hosts = hosts_of(nova.place(spec, alternates=True))
    lost = {host for _, host, won in tried if not won}
    assert len(lost) > 1
    assert len(set(hosts)) == 65


def test_with_as_many_spares_as_lost_claims_the_group_takes_all_that_is_left(nova, monkeypatch):
    """Every second first choice is lost until the pod has only as many hosts as the group."""
    group, count = uuidutils.generate_uuid(), 36
    planned = plan(
        topology=FABRIC, capacity=FREE, members={}, count=count, require="pod", group_id=group
    )
    assert isinstance(planned, Plan)
    pod, free = planned.switch, sum(pod_of(host) == planned.switch for host in FREE)
    losses = iter([True, False] * free)
    lost: list[str] = []

    def loses(_vm: str, host: str, attempt: int) -> bool:
        if attempt == 0 and len(lost) < free - count and next(losses):
            lost.append(host)
            return True
        return False

    providers = {uuid: host for host, uuid in nova.provider_of.items()}
    spec = request(count=count, group=group, extra_specs={"hpc:require": "pod"})
    with watched_claims(monkeypatch, providers, loses):
        hosts = hosts_of(nova.place(spec))
    left = {host: 1 for host in FREE if host not in lost and pod_of(host) == pod}
    assert len(lost) == free - count
    assert set(hosts) == set(left)
    assert cost_of(hosts) == least(left, count, require="pod")


def test_a_group_that_does_not_fit_makes_no_claim_and_says_why(nova, monkeypatch, decisions):
    providers = {uuid: host for host, uuid in nova.provider_of.items()}
    room = Counter(FABRIC.leaf_of(host) for host in FREE)
    most = max(room.values())
    spec = request(count=17, group=uuidutils.generate_uuid(), extra_specs={"hpc:require": "leaf"})
    with (
        watched_claims(monkeypatch, providers) as tried,
        pytest.raises(exception.NoValidHost) as refused,
    ):
        nova.place(spec)
    assert tried == []
    told = str(refused.value)
    assert f"largest gang that fits under one leaf: {most}" in told
    assert "group of 17 needs one leaf" in told
    assert not [name for name in (*FABRIC.hosts, *FABRIC.leaves, "pod1", "pod2") if name in told]
    record = json.loads(decisions.read_text().splitlines()[-1])
    assert record["decision"] == "refused"
    assert record["rejection"]["fits"]["vms"] == most
    assert room[record["rejection"]["fits"]["switch"]] == most
    assert record["rejection"]["fits"]["switch"] in record["reason"]


def test_every_decision_is_a_line_with_the_plan_and_what_removed_hosts(nova, decisions):
    hosts = hosts_of(nova.place(request(count=16, group=uuidutils.generate_uuid())))
    records = [json.loads(line) for line in decisions.read_text().splitlines()]
    # Where VMs have landed is a line too, which may be written by now.
    record = [one for one in records if one["decision"] != "landed"][-1]
    assert record["decision"] == "planned"
    assert record["plan"]["hop_bytes"] == record["plan"]["least"] == cost_of(hosts)
    assert record["plan"]["hosts"] == dict(Counter(hosts))
    assert sum(leaf["room"] for leaf in record["candidates"].values()) == len(FREE)
    assert record["removed"]["outside the plan's leaves and spares"] > 0


def test_two_groups_at_the_same_moment_start_in_different_leaves_and_are_not_split(nova):
    """Two workers, each with a host manager of its own, on eight empty leaves of eight hosts."""
    workers = [nova.scheduler, manager.SchedulerManager()]
    different = 0
    for _ in range(50):
        start = threading.Barrier(2)

        def serve(worker, start=start):
            spec = request(
                count=8, group=uuidutils.generate_uuid(), vcpus=VCPUS // 2, memory_mb=BIG_MB
            )
            start.wait()
            return hosts_of(nova.place(spec, worker))

        with ThreadPoolExecutor(2) as pool:
            placed = list(pool.map(serve, workers))
        used = [{host[:2] for host in hosts} for hosts in placed]
        assert {host[0] for hosts in placed for host in hosts} == {"e"}
        if not used[0] & used[1]:
            different += 1
            assert [len(leaves) for leaves in used] == [1, 1]
        nova.release()
    # Seven times of eight their orders of the leaves begin with different ones.
    assert different >= 35
