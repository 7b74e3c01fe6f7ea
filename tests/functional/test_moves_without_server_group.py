"""A VM that moves and has no server group any more: which VMs are its group, and what it keeps.

The fabric is that of :mod:`tests.functional.pods`; a VM fills a host.
"""

from pathlib import Path

import nova.conf
import pytest
from nova import objects
from oslo_utils.fixture import uuidsentinel as uuids

from hpc_sched.filters.group import HPCGroupFilter
from hpc_sched.nova_glue.io import loaded_topology
from hpc_sched.nova_glue.read import request_spec
from tests.functional.pods import hosts_below, names, states_of
from tests.functional.states import run, spec, wishing

CONF = nova.conf.CONF


@pytest.fixture(autouse=True)
def _fabric(two_pods: Path) -> Path:
    return two_pods


def move(extra_specs: dict[str, str], *, count: int = 2, **said: str | None) -> objects.RequestSpec:
    """Return the move of a VM that was created with others in one request."""
    request = spec(extra_specs=extra_specs, count=count, **{"group": None, **said})
    request.requested_destination = objects.Destination(cell=objects.CellMapping(uuid=uuids.cell1))
    return request


def group_of(request: objects.RequestSpec) -> request_spec.RequestedGroup | None:
    return request_spec.from_spec(request, loaded_topology.current().topology.levels)


@pytest.mark.parametrize(
    ("said", "has_group", "has_lost_group"),
    [
        ({}, False, False),
        ({"hpc:require": "leaf"}, True, True),
        ({"hpc:max_leaves": "2"}, True, True),
        ({"hpc:min_leaves": "2"}, True, True),
        ({"hpc:homogeneous": "true"}, True, True),
        ({"hpc:homogeneous": "prefer"}, False, False),
        ({"hpc:prefer": "leaf"}, True, True),
        ({"hpc:group_size": "8"}, True, True),
        ({"hpc:app_class": "sync"}, True, False),
        ({"hpc:app_class": "none", "hpc:require": "leaf"}, False, False),
        ({"hpc:app_name": "solver", "hpc:cache_score": "3"}, False, False),
    ],
    ids=lambda said: ", ".join(map("=".join, said.items())) if isinstance(said, dict) else "",
)
def test_the_vms_of_one_create_are_the_group_of_a_move_where_the_flavor_has_a_key_of_groups(
    said, has_group, has_lost_group
):
    found = group_of(move(said))
    assert (found is not None) == has_group
    if found is not None:
        assert found.has_lost_group == has_lost_group
        assert (found.group_uuid, found.policy, found.max_per_host) == (None, None, None)
    # Its reservation names no other VM.
    assert group_of(move(said, count=1)) is None


def test_hints_that_count_stay_in_the_request_when_its_server_group_is_deleted():
    hint = {"hpc:require": ["leaf"]}
    assert group_of(move({}, hints=hint)) is None
    CONF.set_override("allow_user_hints", True, "hpc_sched")
    assert group_of(move({}, hints=hint)).has_lost_group


def test_a_server_group_that_exists_is_the_group_of_a_move():
    found = group_of(move({"hpc:require": "leaf"}, group="group"))
    assert not found.has_lost_group
    assert found.group_uuid == uuids.group


def test_a_class_by_default_stays_that_of_the_group():
    CONF.set_override("default_app_class", "async", "hpc_sched")
    request = move({"hpc:prefer": "leaf"})
    assert group_of(request).hpc_specs.app_class == "async"
    assert request_spec.application_of(request)[0].app_class == "async"


def test_siblings_hold_a_vm_that_moves(group):
    group({"n01": 1}, is_move=True, queue=[uuids.instance])
    kept = run(states_of(), move(wishing(require="leaf")), HPCGroupFilter())
    assert names(kept) == hosts_below("leaf1")


def test_siblings_that_cannot_be_read_are_not_taken_for_none(group, caplog):
    group({}, is_move=True, queue=[uuids.instance], is_partial=True)
    assert run(states_of(), move(wishing(require="leaf")), HPCGroupFilter())
    assert "Ignored" not in caplog.text


@pytest.mark.parametrize(
    ("members", "constraints", "ignored"),
    [
        ({}, {"min_leaves": 2}, "hpc:min_leaves: the VM belongs to no group"),
        ({"n01": 1}, {"require": "rack"}, "hpc:require='rack': expected one of"),
    ],
    ids=["no sibling is left", "its guarantee is invalid"],
)
def test_a_vm_that_may_never_have_been_in_a_group_moves_alone_with_one_warning(
    group, caplog, members, constraints, ignored
):
    group(members, is_move=True, queue=[uuids.instance])
    states = states_of()
    assert run(states, move(wishing(**constraints)), HPCGroupFilter()) == states
    [text] = [one.getMessage() for one in caplog.records if one.levelname == "WARNING"]
    assert text.startswith(f"Ignored for instance {uuids.instance}: ")
    assert ignored in text


def test_a_new_request_with_the_same_flavor_is_refused_as_before(group):
    group()
    request = spec(group=None, count=2, extra_specs=wishing(require="leaf"))
    assert group_of(request) is None
