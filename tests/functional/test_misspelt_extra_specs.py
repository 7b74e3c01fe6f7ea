"""Unknown hpc: keys that nova-api let pass, on a real Nova: refused or ignored by the scheduler.

::

            core
          /      \\
      leaf1      leaf2
      n1 n2      n3 n4
"""

from collections.abc import Callable

import pytest

from hpc_sched.demo.nova_cloud import NovaCloud

LEAVES = {"leaf1": ["n1", "n2"], "leaf2": ["n3", "n4"]}
HOSTS = ["n1", "n2", "n3", "n4"]
# What openstackclient sends when it sets extra specs: nova-api then validates nothing.
OPENSTACKCLIENT = "2.61"


@pytest.fixture(scope="module")
def cloud(start_cloud: Callable[..., NovaCloud]) -> NovaCloud:
    cloud = start_cloud(LEAVES, {("hpc_sched", "allow_user_hints"): True})
    cloud.start_computes(HOSTS)
    for name, extra_specs in {
        "typo": {"hpc:requires": "leaf", "hpc:bogus": "1"},
        "bogus": {"hpc:bogus": "1"},
        "none": {"hpc:app_class": "none", "hpc:requires": "leaf"},
        "plain": {},
    }.items():
        cloud.flavor(name, vcpus=8)
        if extra_specs:
            latest, cloud.api.microversion = cloud.api.microversion, OPENSTACKCLIENT
            cloud.api.post_extra_spec(name, {"extra_specs": extra_specs})
            cloud.api.microversion = latest
    return cloud


@pytest.fixture
def warnings(caplog: pytest.LogCaptureFixture) -> Callable[[], list[str]]:
    def found() -> list[str]:
        return [
            record.getMessage().split(": ", 1)[1]
            for record in caplog.records
            if record.levelname == "WARNING" and record.getMessage().startswith("Ignored for ")
        ]

    return found


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
    cloud.flags(allow_user_hints=True, group="hpc_sched")


@pytest.mark.parametrize(("count", "grouped"), [(2, True), (1, True), (2, False), (1, False)])
def test_another_unknown_key_is_one_warning_a_request(cloud, boot, warnings, count, grouped):
    group = cloud.server_group("bogus", "soft-anti-affinity") if grouped else None
    assert len(cloud.hosts_of(boot("bogus", count=count, group=group))) == count
    [text] = warnings()
    assert text.startswith("unknown extra spec hpc:bogus; expected one of hpc:app_class, ")


def test_class_none_is_not_refused(cloud, boot, warnings):
    assert len(cloud.hosts_of(boot("none", count=2))) == 2
    assert warnings() == ["unknown extra spec hpc:requires; did you mean hpc:require?"]


@pytest.mark.parametrize("grouped", [True, False], ids=["of a group", "alone"])
def test_a_vm_that_moves_is_not_refused(cloud, boot, warnings, grouped):
    group = cloud.server_group("moves", "soft-anti-affinity") if grouped else None
    # Created past the filters, as before an upgrade.
    [server] = boot("typo", host="n1", group=group)
    assert set(cloud.hosts_of([server]).values()) == {"n1"}
    assert warnings() == []
    cloud._migrate_server({"id": server})
    shown = cloud._wait_for_state_change(cloud.api.get_server(server), "VERIFY_RESIZE")
    assert shown["OS-EXT-SRV-ATTR:host"] != "n1"
    [text] = warnings()
    assert "did you mean hpc:require?" in text
    assert "hpc:bogus" in text
