"""What holds where the schedulers of a cloud differ, and what does not: docs/operator/upgrade.rst.

After each test Placement holds each placed VM on one host and nothing else, and no host has more
than it can have: see ``mixed_schedulers.py``, where the fabric is drawn too.
"""

import re
from collections.abc import Iterator

import pytest

from hpc_sched.cli import main
from tests.functional.cloud_kinds import EMPTY
from tests.functional.mixed_schedulers import (
    HOSTS,
    LEAVES,
    OTHER_LEAVES,
    SHARING,
    STOCK,
    Mixed,
    MixedScheduler,
    leaves_of,
    mixed_cloud,
)
from tests.functional.scheduler_processes import needs_files
from tests.functional.shared_clouds import cloud_mark
from tests.functional.tested_cloud import TestedCloud
from tests.functional.trees import write_tree

pytestmark = [needs_files, cloud_mark(EMPTY)]
THIRD_SCHEDULER = pytest.mark.nightly("processes", "each starts another scheduler's process")

ROUNDS = 3
# What a tenant must not read.
NAMES = re.compile(r"\bn[1-8]\b|leaf[12]|ctl")


@pytest.fixture(scope="module")
def cloud(
    cloud_of_module: TestedCloud, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Mixed]:
    with mixed_cloud(cloud_of_module, tmp_path_factory.mktemp("mixed")) as found:
        yield found


@pytest.fixture
def mixed(cloud: Mixed) -> Iterator[Mixed]:
    """Return the cloud without VMs; Placement's promises are checked after each test."""
    yield cloud
    cloud.clear()


@pytest.fixture
def plugin(mixed: Mixed) -> MixedScheduler:
    return mixed.scheduler("ctl1")


@pytest.fixture
def stock(mixed: Mixed) -> MixedScheduler:
    """Return a scheduler without filters and weighers of hpc_sched."""
    return mixed.scheduler("stock", STOCK)


@pytest.fixture
def sharing(mixed: Mixed) -> MixedScheduler:
    """Return a scheduler with HPCDedicatedHostFilter and HPCInterferenceFilter."""
    return mixed.scheduler("sharing", SHARING)


@pytest.fixture
def elsewhere(mixed: Mixed) -> MixedScheduler:
    """Return a scheduler with a topology in which two hosts are under the other leaf."""
    path = write_tree(mixed.folder / "other.yaml", {"core": OTHER_LEAVES})
    return mixed.scheduler("elsewhere", topology_file=path)


# One scheduler without the plugin


def test_what_one_has_claimed_is_taken_for_the_other(mixed, plugin, stock):
    group, [vms, others, late] = mixed.group(4, 4, 1)
    first = plugin.place(vms, group, require="leaf")
    assert len(leaves_of(first)) == 1
    second = stock.place(others, group)
    assert sorted(first.hosts + second.hosts) == sorted([*LEAVES["leaf1"], *LEAVES["leaf2"]])
    assert stock.place(late).refused


def test_at_the_same_moment_neither_takes_what_the_other_has(mixed, plugin, stock):
    for _ in range(ROUNDS):
        group, [vms] = mixed.group(4)
        _, [others] = mixed.group(4)
        plugin.begin(vms, group, require="leaf")
        stock.begin(others)
        outcome, _ = plugin.end(vms), stock.end(others)
        assert outcome.refused or len(leaves_of(outcome)) == 1
        mixed.clear()


@pytest.mark.parametrize("constraint", [{"require": "leaf"}, {"max_leaves": 1}], ids=str)
def test_stock_nova_breaks_a_constraint_and_the_plugin_says_so_afterwards(
    mixed, plugin, stock, constraint
):
    group, [vms, more] = mixed.group(2, 1)
    broken = stock.place(vms, group, **constraint)
    assert leaves_of(broken) == {"leaf1": 1, "leaf2": 1}
    mixed.land(broken, group, 16, **constraint)
    refused = plugin.place(more, group, **constraint).refused
    assert "its members" in plugin.last_decision()["reason"]
    assert "its members" in refused
    assert not NAMES.search(refused)


def test_the_vms_of_stock_nova_are_members_of_the_group_for_the_plugin(mixed, plugin, stock):
    group, [vms, more] = mixed.group(1, 3)
    mixed.land(stock.place(vms, group), group, 16)
    outcome = plugin.place(more, group, require="leaf")
    assert leaves_of(outcome) == {"leaf1": 3}
    assert plugin.last_decision()["members"] == {"leaf1": 1}


def test_a_request_that_does_not_fit_as_a_whole_is_refused_by_stock_nova_too(mixed, plugin, stock):
    group, [vms, same] = mixed.group(HOSTS + 1, HOSTS + 1)
    assert stock.place(vms, group).refused
    assert plugin.place(same, group).refused


@THIRD_SCHEDULER
def test_a_dedicated_host_is_not_kept_from_the_vms_of_stock_nova(mixed, sharing, stock):
    group, [vms] = mixed.group(HOSTS, policy="anti-affinity")
    _, [alone, intruder] = mixed.group(1, 1)
    own = {"policy": "anti-affinity", "vcpus": 1, "app_class": "extreme"}
    dedicated = sharing.place(vms, group, **own)
    assert len(set(dedicated.hosts)) == HOSTS
    mixed.land(dedicated, group, 1, app_class="extreme")
    assert sharing.place(alone, vcpus=1).refused
    assert not stock.place(intruder, vcpus=1).refused


