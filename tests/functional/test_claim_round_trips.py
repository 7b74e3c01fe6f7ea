"""What a gang claim costs in calls to Placement, beside the same request without one."""

from collections import Counter
from collections.abc import Callable, Mapping

import nova.conf
import pytest
from nova.scheduler.client import report
from oslo_utils import uuidutils

from hpc_sched.demo.nova_cloud import NovaCloud
from hpc_sched.nova_glue.room import compared_hosts
from tests.functional import nova_objects, outcomes
from tests.functional.claims import ClaimsOnly
from tests.functional.clouds import four_by_eight

CONF = nova.conf.CONF
VMS = 64


@pytest.fixture(scope="module")
def claims(start_cloud: Callable[..., NovaCloud], tmp_path_factory) -> ClaimsOnly:
    return outcomes.start(start_cloud, tmp_path_factory.mktemp("conf"), four_by_eight())


def calls_of(
    claims: ClaimsOnly, monkeypatch, wish: Mapping[str, str], *, gang_claims: bool
) -> Counter[str]:
    """Return the calls of a request for 64 VMs by their method and what they name."""
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
    CONF.set_override("gang_claims", gang_claims, "hpc_sched")
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
        CONF.clear_override("gang_claims", "hpc_sched")
        claims.release()
    return calls


@pytest.mark.parametrize("wish", [{}, {"hpc:require": "leaf"}, {"hpc:max_leaves": "1"}], ids=str)
def test_a_gang_claim_of_64_vms_is_one_call_and_costs_no_others(claims, monkeypatch, wish):
    without = calls_of(claims, monkeypatch, wish, gang_claims=False)
    with_claims = calls_of(claims, monkeypatch, wish, gang_claims=True)
    assert with_claims - without == {"post allocations": 1}
    for calls in (with_claims, without):
        assert calls["put allocations"] == calls["get allocations"] == VMS
