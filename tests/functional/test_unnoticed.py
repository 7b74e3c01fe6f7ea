"""Requests that are none of our business get byte for byte what stock Nova gives them."""

import json
import random
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from nova.scheduler import manager
from oslo_utils import uuidutils

from tests.functional.claims import MEMORY_MB, ClaimsOnly, claims_on, request
from tests.functional.cloud_kinds import EMPTY
from tests.functional.clouds import four_by_eight, sample_options, sharing_options
from tests.functional.shared_clouds import cloud_mark
from tests.functional.tested_cloud import TestedCloud

LEAVES = four_by_eight()

pytestmark = cloud_mark(EMPTY)


@pytest.fixture
def nova(cloud: TestedCloud) -> Iterator[ClaimsOnly]:
    """Return 32 unevenly used hosts; the scheduler of the cloud is without the plugin."""
    numbers = random.Random(3)
    hosts = [host for below in LEAVES.values() for host in below]
    # Few different numbers: many hosts weigh the same, and their order shows as well.
    used_vcpus = {host: numbers.choice([0, 0, 4, 12]) for host in hosts}
    used_mb = {host: numbers.choice([0, 0, MEMORY_MB // 4, MEMORY_MB // 2]) for host in hosts}
    with claims_on(cloud, used_vcpus, used_mb) as claims:
        yield claims


@pytest.fixture
def plugin(nova: ClaimsOnly, tmp_path: Path) -> manager.SchedulerManager:
    """Return a second scheduler, on the same hosts, as the sample enables it."""
    return started(nova, sample_options(tmp_path, LEAVES))


def started(nova: ClaimsOnly, options: Mapping[tuple[str, str], Any]) -> manager.SchedulerManager:
    """Return a scheduler with options; that of the cloud answers requests without a name."""
    found = nova.start_scheduler(options)
    nova.scheduler = None
    return found


@pytest.fixture
def sharing(
    nova: ClaimsOnly, plugin: manager.SchedulerManager, tmp_path: Path
) -> manager.SchedulerManager:
    """Return a third scheduler, with MDOBP and the filters for hosts that are shared."""
    return started(nova, sharing_options(tmp_path))


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


@pytest.mark.parametrize(
    "requests",
    [
        pytest.param(4, id="4 requests"),
        pytest.param(
            20,
            id="20 requests",
            marks=pytest.mark.nightly("streams", "each request is served by four schedulers"),
        ),
    ],
)
@pytest.mark.parametrize("kind", [single, several, of_class_none, server_group_of_class_none])
def test_a_request_without_hpc_wishes_gets_what_stock_nova_gives(
    nova, plugin, sharing, kind, requests
):
    """From MDOBP as delivered too, not from MDOBP with class none in its list."""
    stock = nova.cloud.scheduler.manager
    assert type(stock) is type(plugin)
    numbers = random.Random(kind.__name__)
    different, by_mdobp = set(), 0
    for _ in range(requests):
        asked = kind(numbers)
        by_stock = answer(nova, stock, asked)
        assert answer(nova, plugin, asked) == by_stock
        assert answer(nova, sharing, asked) == by_stock
        different.add(by_stock)
        nova.cloud.flags(mdobp_classes=["sync", "async", "none"], group="hpc_sched")
        by_mdobp += answer(nova, sharing, asked) != by_stock
        nova.cloud.flags(mdobp_classes=["sync", "async"], group="hpc_sched")
    assert len(different) >= min(4, requests // 2)
    assert by_mdobp >= requests / 2


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