@THIRD_SCHEDULER
def test_a_dedicated_host_that_stock_nova_has_used_takes_no_more_of_its_group(
    mixed, sharing, stock
):
    group, [vms, more] = mixed.group(1, HOSTS)
    _, [intruder] = mixed.group(1)
    first = sharing.place(vms, group, vcpus=1, app_class="extreme")
    mixed.land(first, group, 1, app_class="extreme")
    taken = stock.place(intruder, vcpus=1)
    mixed.land(taken, None, 1)
    outcome = sharing.place(more, group, vcpus=2, app_class="extreme")
    assert not outcome.refused
    assert taken.hosts[0] not in outcome.hosts


# Another topology


@THIRD_SCHEDULER
def test_each_keeps_the_constraint_in_its_own_topology(mixed, plugin, elsewhere):
    group, [vms, more] = mixed.group(4, 1)
    outcome = elsewhere.place(vms, group, require="leaf")
    assert len(leaves_of(outcome, OTHER_LEAVES)) == 1
    assert len(leaves_of(outcome)) == 2
    mixed.land(outcome, group, 16, require="leaf")
    assert "its members" in plugin.place(more, group, require="leaf").refused
    assert "switches of level leaf" in plugin.last_decision()["reason"]


@THIRD_SCHEDULER
def test_requests_of_one_group_with_two_topologies_lose_nothing(mixed, plugin, elsewhere):
    for _ in range(ROUNDS):
        group, [vms, others] = mixed.group(2, 2)
        plugin.begin(vms, group, require="leaf")
        elsewhere.begin(others, group, require="leaf")
        for one, own, leaves in ((plugin, vms, LEAVES), (elsewhere, others, OTHER_LEAVES)):
            outcome = one.end(own)
            assert outcome.refused or len(leaves_of(outcome, leaves)) == 1
        mixed.clear()


@THIRD_SCHEDULER
def test_the_command_sees_in_the_logs_which_part_differs(mixed, plugin, elsewhere, capsys):
    for one in (plugin, elsewhere):
        group, [vms] = mixed.group(2)
        one.place(vms, group)
    logs = [str(mixed.log(one.name)) for one in (plugin, elsewhere)]
    assert main.main(["check", "schedulers", logs[0]]) == 0
    assert main.main(["check", "schedulers", *logs]) == 1
    *_, last = capsys.readouterr().out.splitlines()
    assert last.startswith("topology differs: ")
    assert "(ctl1)" in last
    assert "(elsewhere)" in last


# Other options


@THIRD_SCHEDULER
def test_another_default_class_places_a_group_as_without_the_plugin(mixed, plugin):
    unpacked = mixed.scheduler("unpacked", default_app_class="none")
    group, [vms, others] = mixed.group(2, 2)
    assert leaves_of(unpacked.place(vms, group)) == {"leaf1": 1, "leaf2": 1}
    # The other one packs what it places, next to the members.
    assert len(leaves_of(plugin.place(others, group))) == 1


@THIRD_SCHEDULER
def test_a_limit_holds_for_what_its_scheduler_places(mixed, sharing, stock):
    strict = mixed.scheduler("strict", SHARING, cache_score_limit=10, sync_cache_score_limit=10)
    group, [vms] = mixed.group(HOSTS, policy="anti-affinity")
    own = {"vcpus": 1, "app_class": "sync", "cache_score": 8}
    first = strict.place(vms, group, policy="anti-affinity", **own)
    assert len(set(first.hosts)) == HOSTS
    mixed.land(first, group, 1, app_class="sync", cache_score=8)
    _, [refused, placed, unlimited] = mixed.group(1, 1, 1)
    assert strict.place(refused, **own).refused
    intruder = stock.place(unlimited, **own)
    assert not intruder.refused
    beyond = sharing.place(placed, **own)
    assert not beyond.refused
    mixed.land(beyond, None, 1, app_class="sync", cache_score=8)
    mixed.land(intruder, None, 1, app_class="sync", cache_score=8)
    # A host over the limit is one that takes no more.
    over = {*intruder.hosts, *beyond.hosts}
    others, [light] = mixed.group(HOSTS - len(over), policy="anti-affinity")
    own["cache_score"] = 1
    outcome = strict.place(light, others, policy="anti-affinity", **own)
    assert {*outcome.hosts, *over} == set(first.hosts)


# Gang claims on one of two


@THIRD_SCHEDULER
def test_a_gang_claim_and_claims_vm_by_vm_do_not_take_each_others_places(mixed, plugin):
    one_by_one = mixed.scheduler("one_by_one", gang_claims=False)
    for _ in range(ROUNDS):
        group, [vms] = mixed.group(4)
        other, [others] = mixed.group(4)
        plugin.begin(vms, group, require="leaf")
        one_by_one.begin(others, other, require="leaf")
        both = [plugin.end(vms), one_by_one.end(others)]
        assert not both[0].refused
        for outcome in both:
            assert outcome.refused or len(leaves_of(outcome)) == 1
        mixed.clear()
    assert plugin.last_decision()["claim"]["vms"] == 4
    assert "claim" not in one_by_one.last_decision()
