"""The checks of the contention harness find what they are for.

The fabric is that of :mod:`tests.contention.fabric`.
"""

from collections.abc import Mapping, Sequence

import pytest

from tests.contention import timeline, verification
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
    **wishes: str | int,
) -> Outcome:
    """Return what became of a group of four that was sent at 10 s and answered at 11 s."""
    request = Request(VMS, VCPUS, "g", policy, wishes)
    return Outcome(request, tuple(hosts), refused, 10.0, 11.0, is_dead)


def held(outcome: Outcome) -> dict[str, dict[str, int]]:
    """Return what the VMs of an outcome should hold."""
    return {vm: {h: VCPUS} for vm, h in zip(VMS, outcome.hosts, strict=True)}


def broken_by(held: Mapping[str, Mapping[str, int]], outcome: Outcome) -> dict[Broken, int]:
    findings = Findings()
    verification.check_allocations(findings, [outcome], held, FREE)
    return dict(findings.broken)


PLACED = group(LEAVES["a1"][:4])
REFUSED = group(refused="No valid host was found.")


def test_right_allocations_are_not_complained_of():
    assert broken_by(held(PLACED), PLACED) == {}
    assert broken_by({}, REFUSED) == {}


def test_allocations_of_a_refused_group_are_found():
    assert broken_by(held(PLACED), REFUSED) == {Broken.LEFT: 4}


def test_what_a_killed_scheduler_has_claimed_may_stay_until_the_servers_are_deleted():
    assert broken_by(held(PLACED), group(is_dead=True, refused="dead")) == {}


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
    verification.check_wishes(findings, [PLACED, group(hosts, policy=policy, **wishes)])
    assert dict(findings.broken) == {Broken.WISH: 1}


def refusals(used: Mapping[str, int], writes: Sequence[Write], **wishes: str | int) -> Findings:
    findings = Findings()
    line = timeline.timeline(used, writes)
    outcome = group(refused="No valid host was found.", **wishes)
    verification.check_refusals(findings, [outcome], line, 12.0)
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


def splits(writes: Sequence[Write], plans: Mapping[str, Sequence[str]]) -> Findings:
    findings = Findings()
    split = group(["a1-0", "a1-1", "a1-2", "b1-0"])
    plain = Outcome(Request(("plain",), 4), ("a1-3",), None, 10.0, 11.0)
    line = timeline.timeline(FULL_BUT_A1 | {"b1-0": 0}, writes)
    verification.check_splits(findings, [split, plain], plans, line)
    return findings


def test_a_group_that_was_planned_whole_and_split_is_found():
    assert splits([], {"vm0": ["a1"]}).broken == {Broken.SPLIT: 1}


def test_a_group_that_fits_a_leaf_and_was_split_is_found_whatever_was_planned():
    assert splits([], {"vm0": ["a1", "b1"]}).broken == {Broken.SPLIT: 1}


def test_a_split_after_a_claim_of_a_plain_vm_is_counted_apart():
    found = splits([Write("plain", {"a1-3": 4}, 10.2, 10.3)], {"vm0": ["a1"]})
    assert (found.broken, found.split_by_plain) == ({}, 1)
    before = splits([Write("plain", {"a1-3": 4}, 9.2, 9.3)], {"vm0": ["a1"]})
    assert before.broken == {Broken.SPLIT: 1}
