"""Placement refuses claims, and does not answer look-ups of VMs on their way.

::

                 core
            /           \\
         leaf1         leaf2
        n01-n08       n09-n16
"""

import re
from collections.abc import Iterator
from pathlib import Path

import nova.conf
import pytest
from nova import context as nova_context
from nova import objects
from nova.scheduler.client import report
from oslo_utils import timeutils

from hpc_sched import clock
from hpc_sched.nova_glue.io import placement
from tests.functional import faults, outcomes, rows
from tests.functional.claims import ClaimsOnly
from tests.functional.cloud_kinds import EMPTY
from tests.functional.clouds import leaves_used
from tests.functional.faults import TIMEOUT
from tests.functional.shared_clouds import cloud_mark
from tests.functional.tested_cloud import TestedCloud

CONF = nova.conf.CONF

LEAVES = {f"leaf{n + 1}": [f"n{8 * n + m:02}" for m in range(1, 9)] for n in range(2)}


pytestmark = cloud_mark(EMPTY)


@pytest.fixture
def claims(cloud: TestedCloud, tmp_path: Path) -> Iterator[ClaimsOnly]:
    # The filter left out would leave no host of another switch either, but promises nothing.
    without = "HPCRackCapacityFilter"
    with outcomes.claims_for(cloud, tmp_path, LEAVES, without=without) as claims:
        yield claims


@pytest.fixture
def without_gang_claims(claims: ClaimsOnly) -> None:
    """Have Nova alone claim, VM by VM."""
    claims.cloud.flags(gang_claims=False, group="hpc_sched")


@pytest.mark.default
def test_a_claimed_group_stays_under_its_switch_though_novas_claims_are_lost(
    claims, caplog, monkeypatch
):
    group = claims.cloud.server_group("group", "soft-anti-affinity")
    with faults.every_second_claim_lost(monkeypatch, claims.cloud) as lost:
        outcome = outcomes.place(claims, group, 4, require="leaf")
    assert lost
    assert len(leaves_used(LEAVES, outcome.hosts)) == 1
    assert len(set(outcome.hosts)) == 4
    assert faults.said(caplog) == []


def test_a_group_stays_under_its_switch_though_every_second_claim_is_lost(
    claims, without_gang_claims, caplog, monkeypatch
):
    group = claims.cloud.server_group("group", "soft-anti-affinity")
    with faults.every_second_claim_lost(monkeypatch, claims.cloud) as lost:
        outcome = outcomes.place(claims, group, 4, require="leaf")
    assert len(lost) == 3
    assert len(leaves_used(LEAVES, outcome.hosts)) == 1
    assert len(set(outcome.hosts)) == 4
    assert faults.said(caplog) == []


def test_a_group_that_lost_too_many_claims_is_refused_and_leaves_nothing_behind(
    claims, without_gang_claims, caplog, monkeypatch
):
    """Six of eight hosts, and as many would have done: five were lost."""
    group = claims.cloud.server_group("group", "soft-anti-affinity")
    with faults.every_second_claim_lost(monkeypatch, claims.cloud) as lost:
        outcome = outcomes.place(claims, group, 6, require="leaf")
    assert outcome.refused
    assert len(lost) >= 3
    assert faults.said(caplog) == []


@pytest.fixture
def in_flight(claims: ClaimsOnly) -> tuple[str, str]:
    """Return a group with a VM on its way, and the leaf that it goes to."""
    group = claims.cloud.server_group("group", "soft-anti-affinity")
    [vm] = rows.add_vms(claims.cloud, [None], group=group)
    rows.change_vm(claims.cloud, vm, updated_at=timeutils.utcnow())
    objects.InstanceGroup.add_members(nova_context.get_admin_context(), group, [vm])
    body = {
        "allocations": {claims.provider_of["n16"]: {"resources": {"VCPU": 16}}},
        "project_id": "project",
        "user_id": "user",
        "consumer_generation": None,
    }
    claims.consumers.append(vm)
    answer = claims.cloud.placement.put(f"/allocations/{vm}", version="1.28", body=body)
    assert answer.status == 204
    return group, "leaf2"


