"""The checks of the contention harness find what they are for.

The fabric is that of :mod:`tests.contention.fabric`.
"""

import json
from collections import Counter
from collections.abc import Collection, Mapping, Sequence

import pytest

from hpc_sched.demo import nova_cloud  # noqa: F401 - first of all Nova: it chooses threads
from tests.contention import results, timeline, verification
from tests.contention.bursts import Outcome, Request
from tests.contention.fabric import HOSTS, LEAVES, VCPUS
from tests.contention.timeline import Write
from tests.contention.verification import Broken, Findings

VMS = tuple(f"vm{n}" for n in range(4))
FREE = dict.fromkeys(HOSTS, 0)
FULL_BUT_A1 = {host: 0 if host in LEAVES["a1"] else VCPUS for host in HOSTS}


def group(
    hosts: Sequence[str] = (),
    refused: str | None = None,
    policy: str = "anti-affinity",
    is_dead: bool = False,
    vms: Sequence[str] = VMS,
    **wishes: str | int,
) -> Outcome:
    """Return what became of a group of four that was sent at 10 s and answered at 11 s."""
    request = Request(tuple(vms), VCPUS, "g", policy, wishes)
    return Outcome(request, tuple(hosts), refused, 10.0, 11.0, is_dead)


def held(outcome: Outcome) -> dict[str, dict[str, int]]:
    """Return what the VMs of an outcome should hold."""
    return {vm: {h: VCPUS} for vm, h in zip(outcome.request.vms, outcome.hosts, strict=True)}


def broken_by(
    held: Mapping[str, Mapping[str, int]], outcome: Outcome, by_nova: Collection[str] = ()
) -> dict[Broken, int]:
    findings = Findings()
    verification.check_allocations(findings, [outcome], held, FREE, by_nova=by_nova)
    return dict(findings.broken)


PLACED = group(LEAVES["a1"][:4])
REFUSED = group(refused="No valid host was found.")


def test_right_allocations_are_not_complained_of():
    assert broken_by(held(PLACED), PLACED) == {}
    assert broken_by({}, REFUSED) == {}


def test_allocations_of_a_refused_group_are_found():
    assert broken_by(held(PLACED), REFUSED) == {Broken.LEFT: 4}


def test_what_a_killed_scheduler_has_claimed_ahead_of_nova_is_found():
    dead = group(is_dead=True, refused="dead")
    assert broken_by(held(PLACED), dead, by_nova=["vm1"]) == {Broken.LEFT: 3}
    assert broken_by(held(PLACED), dead, by_nova=PLACED.request.vms) == {}


def test_an_allocation_on_two_hosts_is_found():
    doubled = held(PLACED) | {"vm0": {"a1-0": VCPUS, "a1-5": VCPUS}}
    assert broken_by(doubled, PLACED) == {Broken.DOUBLED: 1}


def test_a_missing_and_a_wrong_allocation_are_found():
    wrong = held(PLACED) | {"vm0": {"a1-6": VCPUS}}
    del wrong["vm1"]
    assert broken_by(wrong, PLACED) == {Broken.MISSING: 2}


def test_an_overbooked_host_is_found():
    findings = Findings()
    used = FREE | {"a1-0": 4}
    verification.check_allocations(findings, [PLACED], held(PLACED), used)
    assert dict(findings.broken) == {Broken.OVERBOOKED: 1}


@pytest.mark.parametrize(
    ("hosts", "policy", "wishes"),
    [
        (["a1-0", "a1-0", "a1-1", "a1-2"], "anti-affinity", {}),
        (["a1-0", "a1-1", "a1-2", "a2-0"], "anti-affinity", {"require": "leaf"}),
        (["a1-0", "a1-1", "a2-0", "b1-0"], "anti-affinity", {"require": "pod"}),
        (["a1-0", "a1-1", "a2-0", "b1-0"], "soft-affinity", {"max_leaves": 2}),
    ],
    ids=str,
)
def test_a_broken_wish_is_found(hosts, policy, wishes):
    findings = Findings()
    outcomes = [PLACED, group(hosts, policy=policy, **wishes)]
    verification.check_wishes(findings, outcomes, timeline.Timeline(FREE))
    assert dict(findings.broken) == {Broken.WISH: 1}


def test_a_vm_that_its_user_deleted_before_it_had_a_host_breaks_no_wish():
    findings = Findings()
    hosts = ["a1-0", "a1-1", "a1-2", "a1-2"]
    outcome = group(hosts, policy="anti-affinity")
    line = timeline.Timeline(FREE)
    verification.check_wishes(findings, [outcome], line, outcome.request.vms[-1:])
    assert dict(findings.broken) == {}


