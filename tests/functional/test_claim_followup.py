"""How the end of a request with gang claims is noticed."""

import pytest
from oslo_utils import uuidutils

from hpc_sched.nova_glue.claim.gang_claim import ClaimedPlace, GangClaim
from hpc_sched.nova_glue.io import allocations
from hpc_sched.nova_glue.io.allocations import Answer, Owner, Written
from hpc_sched.nova_glue.request import claim_followup, served_requests
from tests.functional.pods import states_of
from tests.functional.states import spec


@pytest.mark.usefixtures("two_pods")
def test_the_next_request_of_a_thread_ends_the_one_before_that_something_still_refers_to(
    group, monkeypatch
):
    """Nova's logging, for instance, may keep the traceback of an exception."""
    written: list[str] = []

    def write(_owner, consumers):
        written.extend(one.uuid for one in consumers if not one.allocations)
        return Written(Answer.DONE)

    monkeypatch.setattr(allocations, "write", write)
    group()
    kept = spec(uuid=uuidutils.generate_uuid())
    state = served_requests.get_state(kept, states_of())
    state.gang = GangClaim(Owner("project", "user"), 1.0)
    claim_followup.follow(state.gang, state, kept)
    claimed = {"provider": {"resources": {"VCPU": 16}}}
    state.gang.claim({kept.instance_uuid: ClaimedPlace(0, {"allocations": claimed})})
    state.gang.is_complete = True
    claim_followup.look()
    assert written == []
    another = spec(uuid=uuidutils.generate_uuid())
    served_requests.get_state(another, states_of())
    claim_followup.look()
    assert written == [kept.instance_uuid]
    assert claim_followup._followed == []
