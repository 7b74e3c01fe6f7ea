"""A cell that hangs, fails or is slow: requests go on, in time, and leave Nova's threads alone.

::

                       core
            /           |          \\
         leaf1        leaf2        leaf3       cell1
        n01-n16      n17-n32      n33-n48

    cell2, disabled by the operator: m1 and m2, where members of the group run
"""

import errno
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from nova import context as nova_context
from nova import objects

from hpc_sched.nova_glue.io import circuit_breaker, request_deadline
from tests.functional import faults, outcomes, rows
from tests.functional.claims import ClaimsOnly
from tests.functional.cloud_kinds import EMPTY_TWO_CELLS
from tests.functional.clouds import leaves_used
from tests.functional.faults import TIMEOUT
from tests.functional.shared_clouds import cloud_mark
from tests.functional.tested_cloud import TestedCloud
from tests.turned_clock import TurnedClock

LEAVES = {f"leaf{n + 1}": [f"n{16 * n + m:02}" for m in range(1, 17)] for n in range(3)}


pytestmark = cloud_mark(EMPTY_TWO_CELLS)


@pytest.fixture
def claims(cloud: TestedCloud, tmp_path: Path) -> Iterator[ClaimsOnly]:
    with outcomes.claims_for(cloud, tmp_path, LEAVES) as claims:
        yield claims


@pytest.fixture
def group(claims: ClaimsOnly) -> str:
    """Return a group with one member on n17 and two in cell2."""
    group = claims.cloud.server_group("spread over cells", "soft-anti-affinity")
    members = rows.add_vms(claims.cloud, ["n17"], group=group)
    members += rows.add_vms(claims.cloud, ["m1", "m2"], group=group, cell="cell2")
    objects.InstanceGroup.add_members(nova_context.get_admin_context(), group, members)
    return group


@contextmanager
def hanging(cloud: TestedCloud, cell: str) -> Iterator[TurnedClock]:
    """Have the database of a cell hang; time passes only while the plugin waits for it."""
    with (
        faults.silent_server() as port,
        faults.cell_at(cloud, cell, port),
        faults.turned_clock(cloud.cell_mappings[cell].uuid) as clock,
    ):
        yield clock


def test_a_cell_that_hangs_costs_one_timeout_and_then_none(claims, group, caplog):
    with hanging(claims.cloud, "cell2"):
        first = outcomes.place(claims, group)
        assert first.seconds == pytest.approx(TIMEOUT)
        assert faults.reads_under_way() == 1
        # The member in the other cell counts.
        assert leaves_used(LEAVES, first.hosts) == {"leaf2": 2}
        [warning] = faults.said(caplog)
        assert warning.endswith("no answer within 1 s")
        caplog.clear()
        before = faults.reads_under_way()
        second = outcomes.place(claims, group)
        assert second.seconds == 0
        assert faults.reads_under_way() == before
        [warning] = faults.said(caplog)
        assert warning.endswith("left alone after a timeout")


def test_what_a_cell_that_hangs_could_tell_is_not_promised(claims, group, caplog):
    with hanging(claims.cloud, "cell2"):
        outcome = outcomes.place(claims, group, max_leaves=2)
        assert "where the members of the group are is not known" in outcome.refused
        # One member is known, and with it the switch where all of them are.
        outcome = outcomes.place(claims, group, require="leaf")
        assert leaves_used(LEAVES, outcome.hosts) == {"leaf2": 2}


def test_many_requests_at_once_leave_few_threads_in_a_cell_that_hangs_and_none_of_novas(
    claims, group
):
    cloud = claims.cloud
    with hanging(cloud, "cell2"):
        requests = [
            outcomes.group_request(None if number % 4 else group, 1) for number in range(16)
        ]
        with faults.watched_reads(cloud.cell_mappings["cell2"].uuid) as reads:
            found = outcomes.place_at_once(claims, requests)
        assert 1 <= max(reads) <= 4
        assert TIMEOUT <= max(outcome.seconds for outcome in found) <= 2 * TIMEOUT
        outcomes.check_nothing_lost(claims, found)
        assert not any(outcome.refused for outcome in found)
        # Nova reads the other cell at once.
        cell1 = cloud.cell_mappings["cell1"]
        for _ in range(10):
            [answer] = nova_context.scatter_gather_cells(
                nova_context.get_admin_context(), [cell1], 10, objects.ServiceList.get_all
            ).values()
            assert len(answer) >= len(claims.provider_of)