@pytest.mark.parametrize(
    ("vm", "host", "number", "is_known"),
    [
        pytest.param("vm3", "a1-3", 4, True, id="given up"),
        pytest.param("vm3", "a1-3", 3, False, id="tried again"),
        pytest.param("vm3", "a1-2", 4, False, id="claimed there after all"),
        pytest.param("vm0", "a1-3", 4, False, id="another VM"),
    ],
)
def test_a_wish_that_broke_after_nova_gave_up_its_claim_is_counted_apart(
    vm, host, number, is_known
):
    findings = Findings()
    line = timeline.Timeline(FREE, conflicts=Counter({(vm, host): number}))
    outcome = group(["a1-0", "a1-1", "a1-2", "a1-2"], policy="anti-affinity")
    verification.check_wishes(findings, [outcome], line)
    assert (findings.broken_by_nova, findings.broken[Broken.WISH]) == (is_known, not is_known)


def refusals(
    used: Mapping[str, int],
    writes: Sequence[Write],
    refused: str | None = "No valid host was found.",
    others: Sequence[Outcome] = (),
    **wishes: str | int,
) -> Findings:
    findings = Findings()
    line = timeline.timeline(used, writes)
    outcome = group(refused=refused, **wishes)
    verification.check_answers(findings, [outcome, *others], line, 12.0, deadline=5.0)
    return findings


@pytest.mark.parametrize("wishes", [{}, {"require": "leaf"}, {"max_leaves": 1}], ids=str)
def test_a_refusal_with_room_all_the_time_is_found(wishes):
    assert refusals(FULL_BUT_A1, [], **wishes).broken == {Broken.REFUSED: 1}


def test_a_refusal_without_room_is_right():
    nearly = FULL_BUT_A1 | dict.fromkeys(LEAVES["a1"][:5], VCPUS)
    assert refusals(nearly, []).broken == {}
    spread = FREE | dict.fromkeys((h for h in HOSTS if h[-1] > "2"), VCPUS)
    assert refusals(spread, [], require="leaf").broken == {}
    assert refusals(spread, []).broken == {Broken.REFUSED: 1}


def test_room_that_others_held_for_a_moment_was_not_free():
    taken = [Write(f"other{n}", {host: VCPUS}, 9.0, 9.1) for n, host in enumerate(LEAVES["a1"][:5])]
    back = [Write(found.consumer, {}, 10.5, 10.6) for found in taken]
    assert refusals(FULL_BUT_A1, [*taken, *back], require="leaf").broken == {}
    earlier = [Write(found.consumer, {}, 9.2, 9.3) for found in taken]
    assert refusals(FULL_BUT_A1, [*taken, *earlier], require="leaf").broken == {Broken.REFUSED: 1}


def test_vms_of_another_request_of_the_group_take_room_and_bind_to_their_switch():
    sibling = group(LEAVES["a1"][4:], vms=[f"other{n}" for n in range(4)], require="leaf")
    writes = [Write(vm, places, 9.0, 9.1) for vm, places in held(sibling).items()]
    assert refusals(FREE, writes, others=[sibling], require="leaf").broken == {Broken.REFUSED: 1}
    nearly = FREE | {"a1-0": VCPUS}
    assert refusals(nearly, writes, others=[sibling], require="leaf").broken == {}
    assert refusals(nearly, writes, others=[sibling], max_leaves=2).broken == {Broken.REFUSED: 1}


def test_a_place_that_is_claimed_twice_by_its_own_vm_is_taken_once():
    twice = [Write("other", {"a1-0": 8}, at, at + 0.1) for at in (9.0, 9.5)]
    line = timeline.timeline(FREE, twice)
    assert line.lowest_room(9.0, 12.0)["a1-0"] == 8
    given_back = timeline.timeline(FREE, [*twice, Write("other", {}, 9.8, 9.9)])
    assert given_back.lowest_room(10.0, 12.0)["a1-0"] == VCPUS


@pytest.mark.parametrize("answer", [None, "ConnectTimeout"])
def test_an_answer_that_is_neither_hosts_nor_a_refusal_is_found(answer):
    assert refusals(FREE, [], refused=answer).broken == {Broken.FAILED: 1}


SPLIT = ["a1-0", "a1-1", "a1-2", "b1-0"]


def splits(
    writes: Sequence[Write],
    plans: Mapping[str, Sequence[str] | None],
    conflicts: Mapping[tuple[str, str], int] | None = None,
) -> Findings:
    findings = Findings()
    plain = Outcome(Request(("plain",), 4), ("a1-3",), None, 10.0, 11.0)
    line = timeline.timeline(FULL_BUT_A1 | {"b1-0": 0}, writes)
    line.conflicts.update(conflicts or {})
    verification.check_plans(findings, [group(SPLIT), plain], plans, line)
    return findings


def taken(consumer: str, hosts: Sequence[str], at: float = 10.2) -> list[Write]:
    return [Write(f"{consumer}{n or ''}", {h: 4}, at, at + 0.1) for n, h in enumerate(hosts)]


def test_a_group_that_was_planned_whole_and_split_is_found():
    assert splits([], {"vm0": ["a1"]}).broken == {Broken.SPLIT: 1}


