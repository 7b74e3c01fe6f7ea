"""What users can ask for, through Nova's API: plans on three levels, and refusals.

::

                     core
                /            \\
            pod1              pod2
         /   |   \\         /   |   \\
      la    lb    lc    ld    le    lf     4 hosts each: la1 .. lf4; lb4, lc4, ld4 are taken

How VMs move is in :mod:`tests.functional.test_moves_and_wishes`.
"""

from collections import Counter
from collections.abc import Callable, Iterator

import pytest

from hpc_sched.core.hopbyte import hop_bytes_of_counts
from hpc_sched.core.plan.planner import plan
from hpc_sched.core.plan.result import Plan
from hpc_sched.demo.nova_cloud import NovaCloud
from hpc_sched.topology import Topology
from tests.functional.claims import watched_claims
from tests.functional.cloud_kinds import PODS, TWO_PODS
from tests.functional.shared_clouds import cloud_mark
from tests.functional.thin_cloud import ThinCloud

FABRIC = Topology.from_tree({"core": TWO_PODS})
FREE = {host: 1 for host in FABRIC.hosts if host not in PODS.in_use}

pytestmark = cloud_mark(PODS)


@pytest.fixture
def cloud(shared_cloud: ThinCloud) -> Iterator[ThinCloud]:
    with shared_cloud.only(FABRIC.hosts):
        yield shared_cloud


@pytest.fixture
def flavor(cloud: NovaCloud) -> Callable[..., str]:
    """Make a flavor of a whole host with extra specs; one VM a host."""

    def make(**constraints: str) -> str:
        name = "-".join(["rank", *(f"{key}.{value}" for key, value in sorted(constraints.items()))])
        name = name.replace(":", "-")
        specs = {f"hpc:{key}": value for key, value in constraints.items()}
        return cloud.flavor(name, vcpus=15, extra_specs=specs)

    return make


def pods(hosts) -> set[str]:
    return {FABRIC.ancestors(host)[1] for host in hosts}


def leaves(hosts) -> set[str]:
    return {FABRIC.leaf_of(host) for host in hosts}


def fault_of(cloud: NovaCloud, servers: list[str]) -> str:
    """Return the one fault message of servers that are all in error."""
    cloud.wait(servers)
    shown = [cloud.api.get_server(server) for server in servers]
    assert {server["status"] for server in shown} == {"ERROR"}
    [message] = {server["fault"]["message"] for server in shown}
    for name in (*FABRIC.hosts, *FABRIC.leaves, "pod1", "pod2"):
        assert name not in message.split()
    return message


def test_a_group_of_16_costs_the_least_that_the_planner_knows(cloud, boot, flavor):
    cloud.flags(fragmentation_price="0", group="hpc_sched")
    group = cloud.server_group("sixteen", "anti-affinity")
    hosts = cloud.hosts_of(boot(flavor(), count=16, group=group)).values()
    best = plan(topology=FABRIC, capacity=FREE, members={}, count=16)
    assert isinstance(best, Plan)
    assert len(set(hosts)) == 16
    assert hop_bytes_of_counts(topology=FABRIC, counts=Counter(hosts)) == best.hop_bytes


@pytest.mark.default
def test_the_fault_of_a_group_that_does_not_fit_says_what_would(cloud, boot, flavor, monkeypatch):
    group = cloud.server_group("twelve", "soft-anti-affinity")
    with watched_claims(monkeypatch, {}) as tried:
        servers = boot(flavor(require="pod"), count=12, group=group)
        message = fault_of(cloud, servers)
    assert tried == []
    assert "group of 12 needs one pod: largest gang that fits under one pod: 11" in message
    assert not any(cloud._get_allocations_by_server_uuid(server) for server in servers)


def test_a_group_that_fits_the_required_level_is_under_one_switch_of_it(cloud, boot, flavor):
    group = cloud.server_group("eleven", "anti-affinity")
    hosts = cloud.hosts_of(boot(flavor(require="pod"), count=11, group=group)).values()
    assert len(set(hosts)) == 11
    assert pods(hosts) == {"pod2"}


@pytest.mark.parametrize(
    ("constraints", "count", "grouped", "reason"),
    [
        (
            {"require": "rack"},
            2,
            True,
            "hpc:require='rack': expected one of the levels leaf, pod, core",
        ),
        (
            {"max_leaves": "1", "group_size": "5"},
            1,
            True,
            "hpc:max_leaves=1 and hpc:group_size=5 contradict each other: at most 4 VMs of this"
            " flavor fit in 1 leaf switch",
        ),
        ({"require": "leaf"}, 1, False, "hpc:require: only a group can have that; name a server"),
        (
            {"require": "leaf", "group_size": "5"},
            1,
            True,
            # How much room there is for VMs without a request is not the tenant's to know.
            "group of 5 needs one leaf (hpc:group_size=5)",
        ),
        ({"max_leaves": "2"}, 9, True, "group of 9 needs at most 2 leaf switches: largest gang"),
    ],
    ids=[
        "an unknown level",
        "wishes that contradict each other",
        "a wish without a group",
        "a group that will never fit the required level",
        "more VMs than the leaves allowed hold",
    ],
)
def test_a_request_is_refused_with_a_reason_that_its_user_can_act_on(
    cloud, boot, flavor, constraints, count, grouped, reason
):
    group = cloud.server_group("refused", "soft-anti-affinity") if grouped else None
    assert reason in fault_of(cloud, boot(flavor(**constraints), count=count, group=group))


