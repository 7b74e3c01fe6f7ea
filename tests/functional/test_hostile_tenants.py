"""A tenant who means harm, on a real Nova: what its requests get to read, and what they break.

The fabric is that of :mod:`tests.functional.test_tenant_texts`: whatever has a name is Secret.
"""

import json
import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from nova.tests.functional.api import client

from hpc_sched.core import group_request
from hpc_sched.nova_glue.read.instances import group_members, member_records
from tests.functional.shared_clouds import CloudKind, cloud_mark
from tests.functional.states import ours, read_decisions, wishing
from tests.functional.test_tenant_texts import LEAVES, SECRET, TREE
from tests.functional.tested_cloud import TestedCloud

#: The fabric of :mod:`tests.functional.test_tenant_texts`, where hints are minded
SECRET_FABRIC = CloudKind(
    "secret fabric", TREE, options=lambda _: {("hpc_sched", "allow_user_hints"): True}
)

pytestmark = cloud_mark(SECRET_FABRIC)


@pytest.fixture
def cloud(shared_cloud: TestedCloud) -> TestedCloud:
    shared_cloud.flavor("rank", vcpus=15)
    shared_cloud.flavor("half", vcpus=8)
    shared_cloud.flavor("pod", vcpus=15, extra_specs=wishing(require="pod"))
    shared_cloud.flavor("alike", vcpus=15, extra_specs=wishing(homogeneous="true"))
    return shared_cloud


@pytest.fixture(autouse=True)
def decisions(cloud: TestedCloud, tmp_path: Path) -> Path:
    """Return the path of the decision log."""
    path = tmp_path / "decisions"
    cloud.flags(decision_log=str(path), group="hpc_sched")
    return path


@pytest.fixture
def tenant(cloud: TestedCloud) -> client.TestOpenStackClient:
    """Return a client of the servers' own project without the role of an administrator."""
    api = client.TestOpenStackClient(
        "tenant", cloud.api.base_url, cloud.api.project_id, roles=["reader", "member"]
    )
    api.microversion = "latest"
    return api


@pytest.fixture
def told(
    cloud: TestedCloud, tenant: client.TestOpenStackClient, boot: Callable[..., list[str]]
) -> Callable[..., str]:
    """Boot servers that fail; return the fault, once nothing the tenant can read has a name."""

    def told_(flavor: str, **asked: Any) -> str:
        servers = boot(flavor, **asked)
        cloud.wait(servers)
        seen = [tenant.get_server(server) for server in servers]
        assert {server["status"] for server in seen} == {"ERROR"}
        everything = json.dumps(seen)
        for server in servers:
            actions = tenant.get_instance_actions(server)
            requests = {found["request_id"] for found in actions}
            everything += json.dumps(actions) + json.dumps(
                [
                    tenant.api_get(f"/servers/{server}/os-instance-actions/{found}").body
                    for found in sorted(requests)
                ]
            )
        # The tenant's own words come back to it in the hints of the server.
        assert SECRET.lower() not in everything.lower()
        [message] = {server["fault"]["message"] for server in seen}
        assert message.isprintable(), repr(message)
        assert len(message) <= 255
        return message

    return told_


def test_the_fault_of_a_group_that_does_not_fit_has_counts_and_levels(cloud, told, decisions):
    group = cloud.server_group("nine", "soft-anti-affinity")
    message = told("pod", count=9, group=group)
    assert "group of 9 needs one pod: largest gang that fits under one pod: 8" in message
    [record] = read_decisions(decisions)
    assert SECRET in record["reason"]


HINTS = {
    "line breaks and escapes": {"hpc:require": "x\n2026 ERROR root [-] forged\r\x1b[2J\u2028"},
    "a text of 50,000 letters": {"hpc:require": "x" * 50_000},
    "a list of 10,000": {"hpc:max_leaves": ["1"] * 10_000},
    "an exponent": {"hpc:cache_score": 1e308},
    "a negative number": {"hpc:max_leaves": -1},
    "a number of 4,000 digits": {"hpc:max_leaves": 10**4000},
    "4,000 digits": {"hpc:group_size": "9" * 4000},
    "digits of another script": {"hpc:group_size": "٣"},
    "a format": {"hpc:app_class": "%s{0}%(password)s"},
}


