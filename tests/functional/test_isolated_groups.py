"""Groups whose flavor says hpc:objective=isolated, on Nova's scheduler and its databases.

The fabric is drawn in :mod:`tests.functional.isolated_cloud`.
"""

import re
import sys
import threading
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace

import pytest
from nova import exception, objects
from nova.scheduler import manager

from hpc_sched import exceptions
from hpc_sched.core.plan import bottleneck
from hpc_sched.nova_glue.claim import claim_conditions
from hpc_sched.nova_glue.claim.isolation import isolation_turn
from hpc_sched.nova_glue.claim.transaction.gang_claim import GangClaim
from hpc_sched.nova_glue.read import isolated_instances
from hpc_sched.nova_glue.read.hold import Hold, Holds
from hpc_sched.nova_glue.read.instances import colocated_instances, host_instances
from hpc_sched.nova_glue.read.instances.kept import cell_read
from tests.functional.claims import ask, request
from tests.functional.cloud_kinds import EMPTY
from tests.functional.isolated_cloud import FABRIC, Group, IsolatedCloud, isolated_cloud
from tests.functional.paired_schedulers import options
from tests.functional.placement_state import held
from tests.functional.shared_clouds import cloud_mark
from tests.functional.states import wishing
from tests.functional.tested_cloud import TestedCloud

pytestmark = cloud_mark(EMPTY)

# What a tenant must not read.
NAMES = re.compile(r"\bn\d+\b|leaf\d|pod\d")
NEEDS = "uplinks that no other isolated group uses"