def test_the_first_of_single_creates_goes_where_the_most_of_the_group_fit(cloud, boot, flavor):
    # Pods have room for 10 and 11 VMs.
    group = cloud.server_group("twelve, or eleven", "anti-affinity")
    enough = flavor(require="pod", group_size="12", min_size="11")
    hosts: list[str] = []
    for _ in range(2):
        hosts += cloud.hosts_of(boot(enough, group=group)).values()
    assert pods(hosts) == {"pod2"}


def test_the_first_of_a_group_is_refused_where_too_few_of_it_fit(cloud, boot, flavor):
    group = cloud.server_group("twelve", "anti-affinity")
    many = flavor(require="pod", group_size="13", min_size="12")
    message = fault_of(cloud, boot(many, group=group))
    assert "group of 12 needs one pod (hpc:min_size=12)" in message


def test_the_first_of_single_creates_chooses_a_leaf_for_the_whole_group(cloud, boot, flavor):
    """Without the size the first VM would go where least room is left over: to lb, lc or ld."""
    group = cloud.server_group("one by one", "anti-affinity")
    hosts = []
    for _ in range(4):
        hosts += cloud.hosts_of(boot(flavor(group_size="4"), group=group)).values()
    assert len(set(hosts)) == 4
    assert len(leaves(hosts)) == 1
    other = cloud.hosts_of(boot(flavor())).values()
    assert len(other) == 1


@pytest.mark.default
def test_a_group_that_prefers_a_leaf_gets_one_where_that_can_be_had(cloud, boot, flavor):
    group = cloud.server_group("prefers", "anti-affinity")
    hosts = cloud.hosts_of(boot(flavor(prefer="leaf"), count=4, group=group)).values()
    assert len(leaves(hosts)) == 1
    more = cloud.hosts_of(boot(flavor(prefer="leaf"), count=2, group=group)).values()
    assert pods(more) == pods(hosts)


@pytest.mark.default
def test_one_processor_type_holds_the_group_where_types_are_stated(cloud, boot, flavor):
    """An aggregate calls the hosts of leaf le another type than their hypervisor does."""
    aggregate = cloud.api.post_aggregate({"aggregate": {"name": "new"}})["id"]
    cloud.api.post_aggregate_action(
        aggregate, {"set_metadata": {"metadata": {"hpc:processor": "new"}}}
    )
    hosts_of_e = FABRIC.hosts_of("le")
    for host in hosts_of_e:
        cloud.api.post_aggregate_action(aggregate, {"add_host": {"host": host}})
    try:
        cloud.flags(processor_order=["new"], group="hpc_sched")
        group = cloud.server_group("alike", "anti-affinity")
        hosts = cloud.hosts_of(boot(flavor(homogeneous="true"), count=3, group=group)).values()
        assert leaves(hosts) == {"le"}
        # One more fits there, two do not, and the members are there already.
        message = fault_of(cloud, boot(flavor(homogeneous="true"), count=2, group=group))
        assert "no single processor type holds 2 VMs" in message
        mixed = cloud.hosts_of(boot(flavor(), count=2, group=group)).values()
        assert len(set(mixed)) == 2
    finally:
        for host in hosts_of_e:
            cloud.api.post_aggregate_action(aggregate, {"remove_host": {"host": host}})
        cloud.api.delete_aggregate(aggregate)


@pytest.mark.parametrize(
    ("options", "leaf"),
    [
        ({}, "la"),
        ({"processor_speeds": "slow=2130, fast=3000"}, "le"),
        ({"processor_speeds": "slow=2130, fast=3000", "processor_order": ["slow"]}, "lf"),
    ],
    ids=["equal cores: by name", "by frequency", "the operator's order first"],
)
def test_the_processor_type_with_the_best_figure_of_merit_is_taken(
    cloud, boot, flavor, options, leaf
):
    """All hosts have as many cores; aggregates state the types of two leaves, last by name."""
    made = []
    for place, name in (("le", "fast"), ("lf", "slow")):
        number = cloud.api.post_aggregate({"aggregate": {"name": name}})["id"]
        made += [(number, host) for host in FABRIC.hosts_of(place)]
        metadata = {"set_metadata": {"metadata": {"hpc:processor": name}}}
        cloud.api.post_aggregate_action(number, metadata)
    for number, host in made:
        cloud.api.post_aggregate_action(number, {"add_host": {"host": host}})
    try:
        cloud.flags(group="hpc_sched", **options)
        group = cloud.server_group("best", "anti-affinity")
        hosts = cloud.hosts_of(boot(flavor(homogeneous="true"), count=4, group=group))
        assert leaves(hosts.values()) == {leaf}
    finally:
        for number, host in made:
            cloud.api.post_aggregate_action(number, {"remove_host": {"host": host}})
        for number in {number for number, _ in made}:
            cloud.api.delete_aggregate(number)
