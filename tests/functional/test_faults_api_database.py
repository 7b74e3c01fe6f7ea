"""The API database is gone, or hangs, and comes back: the scheduler needs no restart.

::

                 core
            /           \\
         leaf1         leaf2
        n01-n08       n09-n16
"""

import errno
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from nova import context as nova_context
from nova import objects

from hpc_sched.nova_glue.io import circuit_breaker, databases
from tests.functional import faults, outcomes, rows
from tests.functional.claims import ClaimsOnly
from tests.functional.cloud_kinds import EMPTY
from tests.functional.clouds import leaves_used
from tests.functional.faults import TIMEOUT
from tests.functional.shared_clouds import cloud_mark
from tests.functional.tested_cloud import TestedCloud

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
def hanging() -> Iterator[None]:
    """Have the API database hang; time passes only while the plugin waits for it."""
    with (
        faults.silent_server() as port,
        faults.api_database_at(port),
        faults.turned_clock(databases.API_DATABASE),
    ):
        yield


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
