"""What must hold after a burst, checked without the plugin's code."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from tests.contention.bursts import Outcome, Request
from tests.contention.fabric import LEAVES, SWITCHES, VCPUS, leaves_of
from tests.contention.timeline import Timeline

# Seconds of a request's reads and claims together: twice cell_timeout.
DEADLINE = 40.0


class Broken(StrEnum):
    """Invariants, by what is said of a request that breaks them."""

    LEFT = "allocation left"
    DOUBLED = "allocation on two hosts"
    MISSING = "allocation missing or wrong"
    OVERBOOKED = "host overbooked"
    WISH = "wish broken"
    REFUSED = "refused with room"
    SPLIT = "split, planned whole"
    FAILED = "failed"


@dataclass
class Findings:
    """What was found of one round, or of several."""

    broken: Counter[Broken] = field(default_factory=Counter)
    details: list[str] = field(default_factory=list)
    # Groups that were split though planned whole because a plain VM took a place meanwhile.
    split_by_plain: int = 0
    late: int = 0  # refused after their deadline

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
) -> None:
    """Check that each VM with a place holds it, and that nobody holds anything else.

    What dead schedulers have claimed may stay until the servers are deleted.

    :param held: what Placement has: consumer to host to VCPUs
    :param deleted: VMs that users deleted before they had a host
    """
    wanted: dict[str, dict[str, int]] = {}
    unknown: set[str] = set()
    for outcome in outcomes:
        if outcome.is_dead:
            unknown.update(outcome.request.vms)
        if outcome.hosts:
            for vm, host in zip(outcome.request.vms, outcome.hosts, strict=True):
                if vm not in deleted:
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


def check_wishes(findings: Findings, outcomes: Sequence[Outcome]) -> None:
    """Check that the VMs of each group keep its policy and its wishes together."""
    groups: dict[str, list[Outcome]] = {}
    for outcome in outcomes:
        if outcome.request.group is not None and outcome.hosts:
            groups.setdefault(outcome.request.group, []).append(outcome)
    for name, found in sorted(groups.items()):
        hosts = [host for outcome in found for host in outcome.hosts]
        request = found[0].request
        if not _keeps(request, hosts):
            text = f"{name} ({request.policy}, {dict(request.wishes or {})}) is on {Counter(hosts)}"
            findings.add(Broken.WISH, text)


def check_refusals(
    findings: Findings, outcomes: Sequence[Outcome], line: Timeline, end: float
) -> None:
    """Check that no group was refused although it had room from its request to the round's end."""
    for outcome in outcomes:
        request = outcome.request
        if outcome.refused is None or outcome.is_dead:
            continue
        if not outcome.refused.startswith("No valid host"):
            findings.add(Broken.FAILED, f"{request.vms[0]}: {outcome.refused}")
            continue
        if outcome.answered - outcome.sent > DEADLINE:
            findings.late += 1
            continue
        room = line.lowest_room(outcome.sent, end, request.vms)
        if has_room(request, room):
            text = f"{request.group} of {len(request.vms)} x {request.vcpus} VCPUs"
            wishes = f"{request.policy}, {dict(request.wishes or {})}"
            findings.add(Broken.REFUSED, f"{text} ({wishes}): {outcome.refused}")


def check_splits(
    findings: Findings,
    outcomes: Sequence[Outcome],
    plans: Mapping[str, Collection[str]],
    line: Timeline,
) -> None:
    """Check that groups are on one leaf if they were planned so, or could have been.

    :param plans: leaves of the last plan by a request's first VM
    """
    plain = {vm for o in outcomes if o.request.group is None for vm in o.request.vms}
    for outcome in outcomes:
        request = outcome.request
        if request.group is None or len(leaves_of(list(outcome.hosts))) < 2:
            continue
        planned = plans.get(request.vms[0], ())
        own = (outcome.sent, outcome.answered)
        whole = set(planned) if len(planned) == 1 else set()
        if not whole and (request.policy == "anti-affinity" or request.vcpus == VCPUS):
            # With a VM a host nothing is better than one leaf.
            slots = _slots(request, line.lowest_room(*own, request.vms))
            whole = {
                leaf for leaf, hosts in LEAVES.items() if _sum(slots, hosts) >= len(request.vms)
            }
        if not whole:
            continue
        taken = line.taken((h for leaf in whole for h in LEAVES[leaf]), *own)
        if taken & plain:
            findings.split_by_plain += 1
        else:
            landed = dict(Counter(outcome.hosts))
            findings.add(Broken.SPLIT, f"{request.group} fits {sorted(whole)}, is on {landed}")


def has_room(request: Request, room: Mapping[str, int]) -> bool:
    """True if a request's VMs fit, by its policy and wishes."""
    slots = _slots(request, room)
    wishes = request.wishes or {}
    count = int(wishes.get("group_size", len(request.vms)))
    if level := wishes.get("require"):
        return any(_sum(slots, hosts) >= count for hosts in SWITCHES[str(level)].values())
    leaves = sorted((_sum(slots, hosts) for hosts in LEAVES.values()), reverse=True)
    return sum(leaves[: int(wishes.get("max_leaves", len(leaves)))]) >= count


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
