"""VMs of one group that several requests claim at the same moment: which claims stay.

What the databases and Placement say of the others is set here; the processes that really compete
are in test_faults_two_schedulers.py and tests/contention. The fabric is that of
:mod:`tests.functional.pods`.
"""

import itertools
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from unittest import mock

import pytest
from nova import objects

from hpc_sched import exceptions
from hpc_sched.core.plan.result import Plan, Rejection
from hpc_sched.filters.group import HPCGroupFilter
from hpc_sched.filters.rack_capacity import HPCRackCapacityFilter
from hpc_sched.nova_glue import served_requests
from hpc_sched.nova_glue.claim import claim_conflict, gang_claiming
from hpc_sched.nova_glue.claim.group_turns import GroupTurn
from hpc_sched.nova_glue.claim.transaction.ledger import Holding
from hpc_sched.nova_glue.decide import checks
from hpc_sched.nova_glue.io import allocations
from hpc_sched.nova_glue.io.allocations import Answer, Owner, Written
from hpc_sched.nova_glue.phases import Phase, ServedGroup
from hpc_sched.nova_glue.read.hold import Hold, Holds
from hpc_sched.nova_glue.read.instances import group_members, request_instances
from hpc_sched.nova_glue.read.instances.group_members import GroupMembership
from hpc_sched.nova_glue.read.room.allocation_candidates import ClaimedPlace
from tests.functional.pods import hosts_below, names, states_of
from tests.functional.states import States, claims_succeed, offered, run, served, spec, wishing

pytestmark = pytest.mark.usefixtures("two_pods")

OWN = "vm5"
Settle = Callable[..., str | None]


def membership(in_flight: Mapping[str, str] | None = None, **fields: object) -> GroupMembership:
    """Return what is read after a claim: the hosts of VMs in flight, by uuid."""
    places = {uuid: (host, host) for uuid, host in (in_flight or {}).items()}
    found = {"members": Counter(places.values()), "queue": (OWN,), "left": 1, "is_move": False}
    return GroupMembership(**(found | {"in_flight": places} | fields))


def asked(states: States, **wishes: object) -> tuple[objects.RequestSpec, ServedGroup]:
    """Return the request of a VM, and what is kept of it."""
    request = spec(uuid=OWN, extra_specs=wishing(**wishes))
    state = served(request, states)
    return request, state


def claim_rounds(
    request: objects.RequestSpec, state: ServedGroup, answer: Plan | Rejection
) -> Plan | Rejection:
    """Claim as the session of the request does."""
    session = served_requests.session_of(request)
    session.phase = Phase.DECIDED
    return session._rounds(state, gang_claiming.claim(state.claims, request, answer))


def claimed_host(state: ServedGroup) -> str:
    assert state.claims.place is not None
    return state.group.inputs.states[state.claims.place.position].host


@pytest.fixture
def settle(group, monkeypatch) -> Settle:
    """Return what settles the claim of a VM on a host, by what is read afterwards."""

    def settle_(
        on: str,
        *found: GroupMembership,
        full: Collection[str] = (),
        members: Mapping[str, int] | None = None,
        **wishes: object,
    ) -> str | None:
        """``found``: at each look, the last one again and again; ``full``: no candidates."""
        group(members, queue=[OWN], left=1)
        states = [one for one in states_of() if one.nodename not in full]
        _, state = asked(states, **(wishes or {"require": "leaf"}))
        gang = state.claims.begin(Owner("project", "user"), 1.0, frozenset())
        [position] = [i for i, one in enumerate(states) if one.nodename == on]
        gang.ledger.held[OWN] = Holding(ClaimedPlace(position, {"allocations": {}}), 1)
        looks = itertools.chain(found, itertools.repeat(found[-1]))
        monkeypatch.setattr(group_members, "read", lambda *_, **_said: next(looks))
        monkeypatch.setattr(claim_conflict, "FIRST_PAUSE", 0.0)
        monkeypatch.setattr(claim_conflict, "LONGEST_PAUSE", 0.0)
        return claim_conflict.resolve(state.claims)

    return settle_


def test_a_claim_that_keeps_the_constraint_with_all_others_stays(settle):
    assert settle("n01", membership({"vm1": "n02", "vm9": "n03"})) is None


def test_a_claim_moves_if_an_earlier_one_is_elsewhere_and_tells_why(settle):
    assert "leaf" in settle("n01", membership({"vm1": "n05"}))


def test_a_claim_that_comes_first_waits_until_the_others_have_moved(settle):
    assert settle("n01", membership({"vm9": "n05"}), membership({"vm9": "n02"})) is None


def test_a_claim_that_comes_first_gives_way_if_the_others_do_not_move(settle):
    assert settle("n01", membership({"vm9": "n05"})) is not None


def test_vms_on_hosts_that_are_full_by_now_count_among_the_claims_that_stay(settle):
    """Three are on hosts of leaf1 that are no candidates any more: vm4 has to move, not vm5."""
    full = {"vm0": "n01", "vm1": "n02", "vm2": "n03"}
    split, together = membership(full | {"vm4": "n05"}), membership(full)
    assert settle("n04", split, together, full=full.values()) is None