def test_one_read_tries_a_cell_that_hung_and_no_request_waits_for_it(claims, group, caplog):
    cell2 = claims.cloud.cell_mappings["cell2"]
    with hanging(claims.cloud, "cell2") as turned_clock:
        outcomes.place(claims, None)
        stuck = faults.reads_under_way(cell2.uuid)
        turned_clock.turn(circuit_breaker.PAUSE)
        caplog.clear()
        with faults.watched_reads(cell2.uuid) as reads:
            outcomes.place_at_once(claims, [outcomes.group_request(None, 1) for _ in range(8)])
        assert max(reads) == stuck + 1
        said = "\n".join(faults.said(caplog))
        assert f"cell {cell2.id}: no answer" not in said
        assert said.count(f"cell {cell2.id}: left alone") == 8


def test_a_cell_that_answers_again_is_read_again(claims, group, caplog, monkeypatch):
    monkeypatch.setattr(circuit_breaker, "PAUSE", 0.0)
    with hanging(claims.cloud, "cell2"):
        outcomes.place(claims, group)
        assert faults.said(caplog)
    # Reads that the server has left without an answer end soon.
    faults.wait_until(lambda: not faults.reads_under_way())
    caplog.clear()
    outcomes.place(claims, group)
    assert faults.said(caplog) == []
    # From now on by all requests again.
    assert all(found.retry_at is None for found in circuit_breaker.breakers.values())


def test_a_cell_that_hangs_gets_no_more_threads_than_allowed_however_often_it_is_tried(
    claims, group, monkeypatch
):
    monkeypatch.setattr(circuit_breaker, "PAUSE", 0.0)
    monkeypatch.setattr(circuit_breaker, "MAX_STUCK", 2)
    with hanging(claims.cloud, "cell2"):
        for _ in range(3):
            last = outcomes.place(claims, group)
        assert faults.reads_under_way() == 2
        assert last.seconds == 0


def test_a_cell0_that_hangs_is_not_missed(claims, group, caplog):
    """It holds no VM that has a host."""
    with hanging(claims.cloud, "cell0"):
        outcome = outcomes.place(claims, group)
        assert outcome.seconds == 0
        assert leaves_used(LEAVES, outcome.hosts) == {"leaf2": 2}
        assert faults.said(caplog) == []


def test_a_cell_that_refuses_connections_is_one_warning_and_the_others_count(claims, group, caplog):
    cloud = claims.cloud
    with faults.turned_clock("none"), faults.cell_at(cloud, "cell2", faults.closed_port()):
        for _ in range(2):
            caplog.clear()
            outcome = outcomes.place(claims, group)
            assert outcome.seconds == 0
            assert leaves_used(LEAVES, outcome.hosts) == {"leaf2": 2}
            [warning] = faults.said(caplog)
            assert f"[Errno {errno.ECONNREFUSED}]" in warning
            assert "\n" not in warning
            claims.release()


def test_a_cell_that_refuses_the_first_connection_does_not_keep_a_request_for_its_retries(
    claims, group, caplog
):
    cell2 = claims.cloud.cell_mappings["cell2"].uuid
    # Nova's library for databases pauses by the system's clock.
    with (
        faults.timeout(TIMEOUT),
        faults.cell_at(claims.cloud, "cell2", faults.closed_port(), retry_interval=10),
        faults.turned_clock(cell2),
    ):
        assert outcomes.place(claims, group).seconds == pytest.approx(TIMEOUT)
        [warning] = faults.said(caplog)
        assert warning.endswith("no answer within 1 s")


def slow_request(claims: ClaimsOnly, group: str) -> outcomes.Outcome:
    """Place a group where each statement of the plugin takes most of a timeout."""
    with faults.turned_clock("none"), faults.slow_for_us(0.3 * TIMEOUT):
        return outcomes.place(claims, group)


def test_all_reads_of_a_request_together_wait_two_timeouts(claims, group, caplog):
    """Each takes most of one; after a start, the read of the VMs on all hosts is waited for."""
    outcomes.place(claims, group)
    outcome = slow_request(claims, group)
    assert 2 * TIMEOUT <= outcome.seconds < 3 * TIMEOUT
    assert outcome.refused is None
    assert faults.said(caplog)


def test_after_a_start_all_reads_of_the_vms_on_all_hosts_are_waited_for(claims, group, caplog):
    outcome = slow_request(claims, group)
    assert 2 * TIMEOUT < outcome.seconds < request_deadline.MAX_FOR_ROWS * TIMEOUT
    assert not any("not all VMs on the hosts are known" in said for said in faults.said(caplog))