def test_without_look_ups_groups_are_placed_and_nothing_is_promised(
    claims, in_flight, caplog, monkeypatch
):
    group, leaf = in_flight
    with faults.look_ups_at(monkeypatch, faults.closed_port()) as asked:
        outcome = outcomes.place(claims, group, 2)
        assert len(leaves_used(LEAVES, outcome.hosts)) == 1
        assert asked
        [warning] = faults.said(caplog)
        assert "Placement: ConnectFailure" in warning
        outcome = outcomes.place(claims, group, 2, require="leaf")
        assert "where the members of the group are is not known" in outcome.refused
    caplog.clear()
    outcome = outcomes.place(claims, group, 2, require="leaf")
    assert leaves_used(LEAVES, outcome.hosts) == {leaf: 2}
    assert faults.said(caplog) == []


def test_look_ups_that_hang_cost_one_timeout_and_then_none(claims, in_flight, caplog, monkeypatch):
    group, _leaf = in_flight
    with (
        faults.silent_server() as port,
        faults.look_ups_at(monkeypatch, port) as asked,
        faults.turned_clock(placement.PLACEMENT),
    ):
        outcome = outcomes.place(claims, group, 2)
        assert outcome.seconds == pytest.approx(TIMEOUT)
        assert len(leaves_used(LEAVES, outcome.hosts)) == 1
        [warning] = faults.said(caplog)
        assert warning.endswith("Placement: no answer within 1 s")
        assert outcomes.place(claims, group, 2).seconds == 0
        outcome = outcomes.place(claims, group, 2, require="leaf")
        assert "where the members of the group are is not known" in outcome.refused
        assert len(asked) == 1


def test_many_look_ups_that_are_slow_are_not_one_that_hangs(claims, caplog, monkeypatch):
    vms = rows.add_vms(claims.cloud, [None] * 20)
    for vm in vms:
        rows.change_vm(claims.cloud, vm, updated_at=timeutils.utcnow())
    group = claims.cloud.server_group("group", "soft-anti-affinity")
    objects.InstanceGroup.add_members(nova_context.get_admin_context(), group, vms)
    real = report.SchedulerReportClient.get_allocs_for_consumer
    asked: list[str] = []

    def slow(client, context, consumer):
        if faults.is_read():
            asked.append(consumer)
            clock.current.sleep(TIMEOUT / 10)
        return real(client, context, consumer)

    with (
        faults.timeout(TIMEOUT),
        monkeypatch.context() as patch,
        faults.turned_clock("none") as turned_clock,
    ):
        patch.setattr(report.SchedulerReportClient, "get_allocs_for_consumer", slow)
        found = outcomes.place(claims, group, 2)
        assert 0 < found.seconds < 2 * TIMEOUT  # of neighbours and of members
        [warning] = faults.said(caplog)
        assert re.search(r"Placement: \d+ of 20 look-ups in time$", warning)
        # No thread is left behind, and the next request asks as well.
        first = len(asked)
        assert first < 20
        turned_clock.sleep(TIMEOUT)
        assert len(asked) == first
        outcomes.place(claims, group, 2)
        assert len(asked) > first


def test_many_requests_at_once_leave_few_threads_in_look_ups_that_hang(
    claims, in_flight, monkeypatch
):
    group, _leaf = in_flight
    with (
        faults.silent_server() as port,
        faults.look_ups_at(monkeypatch, port),
        faults.turned_clock(placement.PLACEMENT),
    ):
        requests = [outcomes.group_request(group, 1, vcpus=1) for _ in range(16)]
        with faults.watched_reads(placement.PLACEMENT) as reads:
            found = outcomes.place_at_once(claims, requests)
        assert 1 <= max(reads) <= 8
        assert TIMEOUT <= max(outcome.seconds for outcome in found) <= 2 * TIMEOUT
        assert not any(outcome.refused for outcome in found)
        outcomes.check_nothing_lost(claims, found)
