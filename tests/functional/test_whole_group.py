"""Requests that hold all VMs of their group, while the API database does not answer."""

from collections import Counter

import pytest
from nova import objects

from hpc_sched.nova_glue.claim.group_turns import GroupTurn
from hpc_sched.nova_glue.claim.transaction.gang_claim import GangClaim
from hpc_sched.nova_glue.claim.transaction.ledger import Holding
from hpc_sched.nova_glue.io.allocations import Owner
from hpc_sched.nova_glue.read import request_spec
from hpc_sched.nova_glue.read.instances import group_members, member_records, request_instances
from hpc_sched.nova_glue.read.instances.group_members import GroupMembership
from hpc_sched.nova_glue.read.instances.in_flight_instances import LookupResult
from hpc_sched.nova_glue.read.instances.member_records import ApiMember, CellMember
from hpc_sched.nova_glue.read.room.allocation_candidates import ClaimedPlace
from tests.functional.states import States, host_state, spec

pytestmark = pytest.mark.usefixtures("two_pods")

OWN, A, B, OTHER = "own", "a", "b", "other"


@pytest.fixture(autouse=True)
def cells_read(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Let the API database not answer; return what reads of all cells looked for."""
    found: list[str] = []

    def fail(*_: object) -> None:
        raise OSError("no route to host")

    def in_known_cells(_context: object, uuids: list[str], _own: str | None) -> object:
        found.extend(uuids)
        return member_records.databases.CellAnswers([CellMember("c", "n05", "n05", False)])

    monkeypatch.setattr(member_records, "api_members", fail)
    monkeypatch.setattr(member_records, "in_known_cells", in_known_cells)
    return found


def asked(
    members: list[str],
    count: int,
    destination: objects.Destination | None = None,
    group: str | None = "group",
) -> request_spec.RequestedGroup:
    """Return a request for some VMs, with the members of its group by its RequestSpec."""
    flavor = {} if group else {"hpc:app_class": "sync"}
    made = spec(count=count, uuid=OWN, group=group, extra_specs=flavor)
    if group:
        made.instance_group.members = members
    made.requested_destination = destination
    found = request_spec.from_spec(made, ["leaf"])
    assert found is not None
    return found


def read(request: request_spec.RequestedGroup, states: States | tuple[()] = ()) -> GroupMembership:
    return group_members.read(request, states, lambda *_: LookupResult({}))


@pytest.mark.parametrize(
    ("members", "queue"),
    [
        pytest.param([OWN], (OWN,), id="a single VM"),
        pytest.param([OWN, B, A], (OWN, B, A), id="in the order of the members"),
        pytest.param([B, OWN, A], (OWN, B, A), id="the VM that is placed first is the first"),
    ],
)
def test_members_that_are_the_vms_of_the_request_are_all_members(members, queue, cells_read):
    found = read(asked(members, count=len(members)))
    assert found.queue == queue
    assert found.left == len(members)
    assert not found.members
    assert not found.is_partial
    assert "no route to host" in found.problems[0]
    assert cells_read == []


@pytest.mark.parametrize(
    ("members", "count"),
    [
        pytest.param([OWN, A, OTHER], 2, id="others"),
        pytest.param([OWN, A], 1, id="one of two"),
        pytest.param([OWN], 2, id="some are missing"),
        pytest.param([A, B], 2, id="those of another request"),
        pytest.param([], 2, id="no members"),
    ],
)
def test_other_members_prove_nothing(members, count, cells_read):
    found = read(asked(members, count))
    assert found.is_partial
    assert set(cells_read) == {OWN, *members}


def test_a_move_proves_nothing():
    destination = objects.Destination(cell=objects.CellMapping(uuid="cell"))
    assert read(asked([OWN, A], 2, destination)).is_partial


@pytest.mark.parametrize("uuid", [OWN, A])
def test_a_vm_that_has_a_host_already_proves_nothing(uuid):
    state = host_state("n01")
    state.instances = {uuid: objects.Instance(uuid=uuid)}
    assert read(asked([OWN, A], 2), [state]).is_partial


def test_a_member_that_was_read_before_proves_that_there_are_others(monkeypatch):
    request = asked([OWN, A], 2)
    with monkeypatch.context() as patch:
        rows = [ApiMember(uuid, None, number) for number, uuid in enumerate((OWN, A, OTHER))]
        patch.setattr(member_records, "api_members", lambda *_: rows)
        patch.setattr(request_instances, "in_launch_order", lambda _, uuids: uuids)
        found = read(request)
    assert not found.is_partial
    assert read(request.knowing(found.uuids)).is_partial


def test_an_implicit_group_has_the_vms_of_its_request_alone():
    found = read(asked([], 3, group=None))
    assert found.queue == (OWN,)
    assert found.awaiting == found.left == 3
    assert not found.is_partial


def test_what_this_process_has_claimed_for_others_of_the_group_counts():
    states = [host_state("n01"), host_state("n02")]
    turn, gang = GroupTurn(), GangClaim(Owner("project", "user"))
    for uuid, position in ((A, 0), (OTHER, 1)):
        gang.ledger.held[uuid] = Holding(ClaimedPlace(position, {"allocations": {}}), 1)
    turn.add_claim(gang, [A, OTHER], states)
    found = turn.with_claims(read(asked([OWN, A], 2)))
    assert found.in_flight == {OTHER: ("n02", "n02")}
    assert found.members == Counter({("n02", "n02"): 1})
