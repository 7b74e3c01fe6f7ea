"""Requests that are none of our business get byte for byte what stock Nova gives them."""

import json
import random
from collections.abc import Callable, Iterator

import pytest
from nova.scheduler import manager
from oslo_utils import uuidutils

from hpc_sched.demo.nova_cloud import NovaCloud, read_options
from tests.functional.claims import MEMORY_MB, STAYS_UP, ClaimsOnly, request
from tests.functional.clouds import (
    SAMPLE_CONF,
    four_by_eight,
    sharing_options,
    write_topology,
)

LEAVES = four_by_eight()


@pytest.fixture(scope="module")
def nova(start_cloud: Callable[..., NovaCloud]) -> ClaimsOnly:
    """Return 32 unevenly used hosts and a scheduler without the plugin."""
    cloud = start_cloud(with_scheduler=False)
    cloud.start_scheduler(STAYS_UP)
    claims = ClaimsOnly(cloud)
    numbers = random.Random(3)
    hosts = [host for below in LEAVES.values() for host in below]
    # Few different numbers: many hosts weigh the same, and their order shows as well.
    claims.add_hosts(
        {host: numbers.choice([0, 0, 4, 12]) for host in hosts},
        {host: numbers.choice([0, 0, MEMORY_MB // 4, MEMORY_MB // 2]) for host in hosts},
    )
    return claims


@pytest.fixture(scope="module")
def plugin(nova: ClaimsOnly, tmp_path_factory: pytest.TempPathFactory) -> manager.SchedulerManager:
    """Return a second scheduler, on the same hosts, as the sample enables it."""
    path = write_topology(tmp_path_factory.mktemp("topology"), LEAVES)
    options = read_options(SAMPLE_CONF) | {("hpc_sched", "topology_file"): str(path)}
    for (section, name), value in options.items():
        nova.cloud.flags(**{name: value}, group=section)
    return manager.SchedulerManager()


@pytest.fixture(autouse=True)
def released(nova: ClaimsOnly) -> Iterator[None]:
    yield
    nova.release()


def single(numbers: random.Random) -> dict:
    return {"vcpus": numbers.choice([1, 4, 16]), "memory_mb": numbers.choice([512, 8192])}


def several(numbers: random.Random) -> dict:
    """Return several small VMs without a server group and a class: the web servers of a tenant."""
    return {
        "count": numbers.choice([16, 2, 5]),
        "vcpus": numbers.choice([1, 2]),
        "memory_mb": 512,
        "extra_specs": numbers.choice([{}, {"hw:cpu_policy": "shared"}]),
    }


def of_class_none(numbers: random.Random) -> dict:
    return single(numbers) | {
        "count": numbers.choice([1, 2, 5]),
        "extra_specs": {"hpc:app_class": "none"},
    }


def server_group_of_class_none(numbers: random.Random) -> dict:
    return of_class_none(numbers) | {
        "group": uuidutils.generate_uuid(),
        "policy": numbers.choice(["anti-affinity", "soft-anti-affinity", "soft-affinity"]),
    }


def answer(nova: ClaimsOnly, scheduler: manager.SchedulerManager, asked: dict) -> bytes:
    """Return all that the conductor would get: hosts, alternates, claims, limits, in order."""
    selections = nova.place(request(**asked), scheduler, alternates=True)
    nova.release()
    return json.dumps(
        [[chosen.obj_to_primitive() for chosen in of_one] for of_one in selections],
        sort_keys=True,
        default=str,
    ).encode()


@pytest.mark.parametrize("kind", [single, several, of_class_none, server_group_of_class_none])
def test_a_request_without_hpc_wishes_gets_what_stock_nova_gives(nova, plugin, kind):
    stock = nova.cloud.scheduler.manager
    assert type(stock) is type(plugin)
    numbers = random.Random(kind.__name__)
    different = set()
    for _ in range(20):
        asked = kind(numbers)
        by_stock = answer(nova, stock, asked)
        assert answer(nova, plugin, asked) == by_stock
        different.add(by_stock)
    assert len(different) >= 4


@pytest.mark.parametrize(
    "asked",
    [
        pytest.param({"group": uuidutils.generate_uuid()}, id="a server group without a class"),
        pytest.param({"extra_specs": {"hpc:app_class": "sync"}}, id="a class without server group"),
    ],
)
def test_a_group_does_notice(nova, plugin, asked):
    """The comparison above can fail: the same two schedulers differ for a group."""
    asked = {"count": 8, "vcpus": 4} | asked
    stock = answer(nova, nova.cloud.scheduler.manager, asked)
    assert answer(nova, plugin, asked) != stock


def test_sixteen_small_vms_of_one_request_are_not_packed_on_one_host(nova, plugin):
    spec = request(count=16, vcpus=1, memory_mb=512)
    hosts = {chosen[0].service_host for chosen in nova.place(spec, plugin)}
    assert len(hosts) > 8


def test_both_schedulers_are_what_they_are_said_to_be(nova, plugin):
    def filters(scheduler: manager.SchedulerManager) -> list[str]:
        return [type(one).__name__ for one in scheduler.host_manager.enabled_filters]

    assert [name for name in filters(nova.cloud.scheduler.manager) if "HPC" in name] == []
    assert filters(plugin)[-3:] == [
        "HPCHomogeneityFilter",
        "HPCGroupFilter",
        "HPCRackCapacityFilter",
    ]


@pytest.fixture(scope="module")
def sharing(
    nova: ClaimsOnly, plugin: manager.SchedulerManager, tmp_path_factory: pytest.TempPathFactory
) -> manager.SchedulerManager:
    """Return a third scheduler, with MDOBP and the filters for hosts that are shared."""
    for (section, name), value in sharing_options(tmp_path_factory.mktemp("conf")).items():
        nova.cloud.flags(**{name: value}, group=section)
    return manager.SchedulerManager()


@pytest.mark.parametrize("kind", [single, several, of_class_none, server_group_of_class_none])
def test_nor_does_it_notice_mdobp_as_delivered(nova, sharing, kind):
    numbers = random.Random(f"sharing {kind.__name__}")
    for _ in range(10):
        asked = kind(numbers)
        assert answer(nova, sharing, asked) == answer(nova, nova.cloud.scheduler.manager, asked)


@pytest.mark.parametrize("kind", [single, several, of_class_none, server_group_of_class_none])
def test_with_class_none_in_its_list_mdobp_does_place_it(nova, sharing, kind):
    numbers = random.Random(f"sharing {kind.__name__}")
    nova.cloud.flags(mdobp_classes=["sync", "async", "none"], group="hpc_sched")
    try:
        different = 0
        for _ in range(10):
            asked = kind(numbers)
            stock = answer(nova, nova.cloud.scheduler.manager, asked)
            different += answer(nova, sharing, asked) != stock
        assert different >= 5
    finally:
        nova.cloud.flags(mdobp_classes=["sync", "async"], group="hpc_sched")
