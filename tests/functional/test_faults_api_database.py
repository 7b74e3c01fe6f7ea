"""The API database is gone, or hangs, and comes back: the scheduler needs no restart.

::

                 core
            /           \\
         leaf1         leaf2
        n01-n08       n09-n16
"""

import errno
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from nova import context as nova_context
from nova import objects
from oslo_db import exception as db_exception
from oslo_utils import uuidutils

from hpc_sched import exceptions
from hpc_sched.nova_glue.io import circuit_breaker, databases, request_deadline
from hpc_sched.nova_glue.read.instances import group_members
from tests.functional import faults, outcomes, rows
from tests.functional.claims import ClaimsOnly
from tests.functional.cloud_kinds import EMPTY
from tests.functional.clouds import leaves_used
from tests.functional.faults import TIMEOUT
from tests.functional.shared_clouds import cloud_mark
from tests.functional.tested_cloud import TestedCloud
from tests.turned_clock import TurnedClock

LEAVES = {f"leaf{n + 1}": [f"n{8 * n + m:02}" for m in range(1, 9)] for n in range(2)}


pytestmark = cloud_mark(EMPTY)


@pytest.fixture
def claims(cloud: TestedCloud, tmp_path: Path) -> Iterator[ClaimsOnly]:
    with outcomes.claims_for(cloud, tmp_path, LEAVES) as claims:
        # They were written before the database failed, and cannot be read since.
        claims.has_build_requests = False
        yield claims


@pytest.fixture(params=LEAVES)
def group(request: pytest.FixtureRequest, claims: ClaimsOnly) -> tuple[str, str]:
    """Return a group with one member, and the leaf under which that runs."""
    group = claims.cloud.server_group("group", "soft-anti-affinity")
    host = LEAVES[request.param][0]
    members = rows.add_vms(claims.cloud, [host], group=group)
    objects.InstanceGroup.add_members(nova_context.get_admin_context(), group, members)
    return group, request.param


def place(claims: ClaimsOnly, group: str, **constraints: object) -> outcomes.Outcome:
    """Have two VMs placed, and their hosts free again."""
    outcome = outcomes.place(claims, group, **constraints)
    claims.release()
    return outcome


def test_without_the_api_database_groups_are_placed_and_nothing_is_promised(claims, group, caplog):
    group, leaf = group
    with faults.api_database_at(faults.closed_port()):
        outcome = place(claims, group)
        assert len(leaves_used(LEAVES, outcome.hosts)) == 1
        [warning] = faults.said(caplog)
        assert "API database: " in warning
        assert f"[Errno {errno.ECONNREFUSED}]" in warning
        outcome = place(claims, group, require="leaf")
        assert "where the members of the group are is not known" in outcome.refused
    caplog.clear()
    # It is back.
    assert leaves_used(LEAVES, place(claims, group, require="leaf").hosts) == {leaf: 2}
    assert faults.said(caplog) == []


@contextmanager
def hanging() -> Iterator[TurnedClock]:
    """Have the API database hang; time passes only while the plugin waits for it."""
    with (
        faults.silent_server() as port,
        faults.api_database_at(port),
        faults.turned_clock(databases.API_DATABASE) as clock,
    ):
        yield clock


def test_an_api_database_that_hangs_costs_one_timeout_and_is_asked_again_later(
    claims, group, caplog, monkeypatch
):
    group, leaf = group
    with hanging():
        outcome = place(claims, group)
        assert outcome.seconds == pytest.approx(TIMEOUT)
        assert len(leaves_used(LEAVES, outcome.hosts)) == 1
        [warning] = faults.said(caplog)
        assert warning.endswith("API database: no answer within 1 s")
        assert place(claims, group).seconds == 0
        outcome = place(claims, group, require="leaf")
        assert outcome.seconds == 0
        assert "where the members of the group are is not known" in outcome.refused
        assert faults.reads_under_way() == 1
    caplog.clear()
    # It is back, and left alone for a while.
    monkeypatch.setattr(circuit_breaker.breakers[databases.API_DATABASE], "retry_at", 0.0)
    assert leaves_used(LEAVES, place(claims, group, require="leaf").hosts) == {leaf: 2}
    assert faults.said(caplog) == []


def whole(count: int = 8, **constraints: object) -> tuple[objects.RequestSpec, list[str]]:
    """Return a request that holds all VMs of its group, as the conductor hands it over."""
    spec, uuids = outcomes.group_request(uuidutils.generate_uuid(), count, **constraints)
    spec.instance_group.members = uuids
    return spec, uuids


def claimed_at_once(caplog: pytest.LogCaptureFixture) -> list[int]:
    """Return the number of VMs that each of the requests so far has claimed at once."""
    lines = "\n".join(record.getMessage() for record in caplog.records)
    return [int(found) for found in re.findall(r"(\d+) claimed at once", lines)]


def test_a_request_that_holds_its_whole_group_is_placed_and_claimed_at_once(claims, caplog):
    caplog.set_level("INFO", "hpc_sched")
    with hanging():
        first, second = (
            outcomes.outcome_of(claims, *whole(require="leaf", homogeneous="true"))
            for _ in range(2)
        )
        outcomes.check_nothing_lost(claims, [first, second])
    # One timeout for all its reads, and none for those that come after it.
    assert [first.seconds, second.seconds] == [pytest.approx(TIMEOUT), 0]
    leaves = [leaves_used(LEAVES, outcome.hosts) for outcome in (first, second)]
    assert sorted(leaves, key=str) == [{"leaf1": 8}, {"leaf2": 8}]
    assert claimed_at_once(caplog) == [8, 8]


def test_a_group_of_one_multi_create_is_placed_without_a_claim(claims, caplog):
    caplog.set_level("INFO", "hpc_sched")
    with hanging():
        outcome = outcomes.place(claims, None, 8, require="leaf")
    assert list(leaves_used(LEAVES, outcome.hosts).values()) == [8]
    assert claimed_at_once(caplog) == []


def test_a_request_waits_once_for_an_api_database_that_answers_others(monkeypatch):
    """Its circuit breaker stays closed as long as others get answers."""
    monkeypatch.setattr(circuit_breaker.CircuitBreaker, "_open", lambda _: None)
    with hanging() as clock, request_deadline.active(request_deadline.RequestDeadline()):
        began = clock.monotonic()
        for _ in range(3):
            with pytest.raises(exceptions.UnansweredError):
                group_members.is_placed(uuidutils.generate_uuid())
        assert clock.monotonic() - began == pytest.approx(TIMEOUT)


def test_many_requests_at_once_leave_few_threads_in_an_api_database_that_hangs(claims, group):
    group, _leaf = group
    with hanging():
        requests = [outcomes.group_request(group, 1, vcpus=1) for _ in range(16)]
        with faults.watched_reads(databases.API_DATABASE) as reads:
            found = outcomes.place_at_once(claims, requests)
        assert 1 <= max(reads) <= 4
        assert TIMEOUT <= max(outcome.seconds for outcome in found) <= 2 * TIMEOUT
        assert not any(outcome.refused for outcome in found)
        outcomes.check_nothing_lost(claims, found)


def test_a_read_of_novas_own_fails_in_the_end_where_the_api_database_hangs(cloud, monkeypatch):
    """It has no timeout: a test whose request reads more than it should would never end."""
    monkeypatch.setattr(faults, "DROPPED_AFTER", 0.5)
    context = nova_context.get_admin_context()
    with (
        faults.silent_server() as port,
        faults.api_database_at(port),
        pytest.raises(db_exception.DBConnectionError),
    ):
        objects.HostMapping.get_by_host(context, "n01")