@pytest.mark.parametrize(
    "fields",
    [
        pytest.param({"unknown": frozenset({"vm1"}), "problems": ("no answer",)}, id="look-ups"),
        pytest.param({"is_partial": True, "problems": ("no answer",)}, id="members"),
    ],
)
@pytest.mark.parametrize("wish", [{"require": "leaf"}, {"max_leaves": 1}], ids=str)
def test_a_constraint_that_cannot_be_proven_after_the_claim_is_refused(settle, fields, wish):
    with pytest.raises(exceptions.RefusedError, match="is not known: no answer"):
        settle("n01", membership(**fields), **wish)


def test_one_known_member_fixes_the_switch_and_not_the_number_of_leaves(settle):
    found = membership(is_partial=True, problems=("a cell is down",))
    assert settle("n01", found, members={"n02": 1}, require="leaf") is None
    with pytest.raises(exceptions.RefusedError):
        settle("n01", found, members={"n02": 1}, max_leaves=2)


@pytest.mark.parametrize(
    ("found", "wish", "is_refused"),
    [
        pytest.param(membership({"vm1": "n02"}), {"require": "leaf"}, True, id="in flight"),
        pytest.param(membership(queue=(OWN, "vm9")), {"max_leaves": 1}, True, id="awaiting"),
        pytest.param(membership(), {"require": "leaf"}, False, id="no others"),
        pytest.param(membership({"vm1": "n02"}), {"prefer": "leaf"}, False, id="a preference"),
    ],
)
def test_a_plan_that_is_not_claimed_keeps_a_constraint_only_without_others(
    group, found, wish, is_refused
):
    group(left=1)
    _, state = asked(states_of(), **wish)
    state.group.use(state.group.inputs.with_members(found))
    if is_refused:
        with pytest.raises(exceptions.RefusedError, match="is not known: no answer") as refused:
            claim_conflict.check_unclaimed(state.claims, "no answer")
        assert refused.value.tenant.endswith("is not known; try again later")
    else:
        claim_conflict.check_unclaimed(state.claims, "no answer")


def test_a_plan_of_the_last_look_is_claimed_like_any_other(group, monkeypatch):
    """Two VMs in flight are in different leaves until the request has looked for the last time."""
    group(queue=[OWN], left=1)
    claims_succeed(monkeypatch, [OWN])
    states = offered(states_of())
    request, state = asked(states, require="leaf")
    apart, together = (membership({"vm1": "n01", "vm9": host}) for host in ("n05", "n02"))
    state.group.use(state.group.inputs.with_members(apart))
    looks = itertools.repeat(apart, claim_conflict.MAX_LOOKS - 2)
    reads = itertools.chain(looks, itertools.repeat(together))
    monkeypatch.setattr(group_members, "read", lambda *_, **_said: next(reads))
    monkeypatch.setattr(state.group.inputs.rooms, "refresh", lambda *_: True)
    monkeypatch.setattr(claim_conflict, "FIRST_PAUSE", 0.0)
    first = state.group.answer(state.group.request())
    assert isinstance(first, Rejection)
    assert first.conflict
    answer = claim_rounds(request, state, first)
    assert isinstance(answer, Plan)
    assert claimed_host(state) in hosts_below("leaf1")


@pytest.fixture
def claim(group, monkeypatch) -> Callable[..., tuple[ServedGroup, Plan | Rejection]]:
    """Return what has a VM claimed beside vm9 of its group, of which nothing is known yet."""

    def claim_(
        *found: GroupMembership,
        answers: Collection[Answer] = (),
        unread: BaseException | None = None,
        has_room: bool = True,
        **wishes: object,
    ) -> tuple[ServedGroup, Plan | Rejection]:
        """Claim.

        ``found``: what is read later, the last one again and again; ``answers``: of Placement to
        each claim; ``unread``: why the VMs of the request cannot be read; ``has_room``: whether
        rooms can be read again.
        """
        group(queue=[OWN, "vm9"], left=1)
        claims_succeed(monkeypatch, [OWN])
        if unread is not None:
            monkeypatch.setattr(request_instances, "read", mock.Mock(side_effect=unread))
        looks = itertools.chain(found, itertools.repeat(found[-1]))
        written = iter(answers)
        monkeypatch.setattr(allocations, "write", lambda *_: Written(next(written)))
        # Two VMs go to leaf1; n06 is the only place beside n05.
        states = offered(
            [s for s in states_of("leaf1", "leaf2") if s.host <= "n04" or s.host == "n06"]
        )
        request, state = asked(states, **wishes)
        monkeypatch.setattr(group_members, "read", lambda *_, **_said: next(looks))
        monkeypatch.setattr(state.group.inputs.rooms, "refresh", lambda *_: has_room)
        monkeypatch.setattr(claim_conflict, "FIRST_PAUSE", 0.0)
        first = state.group.answer(state.group.request())
        return state, claim_rounds(request, state, first)

    return claim_