def test_a_group_that_fits_a_leaf_and_was_split_is_found_whatever_was_planned():
    assert splits([], {"vm0": ["a1", "b1"]}).broken == {Broken.SPLIT: 1}


def test_a_split_after_a_plain_vm_took_what_the_plan_needs_is_counted_apart():
    others = taken("group", LEAVES["a1"][4:])
    found = splits([*others, *taken("plain", ["a1-3"])], {"vm0": ["a1"]})
    assert (found.broken, found.split_by_plain) == ({}, 1)
    # Without the plain VM there was no room either.
    others = taken("group", LEAVES["a1"][3:])
    assert splits([*others, *taken("plain", ["a1-3"])], {"vm0": ["a1"]}).broken == {Broken.SPLIT: 1}


def test_a_split_after_a_plain_vm_took_what_the_plan_can_do_without_is_found():
    assert splits(taken("plain", ["a1-3"]), {"vm0": ["a1"]}).broken == {Broken.SPLIT: 1}


@pytest.mark.parametrize(
    ("vm", "host", "number", "is_known"),
    [
        pytest.param("vm3", "a1-3", 4, True, id="all attempts"),
        pytest.param("vm3", "a1-3", 3, False, id="not all attempts"),
        pytest.param("vm3", "b1-0", 4, False, id="elsewhere"),
        pytest.param("vm0", "a1-3", 4, False, id="another VM"),
    ],
)
def test_a_split_after_nova_gave_up_its_claim_is_counted_apart(vm, host, number, is_known):
    found = splits([], {"vm0": ["a1"]}, {(vm, host): number})
    assert (found.split_by_nova, found.broken[Broken.SPLIT]) == (is_known, not is_known)


def test_nova_s_claims_that_conflict_are_read_from_the_log(tmp_path):
    call = {"method": "PUT", "path": "/allocations/vm0", "began": 1.0, "ended": 2.0}
    body = {"allocations": {"uuid": {"resources": {"VCPU": 4}}}}
    conflict = {"status": 409, "code": timeline.CONCURRENT_UPDATE}
    full = {"status": 409, "code": "placement.undefined_code"}
    calls = [call | {"body": body} | found for found in (conflict, full, {"status": 204})]
    path = tmp_path / "calls"
    path.write_text("".join(f"{json.dumps(one)}\n" for one in calls))
    line, kinds = timeline.CallLog(path).read(FREE, {"uuid": "a1-0"})
    assert line.conflicts == {("vm0", "a1-0"): 1}
    assert [held.host for held in line.held] == ["a1-0"]
    assert kinds == {"PUT /allocations": 3}
    assert line.seconds == {"PUT /allocations": 3.0}


def test_a_group_on_as_many_leaves_as_planned_is_right_where_no_leaf_has_room():
    full = taken("other", LEAVES["a1"][3:], at=9.0)
    assert splits(full, {"vm0": ["a1", "b1"]}).broken == {}
    assert splits(full, {"vm0": None}).broken == {}


def test_a_leaf_of_other_processors_is_no_better_than_two_of_the_best():
    findings = Findings()
    line = timeline.timeline(dict.fromkeys(HOSTS, VCPUS) | dict.fromkeys(LEAVES["b2"], 0), [])
    plans = {"vm0": ["a1", "b1"]}
    verification.check_plans(findings, [group(SPLIT)], plans, line)
    assert findings.broken == {}
    mixed = group([*SPLIT[:3], "b3-0"])
    verification.check_plans(findings, [mixed], {"vm0": ["a1", "b3"]}, line)
    assert findings.broken == {Broken.SPLIT: 1}


def test_a_group_without_a_logged_decision_is_found():
    assert splits([], {}).broken == {Broken.FAILED: 1}


def test_a_decision_whose_parts_are_too_little_is_found_and_what_writes_its_lines_is_not():
    findings = Findings()
    seconds = ((10.0, 9.6), (10.0, 9.4), (0.010, 0.009), (1.000, 0.900))
    measured = [
        {"instance": f"vm{number}", "measured": whole, "parts": parts}
        for number, (whole, parts) in enumerate(seconds)
    ]
    verification.check_times(findings, measured)
    assert dict(findings.broken) == {Broken.TIMES: 1}
    assert findings.details == ["parts do not add up: vm1: 9.4000 s, measured 10.0000 s"]
    assert (findings.decisions, findings.apart) == (4, 3)
    assert findings.largest_gap == pytest.approx(0.1)


def test_the_hosts_that_two_sides_overbook_are_compared_round_by_round():
    def side(overbooked: list[int]) -> results.Result:
        return results.Result(overbooked=overbooked)

    few = {"claims": side([0, 1]), "stock": side([1, 1])}
    what = "hosts overbooked a round, claims less stock: "
    assert results.paired(few, "claims", "stock") == f"{what}-0.5"
    many = {"claims": side([0, 1] * 5), "stock": side([1, 1] * 5)}
    assert results.paired(many, "claims", "stock") == f"{what}-0.50 ± 0.38"
