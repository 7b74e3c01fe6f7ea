"""Unknown hpc: keys that nova-api let pass, refused or ignored by the scheduler."""

import pytest

from tests.functional.cloud_kinds import FOUR_BY_EIGHT
from tests.functional.shared_clouds import cloud_mark
from tests.functional.tested_cloud import TestedCloud

pytestmark = cloud_mark(FOUR_BY_EIGHT)

# What openstackclient sends when it sets extra specs: nova-api then validates nothing.
OPENSTACKCLIENT = "2.61"


@pytest.fixture
def cloud(shared_cloud: TestedCloud) -> TestedCloud:
    shared_cloud.flags(allow_user_hints=True, group="hpc_sched")
    latest, shared_cloud.api.microversion = shared_cloud.api.microversion, OPENSTACKCLIENT
    for name, extra_specs in {
        "typo": {"hpc:requires": "leaf", "hpc:bogus": "1"},
        "bogus": {"hpc:bogus": "1"},
        "none": {"hpc:app_class": "none", "hpc:requires": "leaf"},
        "plain": {},
    }.items():
        shared_cloud.flavor(name, vcpus=8, extra_specs=extra_specs)
    shared_cloud.api.microversion = latest
    return shared_cloud


@pytest.mark.parametrize(("count", "grouped"), [(2, True), (2, False), (1, False)])
def test_a_misspelt_constraint_is_refused_with_the_key_that_may_be_meant(
    cloud, boot, count, grouped
):
    group = cloud.server_group("misspelt", "soft-anti-affinity") if grouped else None
    servers = boot("typo", count=count, group=group)
    assert {server["status"] for server in cloud.wait(servers).values()} == {"ERROR"}
    for server in servers:
        # Before Nova 34 the list of servers has no faults.
        assert cloud.api.get_server(server)["fault"]["message"] == (
            "No valid host was found. unknown extra spec hpc:requires; did you mean hpc:require?"
        )
        assert cloud.placement.get(f"/allocations/{server}").body["allocations"] == {}


def test_a_misspelt_hint_is_refused_as_well_where_hints_count(cloud, boot):
    group = cloud.server_group("hinted", "soft-anti-affinity")
    [server] = boot("plain", group=group, hints={"hpc:max_leafs": "1"})
    cloud.wait([server])
    assert cloud.api.get_server(server)["fault"]["message"].endswith(
        "unknown scheduler hint hpc:max_leafs; did you mean hpc:max_leaves?"
    )
    cloud.flags(allow_user_hints=False, group="hpc_sched")
    placed = boot("plain", group=group, hints={"hpc:max_leafs": "1"})
    assert len(cloud.hosts_of(placed)) == 1


@pytest.mark.parametrize(("count", "grouped"), [(2, True), (1, True), (2, False), (1, False)])
def test_another_unknown_key_is_one_warning_a_request(cloud, boot, warnings, count, grouped):
    group = cloud.server_group("bogus", "soft-anti-affinity") if grouped else None
    assert len(cloud.hosts_of(boot("bogus", count=count, group=group))) == count
    [text] = warnings()
    assert text.startswith("unknown extra spec hpc:bogus; expected hpc: and one of app_class, ")


def test_class_none_is_not_refused(cloud, boot, warnings):
    assert len(cloud.hosts_of(boot("none", count=2))) == 2
    assert warnings() == ["unknown extra spec hpc:requires; did you mean hpc:require?"]