@pytest.fixture(scope="module")
def hosts(
    cloud_of_module: TestedCloud, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[IsolatedCloud]:
    with isolated_cloud(cloud_of_module, tmp_path_factory.mktemp("isolated")) as found:
        yield found


@pytest.fixture
def cloud(hosts: IsolatedCloud) -> Iterator[IsolatedCloud]:
    yield hosts
    hosts.clear()


def spread(group: Group) -> list[int]:
    """Return the VMs of a group below each leaf that it uses, fewest first."""
    return sorted(Counter(map(FABRIC.leaf_of, group.hosts)).values())


def test_two_isolated_groups_share_no_uplink(cloud):
    first, second = cloud.place(4), cloud.place(4)
    assert first.uplinks
    assert second.uplinks
    assert not cloud.shared()


def test_an_isolated_group_is_refused_where_it_would_share_an_uplink(cloud):
    cloud.place(4)
    cloud.place(4)
    refused = cloud.place(4)
    assert NEEDS in refused.refused
    assert not NAMES.search(refused.refused)


def test_a_group_that_is_not_isolated_is_placed_next_to_isolated_ones(cloud):
    cloud.place(4)
    cloud.place(4)
    assert cloud.place(4, "hops").hosts


def test_an_isolated_group_is_placed_once_the_other_is_deleted(cloud):
    first = cloud.place(4)
    cloud.place(4)
    assert not cloud.place(4).hosts
    cloud.delete(first)
    assert cloud.place(4).hosts
    assert not cloud.shared()


def test_groups_below_one_leaf_each_use_no_uplink_and_share_what_they_like(cloud):
    assert cloud.place(4).hosts
    assert cloud.place(2).uplinks == set()
    assert cloud.place(2).uplinks == set()


def test_a_group_in_flight_counts_before_it_is_in_a_cell(cloud):
    cloud.claim(4)
    cloud.claim(4)
    assert NEEDS in cloud.claim(4).refused
    assert not cloud.shared()


# Two schedulers at the same moment


@pytest.fixture
def other(cloud: IsolatedCloud) -> manager.SchedulerManager:
    """Return another scheduler of the same cloud."""
    return manager.SchedulerManager()


def meanwhile(monkeypatch, at, name, happens):
    """Let something happen once before a function is called."""
    real, left = getattr(at, name), [happens]

    def call(*args, **kwargs):
        if left:
            run_apart(left.pop())
        return real(*args, **kwargs)

    monkeypatch.setattr(at, name, call)


def run_apart(function):
    """Run a function in a thread of its own, as another scheduler does; return its result."""
    with ThreadPoolExecutor(1) as threads:
        return threads.submit(function).result()


@pytest.mark.parametrize(
    ("at", "name"),
    [
        pytest.param(GangClaim, "claim", id="after the first has planned"),
        pytest.param(isolation_turn, "commit", id="after the first has claimed"),
    ],
)
@pytest.mark.parametrize("before", [0, 1])
def test_of_two_groups_placed_at_the_same_moment_the_later_one_keeps_away(
    cloud, other, monkeypatch, at, name, before
):
    for _ in range(before):
        cloud.place(4)
    found = []
    meanwhile(monkeypatch, at, name, lambda: found.append(cloud.claim(4, scheduler=other)))
    last = cloud.claim(4)
    groups = (*found, last)
    assert not cloud.shared()
    assert sum(bool(group.hosts) for group in groups) == 2 - before
    assert all(NEEDS in group.refused for group in groups if not group.hosts)


def test_of_two_groups_that_have_planned_before_either_claims_one_stays(cloud, other, monkeypatch):
    cloud.place(4)
    planned = threading.Barrier(2, timeout=60)
    real, waited = GangClaim.claim, threading.local()

    def claim(gang, places):
        if not hasattr(waited, "once"):
            waited.once = True
            planned.wait()
        return real(gang, places)

    monkeypatch.setattr(GangClaim, "claim", claim)
    with ThreadPoolExecutor(2) as threads:
        groups = list(threads.map(lambda one: cloud.claim(4, scheduler=one), (None, other)))
    assert sorted(bool(group.hosts) for group in groups) == [False, True]
    assert not cloud.shared()


# What cannot be verified


def test_an_isolated_group_is_refused_while_a_cell_does_not_answer(cloud, monkeypatch):
    real = cell_read.read

    def read(*args):
        raise exceptions.UnansweredError("no answer")

    monkeypatch.setattr(cell_read, "read", read)
    refused = cloud.claim(4)
    assert "which uplinks other isolated groups use is not known at the moment" in refused.refused
    assert cloud.claim(4, "bottleneck").hosts
    monkeypatch.setattr(cell_read, "read", real)
    assert cloud.claim(4).hosts


def test_an_isolated_group_is_refused_if_a_cell_falls_silent_while_it_waits_for_others(
    cloud, monkeypatch
):
    cloud.claim(4)
    cloud.claim(4)
    real, read = isolated_instances.read, []

    def read_once(*args):
        read.append(real(*args))
        return (
            read[0]
            if len(read) == 1
            else isolated_instances.IsolatedInstances(
                (), in_flight=False, unverified="a cell is silent"
            )
        )

    monkeypatch.setattr(isolated_instances, "read", read_once)
    refused = cloud.claim(4)
    assert len(read) > 1
    assert not refused.hosts
    assert "whether the group shares uplinks" in refused.refused
    assert not cloud.shared()


@pytest.mark.parametrize(
    ("awaiting", "own", "unverified"),
    [
        (["shelved"], [], "VMs that unshelve are on no host yet: shelved"),
        (["shelved"], ["shelved"], None),
        # It was deleted meanwhile, and the hold is not removed yet.
        ([], [], None),
    ],
)
def test_an_instance_that_unshelves_to_a_place_that_is_only_held_may_be_isolated(
    monkeypatch, awaiting, own, unverified
):
    nothing = host_instances.HostInstances({})
    last = SimpleNamespace(awaiting=[SimpleNamespace(uuid=uuid) for uuid in awaiting])
    monkeypatch.setattr(colocated_instances, "read_hosts", lambda *_args: nothing)
    monkeypatch.setattr(colocated_instances.reads, "last", last)
    holds = Holds(7, {"shelved": Hold("shelved", "n1", {}, until=1, is_moving=True)})
    asking = SimpleNamespace(instance_uuid="new", group_uuid="group")
    assert isolated_instances.read(asking, own, [], holds).unverified == unverified


def test_without_gang_claims_only_a_group_below_one_leaf_is_placed(cloud, monkeypatch):
    monkeypatch.setattr(claim_conditions, "obstacle", lambda: "gang_claims is false")
    assert "whether the group shares uplinks" in cloud.claim(4).refused
    assert cloud.claim(3).hosts


def test_a_damaged_module_refuses_an_isolated_group_and_plans_others_by_hops(
    cloud, monkeypatch, caplog
):
    by_hops = cloud.claim(4, "hops")
    cloud.delete(by_hops)
    monkeypatch.setitem(sys.modules, "hpc_sched.core.plan.bottleneck.plan_by_objective", None)
    monkeypatch.delattr(bottleneck, "plan_by_objective")
    refused = cloud.claim(4)
    assert not refused.hosts
    assert spread(cloud.claim(4, "bottleneck")) == spread(by_hops)
    assert "planned by hops" in caplog.text


# Remarks and hints


def test_a_pattern_that_does_not_fit_the_group_is_one_warning_a_request(cloud, caplog):
    assert cloud.claim(4, "bottleneck", pattern="halo2:3x3").hosts
    [said] = [one.getMessage() for one in caplog.records if "hpc:pattern" in one.getMessage()]
    assert "a grid of 9 VMs, the group has 4" in said
    assert "planned as uniform" in said


def test_an_isolated_vm_without_a_group_is_refused(cloud):
    assert "hpc:objective: only a group can have that" in cloud.claim(1).refused


def test_the_trade_off_changes_plans_once_the_option_has_changed(cloud):
    """3 + 3 VMs send 9 across each leaf, 2 + 2 + 2 send 8, but across more leaves and pods."""
    nova = cloud.claims.cloud
    with options(nova, uplink_oversubscription={"leaf": 4.0}):
        bounded = cloud.claim(6, "bottleneck")
        cloud.delete(bounded)
        with options(nova, bottleneck_tradeoff=1.0):
            unbounded = cloud.claim(6, "bottleneck")
    assert spread(bounded) == [3, 3]
    assert spread(unbounded) == [2, 2, 2]
    assert {vm: [host] for vm, host in zip(unbounded.vms, unbounded.hosts, strict=True)} == held(
        cloud.claims.cloud
    )


def test_a_hint_that_states_an_objective_is_refused_where_hints_count(cloud):
    hints = {"hpc:objective": ["bottleneck"]}
    with options(cloud.claims.cloud, allow_user_hints=True):
        refused = cloud.claim(2, None, hints=hints)
    assert "hpc:objective: only a flavor can have that, no scheduler hint" in refused.refused
    assert cloud.claim(2, None, hints=hints).hosts


def test_only_isolated_requests_read_the_instances_on_all_hosts(cloud, monkeypatch):
    real, asked = colocated_instances.read_hosts, []
    monkeypatch.setattr(
        colocated_instances, "read_hosts", lambda *args: asked.append(args[0]) or real(*args)
    )
    cloud.claim(2, "hops")
    cloud.claim(2, "bottleneck")
    assert not asked
    isolated = cloud.claim(4)
    assert asked == [isolated.vms[0]]


def test_an_error_while_others_are_read_refuses_an_isolated_group(cloud, monkeypatch, caplog):
    def read_hosts(*_args):
        raise RuntimeError("a bug")

    monkeypatch.setattr(colocated_instances, "read_hosts", read_hosts)
    assert cloud.claim(4).refused
    assert cloud.claim(4, "bottleneck").hosts
    assert "a bug" in caplog.text


# Moves


def move(cloud: IsolatedCloud, group: Group, vm: str) -> str:
    """Return where a VM of a group goes that moves; "" if it is refused."""
    specs = {"app_class": "sync", "objective": "isolated"}
    spec = request(count=len(group.vms), extra_specs=wishing(**specs), uuid=vm)
    cell = cloud.claims.cloud.cell_mappings["cell1"]
    spec.requested_destination = objects.Destination(cell=cell)
    scheduler = cloud.claims.scheduler
    cloud.claims.know_no_instances(scheduler)
    try:
        [[chosen]] = ask(scheduler, cloud.claims.context, spec, [vm])
    except exception.NoValidHost:
        return ""
    return str(chosen.nodename)


@pytest.mark.parametrize("relaxed", [False, True])
def test_a_move_keeps_isolation_unless_that_is_relaxed(cloud, relaxed):
    first, second = cloud.place(4), cloud.place(4)
    leaves = {FABRIC.leaf_of(host) for host in first.hosts}
    # What is left below the leaves of the first one is taken.
    cloud.place(2, "hops", require="leaf")
    cloud.place(2, "hops", require="leaf")
    free = set(FABRIC.hosts) - {host for group in cloud.groups for host in group.hosts}
    assert not free
    gone = next(one for one in cloud.groups if one.objective == "hops")
    near = {FABRIC.leaf_of(host) for host in gone.hosts} <= leaves
    cloud.delete(gone)
    with options(cloud.claims.cloud, relax_moves="always" if relaxed else "never"):
        there = move(cloud, first, first.vms[0])
    assert bool(there) == (near or relaxed)
    assert second.hosts
