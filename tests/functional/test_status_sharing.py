"""The check of hpc-sched-status on VMs that share hosts, with the databases of a real Nova."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from oslo_upgradecheck.upgradecheck import Code
from oslo_utils.fixture import uuidsentinel as uuids

from hpc_sched.status import upgrade_check
from hpc_sched.status.checks import sharing
from hpc_sched.status.inspected_cloud import InspectedCloud
from tests.functional import faults, rows
from tests.functional.cloud_kinds import STATUS
from tests.functional.clouds import sharing_options
from tests.functional.shared_clouds import cloud_mark
from tests.functional.states import wishing
from tests.functional.tested_cloud import TestedCloud

EXTREME = wishing(app_class="extreme")

pytestmark = cloud_mark(STATUS)


@pytest.fixture
def cloud(shared_cloud: TestedCloud, tmp_path: Path) -> Iterator[TestedCloud]:
    """Return a cloud without VMs whose nova.conf lets applications share hosts."""
    index = tmp_path / "index.csv"
    index.write_text("application,neighbour,performance,neighbour_performance\nLU,FT,0.5,0.9\n")
    options = sharing_options(tmp_path, interference_file=str(index))
    for (section, name), value in options.items():
        shared_cloud.flags(**{name: value}, group=section)
    faults.forget()
    yield shared_cloud
    rows.clear(shared_cloud)


@pytest.fixture
def strict(cloud: TestedCloud) -> Iterator[str]:
    """Return a host in an aggregate with a limit of its own."""
    number = cloud.api.post_aggregate({"aggregate": {"name": "strict"}})["id"]
    cloud.api.add_host_to_aggregate(number, "n1")
    metadata = {"metadata": {"cache_score_limit": "80"}}
    cloud.api.post_aggregate_action(number, {"set_metadata": metadata})
    yield "n1"
    cloud.api.remove_host_from_aggregate(number, "n1")
    cloud.api.delete_aggregate(number)


def found(_cloud: TestedCloud) -> tuple[Code, str]:
    result = upgrade_check.judge(sharing.check, InspectedCloud())
    return Code(result.code), result.details or ""


def test_vms_that_may_share_pass(cloud):
    rows.add_vms(cloud, ["n1", "n1"], group=uuids.group, extra_specs=EXTREME)
    rows.add_vms(cloud, ["n2", "n2"], extra_specs=wishing(app_class="sync", cache_score=30))
    assert found(cloud) == (Code.SUCCESS, "No rule is broken by the VMs on 2 hosts.")


def test_a_vm_of_others_on_a_dedicated_host_is_a_failure_that_names_host_and_vms(cloud):
    [own] = rows.add_vms(cloud, ["n1"], group=uuids.group, extra_specs=EXTREME)
    [other] = rows.add_vms(cloud, ["n1"])
    code, text = found(cloud)
    assert code == Code.FAILURE
    assert "Rule dedicated host is broken on 1 host." in text
    assert "n1: class extreme with VMs of others" in text
    assert own in text
    assert other in text


def test_scores_above_a_limit_are_a_warning(cloud):
    rows.add_vms(cloud, ["n1", "n1"], extra_specs=wishing(app_class="async", cache_score=45))
    rows.add_vms(cloud, ["n2", "n2"], extra_specs=wishing(app_class="sync", cache_score=45))
    code, text = found(cloud)
    assert code == Code.WARNING
    assert "Rule cache scores is broken on 1 host" in text
    assert "n2: 90 of at most 60 with class sync" in text


def test_an_aggregate_has_a_limit_of_its_own(cloud, strict):
    rows.add_vms(cloud, [strict] * 2, extra_specs=wishing(app_class="async", cache_score=45))
    assert f"{strict}: 90 of at most 80" in found(cloud)[1]


def test_applications_that_the_index_keeps_apart_are_a_warning(cloud):
    for name in ("LU", "FT"):
        rows.add_vms(cloud, ["n3"], extra_specs=wishing(app_class="async", app_name=name))
    code, text = found(cloud)
    assert code == Code.WARNING
    assert "n3: applications that the index keeps apart" in text


def test_what_cannot_be_read_is_a_warning(cloud):
    [vm] = rows.add_vms(cloud, ["n1"])
    rows.write_over(cloud, vm, flavor="{")
    code, text = found(cloud)
    assert code == Code.WARNING
    assert "The application of 1 VM could not be read." in text
    assert f"the flavor of instance {vm}" in text


def test_a_wrong_index_is_a_failure(cloud, tmp_path: Path):
    rows.add_vms(cloud, ["n1", "n1"], extra_specs=wishing(app_class="async", app_name="LU"))
    missing = tmp_path / "none.csv"
    cloud.flags(interference_file=str(missing), group="hpc_sched")
    code, text = found(cloud)
    assert code == Code.FAILURE
    assert str(missing) in text
