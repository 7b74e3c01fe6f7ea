"""The classes that MDOBP places: single VMs, and requests that are not HPC.

::

              core
          /          \\
       leaf1        leaf2
     n1 n2 n3     n4 n5 n6      4 cores and 8 GB each
"""

from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from hpc_sched.demo.nova_cloud import NovaCloud
from tests.functional.cloud_kinds import MDOBP
from tests.functional.scheduling_costs import placed, scheduling
from tests.functional.shared_clouds import cloud_mark
from tests.functional.tested_cloud import TestedCloud

ALL = ["sync", "async", "none"]


pytestmark = cloud_mark(MDOBP)


@pytest.fixture
def log(tmp_path: Path) -> Path:
    """Return the decision log."""
    return tmp_path / "decisions.json"


@pytest.fixture
def cloud(shared_cloud: TestedCloud, log: Path) -> TestedCloud:
    shared_cloud.flags(decision_log=str(log), group="hpc_sched")
    for name, specs in (
        ("plain", {}),
        ("none", {"hpc:app_class": "none"}),
        ("sync", {"hpc:app_class": "sync"}),
        ("async", {"hpc:app_class": "async"}),
    ):
        shared_cloud.flavor(name, memory_mb=2048, extra_specs=specs)
    return shared_cloud


@pytest.fixture
def classes(cloud: NovaCloud) -> Callable[[list[str]], None]:
    """Set the option for one test."""

    def set_(names: list[str]) -> None:
        cloud.flags(mdobp_classes=names, group="hpc_sched")

    return set_


@pytest.mark.parametrize("flavor", ["plain", "none"])
def test_vms_that_are_not_hpc_are_packed_by_mdobp_where_the_option_says_so(
    cloud, boot, classes, flavor
):
    classes(ALL)
    assert placed(cloud, boot, flavor, 4) == [4]


@pytest.mark.parametrize("flavor", ["plain", "none"])
def test_as_delivered_nova_spreads_vms_that_are_not_hpc(cloud, boot, flavor):
    assert placed(cloud, boot, flavor, 4) == [1, 1, 1, 1]


@pytest.mark.parametrize("flavor", ["sync", "async"])
def test_single_vms_of_a_class_in_the_list_are_placed_by_mdobp(cloud, boot, classes, flavor):
    assert placed(cloud, boot, flavor, 3) == [3]
    classes(["async" if flavor == "sync" else "sync"])
    assert placed(cloud, boot, flavor, 1) == [1]
    # The host with three VMs has as much memory for a core as the empty ones, and less of it.
    hosts = Counter(server["OS-EXT-SRV-ATTR:host"] for server in cloud.api.get_servers(detail=True))
    assert sorted(hosts.values()) == [1, 3]


def test_the_vms_of_one_request_are_packed_too_and_go_on_where_a_host_is_full(cloud, boot, classes):
    classes(ALL)
    assert placed(cloud, boot, "plain", 1, count=6) == [4, 2]


def test_a_soft_policy_of_a_server_group_of_class_none_comes_first(cloud, boot, classes):
    classes(ALL)
    group = cloud.server_group("web", "soft-anti-affinity")
    assert placed(cloud, boot, "none", 2, count=2, group=group) == [1, 1, 1, 1]


def test_a_hard_policy_of_a_server_group_of_class_none_is_novas(cloud, boot, classes):
    classes(ALL)
    group = cloud.server_group("databases", "anti-affinity")
    assert placed(cloud, boot, "none", 1, count=3, group=group) == [1, 1, 1]


def test_class_none_has_no_decision_and_is_not_claimed_ahead_of_nova(
    cloud, boot, classes, log, caplog
):
    caplog.set_level("INFO", "hpc_sched")
    classes(ALL)
    placed(cloud, boot, "plain", 1, count=2)
    assert not log.exists()
    assert not [one for one in caplog.messages if "claimed" in one or "planned" in one]


def test_only_what_mdobp_places_costs_queries(cloud, boot, classes, monkeypatch):
    """The VMs on all hosts: three queries, and three more where some VMs are not cached."""

    def cost(flavor: str) -> tuple[int, int]:
        with scheduling(monkeypatch) as costs:
            cloud.wait(boot(flavor))
        [found] = costs
        return found

    # The first request of a scheduler reads the cells as well.
    cost("plain")
    # VMs that the scheduler has not read the application of.
    stock = cost("plain")
    classes(ALL)
    assert cost("plain") == (stock[0] + 6, stock[1])
    # As delivered again.
    classes(["sync", "async"])
    assert cost("plain") == stock


def test_class_none_without_mdobp_costs_what_it_costs_with_it_as_delivered(
    cloud, boot, monkeypatch
):
    weighers = cloud.scheduler.manager.host_manager.weighers
    # The first request of a scheduler reads the cells as well.
    cloud.wait(boot("none"))
    costs = []
    for kept in (weighers, [one for one in weighers if type(one).__name__ != "MDOBPWeigher"]):
        with monkeypatch.context() as patch, scheduling(monkeypatch) as found:
            patch.setattr(cloud.scheduler.manager.host_manager, "weighers", kept)
            cloud.wait(boot("none"))
        costs += found
    assert costs[0] == costs[1]
