"""Groups that are no good to place: with 10,000 entries, or deleted meanwhile.

::

                 core
            /           \\
         leaf1         leaf2
        n01-n16       n17-n32
"""

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
import sqlalchemy as sa
from nova import context as nova_context
from nova import objects
from nova.db.api import api as api_db
from nova.db.api import models as api_models
from nova.objects.cell_mapping import CellMapping
from nova.scheduler.client import report
from oslo_utils import uuidutils

from tests.counted_calls import calls_of
from tests.functional import faults, outcomes, rows
from tests.functional.claims import ClaimsOnly
from tests.functional.cloud_kinds import EMPTY
from tests.functional.clouds import leaves_used
from tests.functional.shared_clouds import cloud_mark
from tests.functional.tested_cloud import TestedCloud
from tests.functional.truth import believed, nodes

LEAVES = {f"leaf{n + 1}": [f"n{16 * n + m:02}" for m in range(1, 17)] for n in range(2)}


pytestmark = cloud_mark(EMPTY)


@pytest.fixture
def claims(cloud: TestedCloud, tmp_path: Path) -> Iterator[ClaimsOnly]:
    with outcomes.claims_for(cloud, tmp_path, LEAVES) as claims:
        yield claims


def add_to_cell0(vms: list[str]) -> None:
    """Map VMs to the cell of those that never found a host."""
    context = nova_context.get_admin_context()
    cell0 = CellMapping.get_by_uuid(context, CellMapping.CELL0_UUID)
    with api_db.context_manager.writer.using(context) as session:
        session.execute(
            sa.insert(api_models.InstanceMapping),
            [{"instance_uuid": vm, "cell_id": cell0.id, "project_id": "project"} for vm in vms],
        )


def test_a_group_of_ten_thousand_entries_counts_those_that_have_a_place(
    claims, caplog, monkeypatch
):
    cloud = claims.cloud
    group = cloud.server_group("grown", "soft-anti-affinity")
    # Nova's API takes entries away only when a VM is deleted there.
    gone = rows.add_vms(cloud, ["n01"] * 4900, group=group)
    rows.delete(cloud, gone)
    lost = [uuidutils.generate_uuid() for _ in range(2000)]
    add_to_cell0(lost)
    unknown = [uuidutils.generate_uuid() for _ in range(2000)]
    running = rows.add_vms(cloud, ["n17", "n18", "n19"] * 366 + ["n17", "n18"], group=group)
    entries = gone + lost + unknown + running
    assert len(entries) == 10_000
    context = nova_context.get_admin_context()
    group_id = objects.InstanceGroup.get_by_uuid(context, group).id
    with api_db.context_manager.writer.using(context) as session:
        session.execute(
            sa.insert(api_models.InstanceGroupMember),
            [{"instance_uuid": vm, "group_id": group_id} for vm in entries],
        )
    with believed(monkeypatch) as seen:
        found: list[outcomes.Outcome] = []
        calls = calls_of(lambda: found.append(outcomes.place(claims, group, 4, require="leaf")))
    [outcome] = found
    assert calls < 250 * len(entries)
    read, after_the_claim = seen
    assert nodes(read) == Counter({"n17": 367, "n18": 367, "n19": 366})
    assert nodes(after_the_claim) == nodes(read)
    assert read.awaiting == 4
    assert leaves_used(LEAVES, outcome.hosts) == {"leaf2": 4}
    assert faults.said(caplog) == []


@pytest.fixture(params=LEAVES)
def with_a_member(request: pytest.FixtureRequest, claims: ClaimsOnly) -> tuple[str, list[str], str]:
    """Return a group with one member, its members, and the leaf under which that runs."""
    group = claims.cloud.server_group("group", "soft-anti-affinity")
    members = rows.add_vms(claims.cloud, [LEAVES[request.param][0]], group=group)
    objects.InstanceGroup.add_members(nova_context.get_admin_context(), group, members)
    return group, members, request.param


def test_a_group_deleted_before_the_scheduler_sees_the_request_is_placed_as_one(
    claims, with_a_member, caplog
):
    group, members, leaf = with_a_member
    spec, uuids = outcomes.group_request(group, 4, require="leaf")
    # The members that nova-api has put into the request.
    spec.instance_group.members = members
    claims.cloud.api.delete_server_group(group)
    outcome = outcomes.outcome_of(claims, spec, uuids)
    outcomes.check_nothing_lost(claims, [outcome])
    assert leaves_used(LEAVES, outcome.hosts) == {leaf: 4}
    assert faults.said(caplog) == []


def test_a_group_deleted_between_two_vms_of_a_request_is_placed_as_one(
    claims, with_a_member, caplog, monkeypatch
):
    group, _members, leaf = with_a_member
    real = report.SchedulerReportClient.put
    claimed = []

    def put(self, url, data, version=None, global_request_id=None):
        if url.startswith("/allocations/") and data.get("allocations"):
            claimed.append(url)
            if len(claimed) == 2:
                claims.cloud.api.delete_server_group(group)
        return real(self, url, data, version=version, global_request_id=global_request_id)

    with monkeypatch.context() as patch:
        patch.setattr(report.SchedulerReportClient, "put", put)
        # Without a wish for which the filter would have left this leaf alone.
        outcome = outcomes.place(claims, group, 4)
    assert len(claimed) == 4
    assert leaves_used(LEAVES, outcome.hosts) == {leaf: 4}
    assert claims.cloud.api.get_server_groups() == []
    assert faults.said(caplog) == []
