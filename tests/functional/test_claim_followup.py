"""How the end of a request with gang claims is noticed."""

import gc

import pytest
from nova import objects
from oslo_utils import uuidutils

from hpc_sched.nova_glue import served_requests
from hpc_sched.nova_glue.claim import claim_followup
from hpc_sched.nova_glue.io import allocations
from hpc_sched.nova_glue.io.allocations import Answer, Owner, Written
from hpc_sched.nova_glue.phases import ServedGroup
from hpc_sched.nova_glue.read.room.allocation_candidates import ClaimedPlace
from tests.functional.pods import states_of
from tests.functional.states import served, spec

pytestmark = pytest.mark.usefixtures("two_pods")


@pytest.fixture
def released(group, monkeypatch) -> list[str]:
    """Collect the VMs whose claims are released; Placement accepts what it is sent."""
    written: list[str] = []

    def write(_owner, consumers):
        written.extend(one.uuid for one in consumers if not one.allocations)
        return Written(Answer.DONE)

    monkeypatch.setattr(allocations, "write", write)
    # Nothing else looks meanwhile.
    monkeypatch.setattr(claim_followup._thread, "wake", lambda: True)
    monkeypatch.setattr(claim_followup._thread, "start", lambda: None)
    group()
    return written


def claimed(request: objects.RequestSpec) -> ServedGroup:
    """Claim the VM of a request ahead of Nova, and follow that."""
    state = served(request, states_of())
    gang = state.claims.begin(Owner("project", "user"), 1.0, frozenset())
    claim_followup.follow(state.claims, gang, request)
    amounts = {"provider": {"resources": {"VCPU": 16}}}
    gang.claim({request.instance_uuid: ClaimedPlace(0, {"allocations": amounts})})
    state.claims.is_complete = True
    return state


def test_the_next_request_of_a_thread_ends_the_one_before_that_something_still_refers_to(released):
    kept = spec(uuid=uuidutils.generate_uuid())
    claimed(kept)
    claim_followup.look()
    assert released == []
    another = spec(uuid=uuidutils.generate_uuid())
    served(another, states_of())
    claim_followup.look()
    assert released == [kept.instance_uuid]
    assert claim_followup._followed == []


def test_a_request_that_only_the_traceback_of_its_exception_refers_to_is_over(
    released, turned_clock
):
    def fail() -> str:
        request = spec(uuid=uuidutils.generate_uuid())
        claimed(request)
        try:
            raise RuntimeError
        except RuntimeError as error:
            # A cycle: its traceback refers to this frame.
            kept = error
        return request.instance_uuid if kept else ""

    gc.disable()
    try:
        uuid = fail()
        turned_clock.turn(claim_followup.YOUNG_AFTER - 0.1)
        claim_followup.look()
        assert released == []
        turned_clock.turn(0.2)
        claim_followup.look()
    finally:
        gc.enable()
    assert released == [uuid]


def test_all_objects_are_searched_seldom_however_many_requests_wait(
    released, monkeypatch, turned_clock
):
    searched: list[int] = []
    monkeypatch.setattr(claim_followup.gc, "collect", lambda number=2: searched.append(number))
    monkeypatch.setattr(claim_followup, "_all_at", -claim_followup.ALL_EVERY)
    specs = [spec(uuid=uuidutils.generate_uuid()) for _ in range(3)]
    for request in specs:
        claimed(request).claims.is_over = False
        served_requests._served.session = lambda: None
    turned_clock.turn(claim_followup.ALL_AFTER)
    for _ in range(3):
        claim_followup.look()
    assert searched == [2, 1, 1]
    # Again after four times as long, and not within some seconds of the last.
    turned_clock.turn(4 * claim_followup.ALL_AFTER - claim_followup.ALL_AFTER)
    claim_followup.look()
    turned_clock.turn(claim_followup.ALL_EVERY)
    claim_followup.look()
    assert searched == [2, 1, 1, 1, 2]
    for one in claim_followup._followed:
        one.claims.is_over = True
    claim_followup.look()
    assert len(released) == len(specs)
