"""The instances of a request, read from build requests as nova-api writes them."""

from collections.abc import Callable, Iterator

import pytest
from nova import context as nova_context
from nova import objects
from oslo_utils import timeutils, uuidutils

from hpc_sched.nova_glue.io import databases
from hpc_sched.nova_glue.read.instances import request_instances
from tests.functional import build_requests
from tests.functional.cloud_kinds import EMPTY
from tests.functional.shared_clouds import cloud_mark
from tests.functional.statements import collected
from tests.functional.tested_cloud import TestedCloud

pytestmark = cloud_mark(EMPTY)


@pytest.fixture(autouse=True)
def vms(cloud: TestedCloud) -> Iterator[list[str]]:
    """Return the VMs of a request for three."""
    vms = [uuidutils.generate_uuid() for _ in range(3)]
    build_requests.add(vms, "r-1")
    yield vms
    build_requests.remove(vms)


def read(first: str, count: int) -> tuple[dict[int, str], int]:
    with collected() as sent:
        found = request_instances.read(nova_context.get_admin_context(), first, count)
    return found, len(sent)


def test_a_multi_create_takes_two_queries_and_a_single_vm_one(vms):
    assert read(vms[0], 3) == (dict(enumerate(vms)), 2)
    assert read(vms[1], 1) == ({0: vms[1]}, 1)


def test_a_vm_that_was_deleted_before_its_claim_is_missing(vms):
    build_requests.remove([vms[1]])
    assert read(vms[0], 3) == ({0: vms[0], 2: vms[2]}, 2)


def test_nothing_is_found_for_a_vm_that_moves(vms):
    assert read(uuidutils.generate_uuid(), 3) == ({}, 1)


def test_vms_of_requests_whose_id_begins_alike_are_others(vms):
    others = [uuidutils.generate_uuid() for _ in range(3)]
    build_requests.add(others, "r-12")
    assert read(vms[0], 3)[0] == dict(enumerate(vms))
    build_requests.remove(others)


def test_others_are_being_placed_where_a_younger_build_request_is_not_ones_own(vms):
    context = nova_context.get_admin_context()

    def asked(own: list[str]) -> tuple[bool, int]:
        with collected() as sent:
            found = request_instances.are_others_placed(context, own)
        return found, len(sent)

    assert asked(vms) == (False, 1)
    assert asked(vms[1:]) == (True, 1)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            databases, "oldest_build_request", lambda: timeutils.utcnow(with_timezone=True)
        )
        assert asked(vms[1:]) == (False, 1)


def test_the_requests_of_instances_are_those_of_their_build_requests(vms):
    context = nova_context.get_admin_context()
    with collected() as sent:
        found = request_instances.requests_of(context, [uuidutils.generate_uuid(), vms[1]])
        assert found == {vms[1]: "r-1"}
        assert request_instances.requests_of(context, []) == {}
    assert len(sent) == 1


def test_of_too_many_vms_for_a_query_the_last_ones_count(vms, monkeypatch):
    monkeypatch.setattr(databases, "MAX_UUIDS", 2)
    context = nova_context.get_admin_context()
    found = request_instances.requests_of(context, sorted(vms))
    assert found == dict.fromkeys(sorted(vms)[1:], "r-1")


def test_an_instance_that_cannot_be_read_is_a_request_of_its_own(monkeypatch):
    vm = uuidutils.generate_uuid()
    with monkeypatch.context() as patch:
        patch.setattr(build_requests, "instance_text", lambda *_: "{}")
        build_requests.add([vm], "r-1")
    found = request_instances.requests_of(nova_context.get_admin_context(), [vm])
    assert found == {vm: vm}
    build_requests.remove([vm])


@pytest.mark.parametrize("text", ["", "{}", "[]", '{"nova_object.data": []}'])
def test_an_instance_that_cannot_be_read_is_not_claimed(text, monkeypatch):
    vm = uuidutils.generate_uuid()
    with monkeypatch.context() as patch:
        patch.setattr(build_requests, "instance_text", lambda *_: text)
        build_requests.add([vm], "r-1")
    assert read(vm, 3) == ({}, 1)
    build_requests.remove([vm])


def in_launch_order(vms: list[str]) -> list[str]:
    with collected() as sent:
        found = request_instances.in_launch_order(nova_context.get_admin_context(), vms)
    assert len(sent) == 1
    return found


@pytest.fixture
def named() -> Iterator[Callable[..., list[str]]]:
    """Return what writes the VMs of a request and returns them."""
    made: list[str] = []

    def add(*names: str | None) -> list[str]:
        vms = [uuidutils.generate_uuid() for _ in names]
        build_requests.add(vms, f"r-{vms[0]}", names=names)
        made.extend(vms)
        return vms

    yield add
    build_requests.remove(made)


def test_single_creates_are_in_natural_order_of_their_names_then_by_uuid(named):
    [ten], [two], [first], [same], [other] = map(named, ("vm-10", "vm-2", "gpu", "vm-2b", "vm-2b"))
    expected = [first, two, *sorted((same, other)), ten]
    assert in_launch_order([ten, other, two, same, first]) == expected


def test_the_vms_of_a_request_are_by_launch_index_where_its_first_one_is(named):
    # Nova's names have the launch index, plus 1; whoever renames a VM changes no rank.
    twice, [one] = named("vm-2", "vm-9", "vm-3"), named("vm-5")
    assert in_launch_order([*reversed(twice), one]) == [*twice, one]
    # Its first VM has a place already.
    assert in_launch_order([one, twice[2], twice[1]]) == [one, twice[1], twice[2]]


def test_vms_that_cannot_be_read_are_last(vms, named, monkeypatch):
    [one], [unnamed] = named("vm-1"), named(None)
    gone = uuidutils.generate_uuid()
    assert in_launch_order([gone, one, unnamed]) == [unnamed, one, gone]
    monkeypatch.setattr(databases, "MAX_UUIDS", 2)
    assert in_launch_order([one, gone, unnamed]) == [one, gone, unnamed]


def test_a_build_request_is_as_nova_writes_it(vms):
    context = nova_context.get_admin_context()
    found = objects.BuildRequest.get_by_instance_uuid(context, vms[1])
    assert found.instance.launch_index == 1