def test_places_that_others_of_the_group_have_taken_are_found_to_be_theirs(claim):
    answers = [Answer.NO_ROOM, Answer.DONE]
    state, answer = claim(membership({"vm9": "n05"}), answers=answers, prefer="leaf")
    assert isinstance(answer, Plan)
    assert claimed_host(state) == "n06"


def test_the_plan_that_is_logged_is_the_one_that_is_claimed(claim):
    """n06 would be better, but the claim keeps all constraints."""
    state, answer = claim(membership({"vm9": "n05"}), answers=[Answer.DONE], require="pod")
    assert isinstance(answer, Plan)
    assert claimed_host(state) in hosts_below("leaf1")
    assert dict(answer.hosts) == {claimed_host(state): 1}
    assert state.group.answer(state.group.request()) is answer


def test_a_request_that_waited_for_its_turn_is_planned_beside_what_the_others_claimed(
    claim, monkeypatch
):
    @contextmanager
    def taken(_turn: object, _uuid: str) -> Iterator[bool]:
        yield True

    monkeypatch.setattr(GroupTurn, "taken", taken)
    state, answer = claim(membership({"vm9": "n05"}), answers=[Answer.DONE], require="leaf")
    assert isinstance(answer, Plan)
    assert claimed_host(state) == "n06"


def test_a_request_claims_again_once_the_others_have_moved(claim):
    """Two of its group are in different leaves after its claim was refused; then they move."""
    apart, beside = membership({"vm1": "n01", "vm9": "n05"}), membership({"vm9": "n05"})
    answers = [Answer.NO_ROOM, Answer.DONE]
    state, answer = claim(apart, beside, answers=answers, require="leaf")
    assert isinstance(answer, Plan)
    assert claimed_host(state) == "n06"


def test_a_plan_that_cannot_be_claimed_is_nova_s_where_no_room_can_be_read_again(claim):
    state, answer = claim(membership(), answers=[Answer.NO_ROOM], has_room=False)
    assert isinstance(answer, Plan)
    assert state.claims.place is None


def test_a_request_whose_vms_cannot_be_read_is_claimed_vm_by_vm(claim, caplog):
    state, answer = claim(membership(), unread=OSError("no route to host"))
    assert isinstance(answer, Plan)
    assert state.claims.gang is None
    assert "is not claimed at once" in caplog.text
    assert "no route to host" in caplog.text


@pytest.fixture
def final_size(group, monkeypatch) -> tuple[States, objects.RequestSpec, ServedGroup]:
    """Return the request of a VM of three on a leaf, of which nothing else is known yet."""
    group(queue=[OWN], left=1)
    claims_succeed(monkeypatch, [OWN])
    states = offered(states_of("leaf1", "leaf2"))
    request, state = asked(states, require="leaf", group_size=3)
    return states, request, state


def test_a_claim_that_stays_is_not_refused_by_what_was_read_after_it(final_size, monkeypatch):
    """vm9 is found beside the claim, and others have taken the rest of the leaf."""
    states, request, state = final_size
    exact = state.group.inputs.rooms.verified

    def verified(planned, left):
        return state.group.held() if state.claims.place is not None else exact(planned, left)

    def beside(*_, **_said):
        [leaf] = [leaf for leaf in ("leaf1", "leaf2") if claimed_host(state) in hosts_below(leaf)]
        return membership({"vm9": max(hosts_below(leaf) - {claimed_host(state)})})

    monkeypatch.setattr(state.group.inputs.rooms, "verified", verified)
    monkeypatch.setattr(group_members, "read", beside)
    kept = run(states, request, HPCGroupFilter(), HPCRackCapacityFilter())
    assert claimed_host(state) in names(kept or [])


def test_what_a_request_has_claimed_is_released_when_a_later_filter_refuses_it(
    final_size, monkeypatch
):
    states, request, state = final_size
    monkeypatch.setattr(group_members, "read", lambda *_, **_said: membership())

    def refuse(_inputs):
        assert state.claims.place is not None
        raise exceptions.RefusedError("a cell does not answer")

    monkeypatch.setattr(checks, "check_members", refuse)
    assert not run(states, request, HPCGroupFilter(), HPCRackCapacityFilter())
    assert state.claims.place is None


@pytest.mark.parametrize(("node", "expected"), [("n01", True), ("elsewhere", False)])
def test_a_move_changes_a_refusal_only_if_its_place_is_a_candidate(group, node, expected):
    """A scheduler that was killed leaves the hold of its move: others need not wait for it."""
    group(queue=(OWN,), left=1)
    _, state = asked(states_of("leaf1"))
    moves = Hold("other", node, {"VCPU": 1}, 2**31 - 1, is_moving=True)
    state.group.use(replace(state.group.inputs, holds=Holds(1, {"other": moves})))
    assert claim_conflict.may_change(state.group, 0) == expected
