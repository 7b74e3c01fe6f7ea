"""Requests of one group take turns."""

import threading

import nova.conf
import pytest

from hpc_sched import conf
from hpc_sched.nova_glue.claim.gang_claim import ClaimedPlace, GangClaim
from hpc_sched.nova_glue.instances.group_members import GroupMembership
from hpc_sched.nova_glue.io import circuit_breaker
from hpc_sched.nova_glue.io.allocations import Owner
from hpc_sched.nova_glue.request import group_turns

CONF = nova.conf.CONF


@pytest.fixture(autouse=True)
def options() -> None:
    conf.register_opts(CONF)


def test_a_second_request_of_a_group_waits_for_the_first_and_others_do_not():
    entered, order = threading.Event(), []

    def second() -> None:
        entered.set()
        with group_turns.turn("group") as turn:
            order.append(("second", turn.has_waited))

    with group_turns.turn("group") as turn:
        assert not turn.has_waited
        thread = threading.Thread(target=second)
        thread.start()
        assert entered.wait(10)
        with group_turns.turn("another") as other, group_turns.turn(None) as implicit:
            assert not other.has_waited
            assert not implicit.has_waited
        order.append(("first", False))
    thread.join(10)
    assert order == [("first", False), ("second", True)]


def test_a_request_waits_no_longer_than_its_deadline_and_goes_on():
    deadline = circuit_breaker.RequestDeadline(waited=2 * CONF.hpc_sched.cell_timeout - 0.1)
    with group_turns.turn("group"), circuit_breaker.active(deadline):
        with group_turns.turn("group") as turn:
            assert turn.has_waited
        assert circuit_breaker.remaining() <= 0


def test_a_turn_that_was_not_got_is_not_given_back():
    deadline = circuit_breaker.RequestDeadline(waited=2 * CONF.hpc_sched.cell_timeout)
    with group_turns.turn("group") as held:
        with circuit_breaker.active(deadline), group_turns.turn("group"):
            pass
        assert held.lock.locked()


def test_nothing_is_kept_of_a_group_without_requests():
    with group_turns.turn("group"):
        assert "group" in group_turns._turns
    assert "group" not in group_turns._turns


def test_claims_are_known_until_they_are_released():
    gang = GangClaim(Owner("project", "user"), 1.0)
    gang.places["vm"] = ClaimedPlace(0, {"allocations": {}})
    with group_turns.turn("group") as turn:
        turn.add_claim(gang, [("vm", ("host", "node"))])
        turn.add_looked_up(GroupMembership({}, ("other",), 1, False))
        assert turn.claimed == {"vm": ("host", "node")}
        assert turn.known == {"vm": ("host", "node"), "other": None}
        del gang.places["vm"]
        assert turn.claimed == {}


def test_a_vm_without_a_place_is_looked_up_again_after_a_while(monkeypatch):
    with group_turns.turn("group") as turn:
        turn.add_looked_up(GroupMembership({}, ("other",), 1, False))
        monkeypatch.setattr(group_turns, "UNPLACED_FOR", -1.0)
        assert turn.known == {}
