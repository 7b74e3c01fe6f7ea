"""Placement hangs, fails, or changes, while the hosts of a plan are verified."""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from keystoneauth1 import exceptions as keystone
from nova.scheduler.client import report
from oslo_utils import uuidutils

from hpc_sched.nova_glue.claim import claim_conditions
from hpc_sched.nova_glue.read.room import compared_hosts
from tests.functional import faults
from tests.functional.claims import hosts_of
from tests.functional.cloud_kinds import EMPTY
from tests.functional.device_hosts import (
    DeviceHosts,
    Host,
    counted_claims,
    device_hosts_on,
    device_request,
)
from tests.functional.faults import TIMEOUT
from tests.functional.shared_clouds import cloud_mark
from tests.functional.tested_cloud import TestedCloud

#            core
#        /          \
#     leaf-a       leaf-b
#     a1-a4        b1-b4
LEAVES = {leaf: [f"{leaf[-1]}{number}" for number in range(1, 5)] for leaf in ("leaf-a", "leaf-b")}
# More providers than are read one by one.
GPUS = Host(children={f"pgpu{number}": {"VGPU": 2} for number in range(3)})
TWO_GPUS = {"resources:VGPU": "2"}


pytestmark = [cloud_mark(EMPTY), pytest.mark.usefixtures("nothing_is_held")]


@pytest.fixture
def build(cloud: TestedCloud, tmp_path: Path) -> Iterator[Callable[[Host], DeviceHosts]]:
    """Build a cloud of hosts alike that is removed after the test."""
    faults.forget()
    with device_hosts_on(cloud, tmp_path, LEAVES) as started:

        def build_(host: Host) -> DeviceHosts:
            started.build({name: host for below in LEAVES.values() for name in below})
            return started

        yield build_
    faults.forget()


@contextmanager
def before_read(
    monkeypatch: pytest.MonkeyPatch, happens: Callable[[int, str], None]
) -> Iterator[list[str]]:
    """Call a function before each read of the plugin in Placement; collect what is read."""
    real = report.SchedulerReportClient.get
    asked: list[str] = []

    def get(self, url, version=None, global_request_id=None):
        if faults.is_read():
            asked.append(url)
            happens(len(asked), url)
        return real(self, url, version=version, global_request_id=global_request_id)

    with monkeypatch.context() as patch:
        patch.setattr(report.SchedulerReportClient, "get", get)
        yield asked


def change(cloud: DeviceHosts, host: str, inventories: Mapping[str, Any]) -> None:
    """Set the inventories of a host's own provider."""
    cloud.put(cloud.provider_of[host], "inventories", {"inventories": inventories})


def sizes(vcpus: int) -> dict[str, Any]:
    """Return the inventories of a host with some processors."""
    return {"VCPU": {"total": vcpus}, "MEMORY_MB": {"total": 65536}, "DISK_GB": {"total": 1000}}


def place(cloud: DeviceHosts, count: int, **wanted: Any) -> dict[str, int]:
    """Place a group; return its VMs by host."""
    found = hosts_of(cloud.place(device_request(count=count, **wanted), cloud.scheduler))
    return dict(Counter(found))


def test_where_placement_hangs_the_bound_holds_and_one_warning_says_so(build, monkeypatch, caplog):
    cloud = build(GPUS)
    with (
        faults.silent_server() as port,
        faults.look_ups_at(monkeypatch, port),
        faults.turned_clock("Placement") as clock,
    ):
        began = clock.monotonic()
        assert sum(place(cloud, 3, extra_specs=TWO_GPUS).values()) == 3
        assert TIMEOUT <= clock.monotonic() - began <= 2 * TIMEOUT
    [warning] = faults.said(caplog)
    assert "Hosts have the room that nova-compute reports: Placement, all hosts: " in warning


def test_where_placement_fails_in_the_middle_what_was_read_counts(build, monkeypatch, caplog):
    cloud = build(Host())

    def fail(number: int, _url: str) -> None:
        if number == 3:
            raise keystone.ConnectFailure("gone")

    with before_read(monkeypatch, fail) as asked:
        assert sum(place(cloud, 20, vcpus=4).values()) == 20
    assert len(asked) == 3
    [warning] = faults.said(caplog)
    assert "Placement: ConnectFailure" in warning
    assert len(compared_hosts._known) == 1


def test_a_provider_that_vanishes_has_no_room_and_the_group_goes_elsewhere(build, monkeypatch):
    cloud = build(Host())
    gone: list[str] = []

    def vanish(_number: int, url: str) -> None:
        uuid = url.split("/")[2]
        if not gone and uuid in cloud.provider_of.values():
            gone.append(uuid)
            answer = cloud.cloud.placement.delete(f"/resource_providers/{uuid}", version="1.36")
            assert answer.status == 204

    with before_read(monkeypatch, vanish):
        placed = place(cloud, 8, vcpus=4, extra_specs={"hpc:require": "leaf"})
    assert sum(placed.values()) == 8
    assert not {cloud.provider_of[host] for host in placed} & set(gone)


def test_an_inventory_that_sinks_lowers_the_room_of_its_host(build, monkeypatch):
    cloud = build(Host())
    lowered: list[str] = []

    def sink(_number: int, url: str) -> None:
        host = {uuid: name for name, uuid in cloud.provider_of.items()}.get(url.split("/")[2])
        if host and not lowered:
            lowered.append(host)
            change(cloud, host, sizes(vcpus=4))

    with before_read(monkeypatch, sink):
        placed = place(cloud, 8, vcpus=4, extra_specs={"hpc:require": "leaf"})
    assert sum(placed.values()) == 8
    assert sorted(placed.values()) == [4, 4]
    assert not set(placed) & set(lowered)


@pytest.mark.parametrize("gang_claims", [True, False])
def test_a_host_that_refused_a_claim_is_compared_again(build, monkeypatch, gang_claims):
    cloud, group = build(Host()), uuidutils.generate_uuid()
    if not gang_claims:
        monkeypatch.setattr(claim_conditions, "obstacle", lambda: "switched off")
    planned = place(cloud, 4, vcpus=8, group=group)
    assert sorted(planned.values()) == [2, 2]
    for host in planned:
        change(cloud, host, sizes(vcpus=9))
    results = []
    for _ in range(2):
        cloud.release()
        with counted_claims(monkeypatch) as claims:
            assert sum(place(cloud, 4, vcpus=8, group=group).values()) == 4
        results.append(dict(claims))
    # What is claimed at once is planned again before Nova claims.
    assert gang_claims or results[0].pop(False) > 0
    assert results == [{True: 4}, {True: 4}]


def test_the_calls_to_placement_grow_with_neither_cloud_nor_time(build, monkeypatch):
    cloud, group = build(Host()), uuidutils.generate_uuid()

    def calls(**wanted: object) -> int:
        cloud.release()
        with before_read(monkeypatch, lambda *_: None) as asked:
            place(cloud, 8, vcpus=4, group=group, **wanted)
        return len(asked)

    assert calls(policy="anti-affinity") == 0
    # Two for each of the two hosts that are planned for several VMs, once.
    assert calls() == 4
    assert calls() == 0


@pytest.mark.parametrize("count", [2, 16])
def test_devices_of_all_hosts_are_read_in_one_call(build, monkeypatch, count):
    cloud = build(GPUS)
    with before_read(monkeypatch, lambda *_: None) as asked:
        place(cloud, count, extra_specs=TWO_GPUS)
    assert [url.partition("?")[0] for url in asked] == ["/allocation_candidates"]