@pytest.mark.parametrize("what", HINTS)
def test_a_hostile_hint_ends_in_a_short_fault_on_one_line(
    cloud, told, decisions, caplog, what: str
):
    caplog.set_level(logging.INFO)
    message = told("rank", count=2, hints=HINTS[what])
    assert next(iter(HINTS[what])) in message
    [record] = read_decisions(decisions)
    assert decisions.read_bytes().count(b"\n") == 1
    assert len(record["reason"]) < 400
    for text in ours(caplog):
        assert text.isprintable(), repr(text)
        assert len(text) < 600
    assert not [
        found for found in caplog.records if found.name.startswith("hpc") and found.exc_info
    ]


@pytest.mark.parametrize(
    "hints",
    [
        {"hpc:require": {"leaf": {"deep": ["x"]}}},
        {"hpc:require": [["leaf"]]},
        {"hpc:require": "x" * 200_000},
    ],
    ids=["a dictionary", "a list in a list", "200,000 letters"],
)
def test_what_nova_itself_refuses_never_comes_to_us(cloud, tenant, caplog, hints):
    server = {"name": "vm", "imageRef": "155d900f-4e14-4e4c-a73d-069cbf4541e6"}
    server |= {"flavorRef": "rank", "networks": "none"}
    with pytest.raises(client.OpenStackApiException) as refused:
        tenant.post_server({"server": server, "os:scheduler_hints": hints})
    assert refused.value.response.status_code in (400, 413, 500)
    assert not ours(caplog)


def test_a_rule_beyond_all_numbers_is_planned_as_no_bound(cloud, boot, caplog):
    group = cloud.server_group("rule", "anti-affinity", rules={"max_server_per_host": 10**30})
    hosts = cloud.hosts_of(boot("half", count=8, group=group)).values()
    # Two a host, and all under one leaf: it was planned.
    assert len(hosts) == 8
    assert len([leaf for leaf, below in LEAVES.items() if set(hosts) & set(below)]) == 1
    assert not [
        found for found in caplog.records if found.name.startswith("hpc") and found.exc_info
    ]


def broken(*_: Any, **__: Any) -> None:
    raise RuntimeError("SecretH01: nova:SecretPassword@SecretDb\nSecretLeaf1")


def test_an_error_of_our_own_refuses_a_guarantee_and_says_nothing(cloud, told, monkeypatch, caplog):
    group = cloud.server_group("broken", "soft-anti-affinity")
    monkeypatch.setattr(group_request, "solve_sizes", broken)
    message = told("pod", count=2, group=group)
    assert message == "No valid host was found. There are not enough hosts available."
    assert [found for found in caplog.records if found.name.startswith("hpc") and found.exc_info]


@pytest.fixture
def with_member(cloud: TestedCloud, boot: Callable[..., list[str]]) -> str:
    """Return a group of one running VM."""
    group = cloud.server_group("member", "soft-anti-affinity")
    assert cloud.hosts_of(boot("half", group=group))
    return group


@pytest.mark.parametrize("part", ["api_members", "cell_members"])
@pytest.mark.parametrize("flavor", ["pod", "alike"])
def test_members_that_cannot_be_read_are_told_without_the_reason(
    cloud, told, with_member, monkeypatch, caplog, part: str, flavor: str
):
    monkeypatch.setattr(member_records, part, broken)
    # Nobody remembers the member either.
    monkeypatch.setattr(group_members, "members_on", lambda *_: group_members.Counter())
    message = told(flavor, group=with_member)
    assert "where the members of the group are is not known at the moment" in message
    assert "SecretPassword" in caplog.text


def test_vms_that_placement_does_not_tell_of_are_told_without_the_reason(
    cloud, told, with_member, monkeypatch
):
    found = group_members.in_flight_instances.LookupResult(
        {}, problem="Placement: SecretUrl: SecretToken"
    )
    monkeypatch.setattr(group_members.in_flight_instances, "places_of", lambda *_: found)
    one = member_records.CellMember("uuid", None, None, building=True)
    answers = group_members.databases.CellAnswers(rows=[one])
    monkeypatch.setattr(member_records, "cell_members", lambda *_: answers)
    message = told("pod", group=with_member)
    assert "where the members of the group are is not known at the moment" in message


def test_after_all_that_groups_are_placed_as_before(cloud, boot):
    group = cloud.server_group("good", "anti-affinity")
    hosts = cloud.hosts_of(boot("rank", count=4, group=group)).values()
    assert [set(hosts)] == [set(below) for below in LEAVES.values() if set(hosts) & set(below)]
