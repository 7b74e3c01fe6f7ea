"""What must hold after a burst, checked without the plugin's code."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from tests.contention.bursts import Outcome, Request
from tests.contention.fabric import LEAVES, PROCESSORS, SWITCHES, VCPUS, leaves_of
from tests.contention.timeline import Timeline

# Between the time that Nova waits for a decision and the sum of its parts: as a fraction, and in
# seconds. The lines of log and decision log are written last, some 0.5 ms; each other thread that
# runs then is in the way for 5 ms, and so are other processes on the same cores.
MOST_GAP, MOST_WRITING = 0.05, 0.2


class Broken(StrEnum):
    """Invariants, by what is said of a request that breaks them."""

    LEFT = "allocation left"
    DOUBLED = "allocation on two hosts"
    MISSING = "allocation missing or wrong"
    OVERBOOKED = "host overbooked"
    WISH = "wish broken"
    REFUSED = "refused with room"
    SPLIT = "split against its plan"
    FAILED = "failed"
    LOST = "not answered after SIGHUP"
    TIMES = "parts do not add up"


@dataclass
class Findings:
    """What was found of one round, or of several."""

    broken: Counter[Broken] = field(default_factory=Counter)
    details: list[str] = field(default_factory=list)
    # Groups on more leaves than planned because plain VMs took places meanwhile.
    split_by_plain: int = 0
    # Likewise because Nova gave up its claim of a place that was claimed for the VM already.
    split_by_nova: int = 0
    broken_by_nova: int = 0  # wishes, likewise
    late: int = 0  # refused after their deadline
    decisions: int = 0  # whose time was measured
    apart: int = 0  # of them, more than MOST_GAP from the sum of the parts
    largest_gap: float = 0.0  # of it to the sum of its parts, as a fraction

    def add(self, what: Broken, text: str) -> None:
        """Note a broken invariant."""
        self.broken[what] += 1
        self.details.append(f"{what}: {text}")


def check_allocations(
    findings: Findings,
    outcomes: Sequence[Outcome],
    held: Mapping[str, Mapping[str, int]],
    used: Mapping[str, int],
    deleted: Collection[str] = (),
    by_nova: Collection[str] = (),
) -> None:
    """Check that each VM with a place holds it, and that nobody holds anything else.

    What Nova has claimed in a scheduler that died may stay until the servers are deleted, as it
    does without hpc_sched.

    :param held: what Placement has: consumer to host to VCPUs
    :param deleted: VMs that users deleted before they had a host
    :param by_nova: VMs that Nova has claimed
    """
    wanted: dict[str, dict[str, int]] = {}
    unknown: set[str] = set()
    for outcome in outcomes:
        if outcome.is_dead:
            unknown.update(vm for vm in outcome.request.vms if vm in by_nova)
        for vm, host in _placed(outcome, deleted).items():
            wanted[vm] = {host: outcome.request.vcpus}
    for vm in sorted(held.keys() | wanted.keys()):
        has, wants = held.get(vm, {}), wanted.get(vm, {})
        if has == wants or (vm in unknown and len(has) == 1):
            continue
        if len(has) > 1:
            findings.add(Broken.DOUBLED, f"{vm} holds {dict(has)}, wants {wants}")
        elif not wants:
            findings.add(Broken.LEFT, f"{vm} holds {dict(has)}")
        else:
            findings.add(Broken.MISSING, f"{vm} holds {dict(has)}, wants {wants}")
    total = Counter(used)
    for places in held.values():
        total.update(places)
    for host, vcpus in sorted(total.items()):
        if vcpus > VCPUS:
            findings.add(Broken.OVERBOOKED, f"{host} has {vcpus} of {VCPUS} VCPUs in use")


def check_wishes(
    findings: Findings,
    outcomes: Sequence[Outcome],
    line: Timeline,
    deleted: Collection[str] = (),
) -> None:
    """Check that the VMs of each group keep its policy and its wishes together.

    Those that the VMs keep whose claims Nova has not given up are counted apart.

    :param deleted: VMs that users deleted before they had a host; they bind nobody
    """
    groups: dict[str, list[Outcome]] = {}
    for outcome in outcomes:
        if outcome.request.group is not None and outcome.hosts:
            groups.setdefault(outcome.request.group, []).append(outcome)
    for name, found in sorted(groups.items()):
        request = found[0].request
        placed = [_placed(outcome, deleted) for outcome in found]
        if _keeps(request, [host for vms in placed for host in vms.values()]):
            continue
        as_claimed = [h for vms in placed for vm, h in vms.items() if not line.given_up(vm) - {h}]
        if _keeps(request, as_claimed):
            findings.broken_by_nova += 1
        else:
            places = [list(vms.values()) for vms in placed]
            text = f"{name} ({request.policy}, {dict(request.wishes or {})}) is on {places}"
            findings.add(Broken.WISH, text)


def check_answers(
    findings: Findings,
    outcomes: Sequence[Outcome],
    line: Timeline,
    end: float,
    *,
    deadline: float,
) -> None:
    """Check that no group was refused although it had room from its request to the round's end.

    Room beside the VMs of its other requests that are placed.

    :param deadline: of a request, in seconds; what is refused after it is counted apart
    """
    for outcome in outcomes:
        request = outcome.request
        siblings = _siblings(outcome, outcomes)
        if outcome.hosts or outcome.is_dead or any(found.is_dead for found in siblings):
            continue
        if not (outcome.refused or "").startswith("No valid host"):
            findings.add(Broken.FAILED, f"{request.vms[0]}: {outcome.refused}")
            continue
        if outcome.answered - outcome.sent > deadline:
            findings.late += 1
            continue
        members = [host for found in siblings for host in found.hosts]
        vms = [vm for found in (outcome, *siblings) for vm in found.request.vms]
        room = line.lowest_room(outcome.sent, end, vms)
        for host in members:
            room[host] -= request.vcpus
        if has_room(request, room, members):
            text = f"{request.group} of {len(request.vms)} x {request.vcpus} VCPUs"
            wishes = f"{request.policy}, {dict(request.wishes or {})}, members on {members}"
            findings.add(Broken.REFUSED, f"{text} ({wishes}): {outcome.refused}")


def check_times(findings: Findings, measured: Iterable[Mapping[str, Any]]) -> None:
    """Check that the parts of each decision's time add up to what was measured from outside.

    :param measured: seconds of each decision, see ``timed_scheduler``
    """
    for found in measured:
        parts, whole = found["parts"], found["measured"]
        findings.largest_gap = max(findings.largest_gap, abs(whole - parts) / whole)
        findings.decisions += 1
        findings.apart += abs(whole - parts) > MOST_GAP * whole
        if abs(whole - parts) > max(MOST_GAP * whole, MOST_WRITING):
            text = f"{found['instance']}: {parts:.4f} s, measured {whole:.4f} s"
            findings.add(Broken.TIMES, text)


def check_plans(
    findings: Findings,
    outcomes: Sequence[Outcome],
    plans: Mapping[str, Collection[str] | None],
    line: Timeline,
) -> None:
    """Check that groups are on no more leaves than planned, and on one if they fitted there.

    :param plans: leaves of the last plan by a request's first VM; None if it was placed
        without a plan
    """
    plain = [vm for o in outcomes if o.request.group is None for vm in o.request.vms]
    for outcome in outcomes:
        request, landed = outcome.request, leaves_of(outcome.hosts)
        if request.group is None or not landed:
            continue
        if request.vms[0] not in plans:
            findings.add(Broken.FAILED, f"{request.group} is placed without a logged decision")
            continue
        planned = set(plans[request.vms[0]] or landed)
        own = (outcome.sent, outcome.answered)
        slots = _slots(request, line.lowest_room(*own, request.vms))
        on = dict(Counter(outcome.hosts))
        if len(landed) > len(planned):
            without_plain = _slots(request, line.lowest_room(*own, [*request.vms, *plain]))
            if not _fit(request, slots, planned) and _fit(request, without_plain, planned):
                findings.split_by_plain += 1
            elif _gave_up(outcome, planned, line):
                findings.split_by_nova += 1
            else:
                text = f"{request.group} is planned on {sorted(planned)}, is on {on}"
                findings.add(Broken.SPLIT, text)
        elif len(landed) > 1 and _takes_whole_hosts(request) and not _siblings(outcome, outcomes):
            # Nothing is better than one leaf, of the same processors.
            types = {PROCESSORS[leaf] for leaf in landed}
            whole = [x for x in LEAVES if PROCESSORS[x] in types and _fit(request, slots, [x])]
            if whole:
                findings.add(Broken.SPLIT, f"{request.group} fits {whole}, is on {on}")


def has_room(request: Request, room: Mapping[str, int], members: Sequence[str] = ()) -> bool:
    """True if a request's VMs fit, by its policy and wishes, beside members on some hosts."""
    slots = _slots(request, room)
    if request.policy == "anti-affinity":
        slots |= dict.fromkeys(members, 0)
    wishes = request.wishes or {}
    count = max(int(wishes.get("group_size", 0)) - len(members), len(request.vms))
    if level := wishes.get("require"):
        return any(
            set(members) <= set(hosts) and _sum(slots, hosts) >= count
            for hosts in SWITCHES[str(level)].values()
        )
    used = leaves_of(members)
    others = sorted((_sum(slots, LEAVES[x]) for x in LEAVES if x not in used), reverse=True)
    others = others[: max(int(wishes.get("max_leaves", len(LEAVES))) - len(used), 0)]
    return sum(others) + sum(_sum(slots, LEAVES[leaf]) for leaf in used) >= count


