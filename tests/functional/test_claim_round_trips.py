"""What a gang claim costs in calls to Placement, beside the same request without one."""

from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
from nova.scheduler.client import report
from oslo_utils import uuidutils

from hpc_sched.nova_glue.read.room import compared_hosts
from tests.functional import nova_objects, outcomes
from tests.functional.claims import ClaimsOnly
from tests.functional.cloud_kinds import EMPTY
from tests.functional.clouds import four_by_eight
from tests.functional.shared_clouds import cloud_mark
from tests.functional.tested_cloud import TestedCloud

VMS = 16


pytestmark = cloud_mark(EMPTY)


@pytest.fixture
def claims(cloud: TestedCloud, tmp_path: Path) -> Iterator[ClaimsOnly]:
    with outcomes.claims_for(cloud, tmp_path, four_by_eight()) as claims:
        yield claims


def calls_of(
    claims: ClaimsOnly, monkeypatch, wish: Mapping[str, str], *, gang_claims: bool
) -> Counter[str]:
    """Return the calls of a request for 16 VMs by their method and what they name."""
    calls: Counter[str] = Counter()
    group = claims.cloud.server_group("counted", "soft-affinity")
    spec = nova_objects.request_spec(
        nova_objects.flavor(vcpus=2, memory_mb=64, extra_specs=wish),
        nova_objects.server_group(group, "soft-affinity"),
        count=VMS,
        uuid=uuidutils.generate_uuid(),
    )
    # Groups with a wish are in one leaf, not in the same each time.
    compared_hosts.forget_all()
    claims.cloud.flags(gang_claims=gang_claims, group="hpc_sched")
    try:
        with monkeypatch.context() as patch:
            for method in ("get", "post", "put", "delete"):
                real = getattr(report.SchedulerReportClient, method)

                def call(self, url, *args, _method=method, _real=real, **kwargs):
                    calls[f"{_method} {url.partition('?')[0].split('/')[1]}"] += 1
                    return _real(self, url, *args, **kwargs)

                patch.setattr(report.SchedulerReportClient, method, call)
            assert len(claims.place(spec)) == VMS
    finally:
        claims.release()
    return calls


@pytest.mark.parametrize("wish", [{}, {"hpc:require": "leaf"}, {"hpc:max_leaves": "1"}], ids=str)
def test_a_gang_claim_of_16_vms_is_one_call_and_costs_no_others(claims, monkeypatch, wish):
    without = calls_of(claims, monkeypatch, wish, gang_claims=False)
    with_claims = calls_of(claims, monkeypatch, wish, gang_claims=True)
    assert with_claims - without == {"post allocations": 1}
    for calls in (with_claims, without):
        assert calls["put allocations"] == calls["get allocations"] == VMS
