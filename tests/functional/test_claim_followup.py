"""How the end of a request with gang claims is noticed."""

import subprocess
import sys
import threading

import pytest
from oslo_utils import uuidutils

from hpc_sched.nova_glue.claim.gang_claim import ClaimedPlace, GangClaim
from hpc_sched.nova_glue.io import allocations
from hpc_sched.nova_glue.io.allocations import Answer, Owner, Written
from hpc_sched.nova_glue.request import claim_followup, served_requests
from tests.functional.clouds import ROOT
from tests.functional.pods import states_of
from tests.functional.states import spec

TIMEOUT = 120  # seconds

# A garbage collection at every allocation, with garbage that needs the lock of all threads' states.
COLLECTING = """
import gc, threading
from hpc_sched.nova_glue.request import claim_followup

class Garbage:
    def __init__(self):
        self.cycle = self
        self.own = threading.local()
        self.own.value = 1

gc.set_threshold(1)
for _ in range(1000):
    Garbage()
    claim_followup._frame_of(threading.get_ident())
"""


def test_looking_at_a_thread_cannot_deadlock_the_process():
    """Python before 3.12 does so without precaution: CPython issue 106883."""
    subprocess.run([sys.executable, "-c", COLLECTING], cwd=ROOT, timeout=TIMEOUT, check=True)


def look_from_another_thread() -> None:
    """On eventlet a greenlet cannot see what itself executes."""
    thread = threading.Thread(target=claim_followup.look)
    thread.start()
    thread.join()


@pytest.mark.usefixtures("two_pods")
def test_the_next_request_of_a_thread_ends_the_one_before_that_something_still_refers_to(
    group, monkeypatch
):
    """The thread never left the scheduler, and a traceback keeps the RequestSpec."""
    written: list[str] = []

    def write(_owner, consumers):
        written.extend(one.uuid for one in consumers if not one.allocations)
        return Written(Answer.DONE)

    monkeypatch.setattr(allocations, "write", write)
    # This test is the scheduler.
    monkeypatch.setattr(claim_followup, "_SCHEDULER", __name__)
    group()
    kept = spec(uuid=uuidutils.generate_uuid())
    state = served_requests.get_state(kept, states_of())
    state.gang = GangClaim(Owner("project", "user"), 1.0)
    claim_followup.follow(state.gang, state, kept)
    claimed = {"provider": {"resources": {"VCPU": 16}}}
    state.gang.claim({kept.instance_uuid: ClaimedPlace(0, {"allocations": claimed})})
    state.gang.is_complete = True
    for _ in range(2 * claim_followup.ABSENCES):
        look_from_another_thread()
    assert written == []
    another = spec(uuid=uuidutils.generate_uuid())
    served_requests.get_state(another, states_of())
    look_from_another_thread()
    assert written == [kept.instance_uuid]
    assert claim_followup._followed == []