def _gave_up(outcome: Outcome, planned: Collection[str], line: Timeline) -> bool:
    """True if Nova's claims of all VMs that are not on planned leaves failed there by conflicts."""
    hosts = [host for leaf in planned for host in LEAVES[leaf]]
    outside = [
        vm for vm, host in zip(outcome.request.vms, outcome.hosts, strict=True) if host not in hosts
    ]
    return not any(line.given_up(vm).isdisjoint(hosts) for vm in outside)


def _placed(outcome: Outcome, deleted: Collection[str]) -> dict[str, str]:
    """Return the host of each VM of a request; none of those that were deleted before."""
    if not outcome.hosts:
        return {}
    placed = zip(outcome.request.vms, outcome.hosts, strict=True)
    return {vm: host for vm, host in placed if vm not in deleted}


def _siblings(outcome: Outcome, outcomes: Sequence[Outcome]) -> list[Outcome]:
    """Return the other requests of a request's group."""
    group = outcome.request.group
    return [o for o in outcomes if o is not outcome and group and o.request.group == group]


def _takes_whole_hosts(request: Request) -> bool:
    return request.policy == "anti-affinity" or request.vcpus == VCPUS


def _fit(request: Request, slots: Mapping[str, int], leaves: Iterable[str]) -> bool:
    return sum(_sum(slots, LEAVES[leaf]) for leaf in leaves) >= len(request.vms)


def _slots(request: Request, room: Mapping[str, int]) -> dict[str, int]:
    most = 1 if request.policy == "anti-affinity" else VCPUS
    return {host: min(max(vcpus, 0) // request.vcpus, most) for host, vcpus in room.items()}


def _sum(slots: Mapping[str, int], hosts: Iterable[str]) -> int:
    return sum(slots[host] for host in hosts)


def _keeps(request: Request, hosts: list[str]) -> bool:
    wishes = request.wishes or {}
    if request.policy == "anti-affinity" and len(set(hosts)) < len(hosts):
        return False
    if len(leaves_of(hosts)) > int(wishes.get("max_leaves", len(LEAVES))):
        return False
    level = wishes.get("require")
    return level is None or any(set(hosts) <= set(b) for b in SWITCHES[str(level)].values())
