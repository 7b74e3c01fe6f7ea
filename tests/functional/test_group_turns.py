"""Requests of one group take turns, and share what they look up."""

import threading
from collections.abc import Iterator
from types import SimpleNamespace

import nova.conf
import pytest

from hpc_sched import conf
from hpc_sched.nova_glue.claim import group_turns
from hpc_sched.nova_glue.claim.group_turns import GroupTurn
from hpc_sched.nova_glue.claim.transaction.gang_claim import GangClaim
from hpc_sched.nova_glue.claim.transaction.ledger import Holding
from hpc_sched.nova_glue.io import request_deadline
from hpc_sched.nova_glue.io.allocations import Owner
from hpc_sched.nova_glue.read.instances import in_flight_instances
from hpc_sched.nova_glue.read.instances.in_flight_instances import LookupResult
from hpc_sched.nova_glue.read.room.allocation_candidates import ClaimedPlace
from tests.turned_clock import TurnedClock

CONF = nova.conf.CONF
PLACE = ("host", "node")
CLAIMED = {"provider": {"resources": {"VCPU": 1}}}


@pytest.fixture(autouse=True)
def options() -> None:
    conf.register_opts(CONF)


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Collect the instances that are looked up: those whose name begins with p have a place."""
    found: list[str] = []

    def places_of(context, consumers, states):
        wanted = list(consumers)
        found.extend(wanted)
        missed = frozenset(uuid for uuid in wanted if uuid.startswith("missed"))
        return LookupResult({u: PLACE for u in wanted if u.startswith("p")}, None, missed)

    monkeypatch.setattr(in_flight_instances, "places_of", places_of)
    return found


@pytest.fixture
def waited() -> Iterator[None]:
    """A request whose deadline is over."""
    deadline = request_deadline.RequestDeadline(waited=2 * CONF.hpc_sched.cell_timeout)
    with request_deadline.active(deadline):
        yield


def test_a_second_request_of_a_group_waits_for_the_first_and_others_do_not(
    turned_clock: TurnedClock,
):
    order = []
    turn = group_turns.turn_of("group")

    def second() -> None:
        with group_turns.turn_of("group").taken("second") as has_waited:
            order.append(("second", has_waited))

    with turn.taken("first") as has_waited:
        assert not has_waited
        waiting = turned_clock.started(second)
        turned_clock.settle()
        for other in ("another", None):
            with group_turns.turn_of(other).taken("other") as has_waited:
                assert not has_waited
        order.append(("first", False))
    turned_clock.results([waiting])
    assert order == [("first", False), ("second", True)]


def test_a_request_waits_no_longer_than_its_deadline_and_goes_on(turned_clock: TurnedClock):
    began = turned_clock.monotonic()
    deadline = request_deadline.RequestDeadline(waited=2 * CONF.hpc_sched.cell_timeout - 0.1)
    turn = group_turns.turn_of("group")
    with turn.taken("first"), request_deadline.active(deadline):
        with turn.taken("second") as has_waited:
            assert has_waited
        assert turned_clock.monotonic() - began == pytest.approx(0.1)
        assert request_deadline.remaining() == pytest.approx(0)


@pytest.mark.usefixtures("waited")
def test_a_turn_that_was_not_got_is_not_given_back():
    turn = group_turns.turn_of("group")
    with turn.taken("first"):
        with turn.taken("second"):
            pass
        assert turn.claiming.locked()


def test_nothing_is_kept_of_a_group_without_requests():
    turn = group_turns.turn_of("group")
    assert group_turns.turn_of("group") is turn
    del turn
    assert "group" not in group_turns._turns


def claimed(turn: GroupTurn) -> GangClaim:
    """Return a claim of this process of ``ours``, on the only HostState."""
    gang = GangClaim(Owner("project", "user"))
    gang.ledger.held["ours"] = Holding(ClaimedPlace(0, {"allocations": CLAIMED}), 1)
    turn.add_claim(gang, ["ours"], [SimpleNamespace(host=PLACE[0], nodename=PLACE[1])])
    return gang


def test_own_claims_are_not_looked_up_until_they_are_released(asked):
    turn = GroupTurn()
    gang = claimed(turn)
    found = turn.look_up(None, ["ours", "other"], (), anew=True)
    assert (found.places, asked) == ({"ours": PLACE}, ["other"])
    del gang.ledger.held["ours"]
    assert turn.look_up(None, ["ours"], (), anew=True).places == {}
    assert asked == ["other", "ours"]


def test_own_claims_that_nova_has_found_hold_and_those_placed_elsewhere_are_looked_up(
    asked, monkeypatch
):
    monkeypatch.setattr(GangClaim, "_repair", lambda *_, **__: None)
    turn = GroupTurn()
    claimed(turn).note_placed("ours", CLAIMED)
    assert turn.look_up(None, ["ours"], (), anew=True).places == {"ours": PLACE}
    claimed(turn).note_placed("ours", {"another": {"resources": {"VCPU": 1}}})
    assert turn.look_up(None, ["ours"], (), anew=True).places == {}
    assert asked == ["ours"]


def test_what_nova_releases_after_no_valid_host_is_looked_up(asked):
    turn = GroupTurn()
    gang = claimed(turn)
    gang.note_placed("ours", CLAIMED)
    gang.forget_placed()
    assert turn.look_up(None, ["ours"], (), anew=True).places == {}
    assert asked == ["ours"]


def test_an_instance_that_exists_is_looked_up_whatever_was_claimed_for_it(asked):
    turn = GroupTurn()
    claimed(turn)
    for anew in (False, True):
        assert turn.look_up(None, ["ours"], (), ["ours"], anew=anew).places == {}
    assert asked == ["ours"] * 2


@pytest.mark.usefixtures("waited")
def test_an_instance_that_waits_for_its_turn_is_not_looked_up_and_one_that_has_it_is(
    asked, turned_clock: TurnedClock
):
    turn, done = GroupTurn(), threading.Event()

    def second() -> None:
        with turn.taken("second"):
            assert turned_clock.wait_for_event(done)

    with turn.taken("first"):
        waiting = turned_clock.started(second)
        turned_clock.settle()
        assert turn.look_up(None, ["second"], (), anew=True).places == {}
        assert asked == []
    turned_clock.settle()
    turn.look_up(None, ["second"], (), anew=True)
    done.set()
    turned_clock.results([waiting])
    assert asked == ["second"]


def test_what_was_looked_up_is_not_looked_up_again_for_a_while(asked, turned_clock: TurnedClock):
    turn = GroupTurn()
    for seconds in (0, group_turns.RECENT):
        turned_clock.turn(seconds)
        found = turn.look_up(None, ["placed", "waits", "told"], (), known={"told": None})
        assert found.places == {"placed": PLACE}
    assert asked == ["placed", "waits"]
    turned_clock.turn(0.1)
    turn.look_up(None, ["placed", "waits"], ())
    assert asked == ["placed", "waits"] * 2


def test_what_others_have_looked_up_will_not_do_after_a_claim(asked):
    turn = GroupTurn()
    turn.look_up(None, ["placed"], ())
    turn.look_up(None, ["placed"], (), anew=True)
    assert asked == ["placed"] * 2


def test_a_look_up_without_an_answer_is_repeated(asked):
    turn = GroupTurn()
    assert turn.look_up(None, ["missed"], ()).missed == {"missed"}
    turn.look_up(None, ["missed"], ())
    assert asked == ["missed"] * 2


@pytest.mark.parametrize("takes", [0.1, 3.0], ids=["at once", "for long"])
def test_of_two_that_look_up_at_once_one_waits_and_asks_nothing(
    monkeypatch, turned_clock: TurnedClock, takes: float
):
    """However long the look-ups of the first one take."""
    turn, asked = GroupTurn(), list[list[str]]()

    def places_of(context, consumers, states):
        asked.append(list(consumers))
        if asked[-1]:
            turned_clock.sleep(takes)
        return LookupResult({})

    monkeypatch.setattr(in_flight_instances, "places_of", places_of)
    first = turned_clock.started(turn.look_up, None, ["vm"], ())
    turned_clock.settle()
    second = turned_clock.started(turn.look_up, None, ["vm"], ())
    turned_clock.results([first, second])
    assert asked == [["vm"], []]
