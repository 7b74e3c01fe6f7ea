"""The text of a decision log's record, for operators."""

from collections.abc import Iterator, Mapping
from dataclasses import replace

from hpc_sched import terminal_text
from hpc_sched.core.decision_entry import (
    LANDED,
    SHADOW,
    DecisionEntry,
    LeafCandidates,
    LoggedClaim,
    LoggedLanding,
    LoggedPlan,
    LoggedShunned,
    times_text,
)
from hpc_sched.snapshot.log import decision_costs
from hpc_sched.snapshot.log.decision_costs import DecisionCosts
from hpc_sched.snapshot.log.logged_decisions import Record, entry_of
from hpc_sched.topology import hostlist, plurals

# Leaves listed one by one; the rest is summed up.
MAX_LEAVES = 24


def text_of(
    record: Record, landing: Record | None = None, costs: DecisionCosts | None = None
) -> str:
    """Return a record as lines of text; fields that it lacks are left out.

    :param landing: the record of where its VMs landed
    :param costs: what its constraints cost
    """
    entry = entry_of(record)
    if landing is not None:
        entry = replace(entry, landed=entry_of(landing).landed)
    group = f"server group {entry.group}" if entry.group else "a request without a server group"
    decision = entry.decision or "?"
    if entry.mode == SHADOW and decision != LANDED:
        would = "" if decision == "no plan" else "would have "
        decision = f"shadow mode, {would}{decision}"
    lines = [f"{entry.time or '?'}  {decision}: {group}"]
    lines += [f"  {title:<12}{line}" for title, line in _lines(entry, costs)]
    return "\n".join(terminal_text.text_of(line.rstrip()) for line in lines)


def _lines(entry: DecisionEntry, costs: DecisionCosts | None) -> Iterator[tuple[str, str]]:
    """Yield title and text of each line; a line without a title continues the one above."""
    if entry.request_id:
        yield "request", entry.request_id
    if entry.instance:
        yield "first VM", entry.instance
    if entry.project:
        yield "project", entry.project
    requested = [
        *([f"class {entry.app_class}"] if entry.app_class else []),
        *([f"policy {entry.policy}"] if entry.policy else []),
        *(f"{key}={value}" for key, value in (entry.wishes or {}).items() if value is not None),
    ]
    if requested:
        yield "asked", ", ".join(requested)
    if entry.left is not None:
        more = (entry.awaiting or 0) - entry.left
        others = f", {more} more of the group await one" if more > 0 else ""
        yield "VMs", f"{entry.left} to place{others}"
    if entry.members:
        yield "members", _counts(entry.members)
    if entry.candidates:
        yield from _candidates(entry.candidates)
    for i, (why, count) in enumerate(sorted((entry.removed or {}).items())):
        yield "" if i else "left out", f"{count} hosts: {why}"
    if entry.shunned:
        yield from _shunned(entry.shunned)
        if entry.plan is not None:
            uses = "has to use some of them" if entry.uses_shunned else "avoids them"
            yield "", f"the plan {uses}"
    if entry.plan is not None:
        yield from _plan(entry.plan, is_proven=entry.proven)
    if entry.own_plan is not None:
        yield "of these VMs", _counts(entry.own_plan.leaves)
        if entry.own_plan.hop_bytes is not None:
            yield "", f"Hop-Byte {entry.own_plan.hop_bytes:.0f}"
    if entry.attraction:
        hosts = hostlist.fold(sorted(entry.attraction))
        yield "neighbours", f"applications there gain by sharing a host: {hosts}"
    if entry.claim is not None:
        yield "claimed", _claimed(entry.claim)
    rejection = entry.rejection
    reason = entry.reason or (rejection.reason if rejection else "")
    if reason:
        yield "reason", reason
    if entry.degraded:
        yield "no answer", ", ".join(entry.degraded)
    # No VM fits with members that themselves break a constraint.
    title = "would fit" if rejection and rejection.fits else "new group"
    for i, gang in enumerate(rejection.largest if rejection else ()):
        yield "" if i else title, f"{gang.vms} under one {gang.level} ({gang.switch})"
    if costs is not None:
        yield from decision_costs.lines(costs)
    if entry.seconds is not None:
        yield "took", _took(entry.seconds, entry.times)
    if entry.landed is not None:
        yield from _landed(entry.landed, "stock Nova" if entry.mode == SHADOW else "landed")
    if entry.scheduler is not None:
        yield "scheduler", entry.scheduler.text()


def _took(seconds: float, times: Mapping[str, float] | None) -> str:
    # Records of earlier releases have no parts.
    return times_text(times) if times else f"{1000 * seconds:.1f} ms"


def _candidates(leaves: Mapping[str, LeafCandidates]) -> Iterator[tuple[str, str]]:
    hosts = plurals.text(sum(leaf.hosts for leaf in leaves.values()), "host")
    room = sum(leaf.room for leaf in leaves.values())
    under = plurals.text(len(leaves), "leaf switch")
    yield "candidates", f"{hosts} with room for {room} in {under}"
    for name, leaf in list(leaves.items())[:MAX_LEAVES]:
        yield "", f"{name}: {plurals.text(leaf.hosts, 'host')}, room for {leaf.room}"
    if len(leaves) > MAX_LEAVES:
        yield "", f"and {len(leaves) - MAX_LEAVES} more leaves"


def _plan(plan: LoggedPlan, *, is_proven: bool) -> Iterator[tuple[str, str]]:
    yield "plan", _counts(plan.leaves)
    for i, line in enumerate(hostlist.fold_counts(plan.hosts)):
        yield "" if i else "hosts", line
    cost, least = plan.hop_bytes, plan.least
    if cost is not None:
        line = f"Hop-Byte {cost:.0f}"
        if least is not None:
            line += f", least possible without wishes {least:.0f}"
            if cost > least:
                line += f" ({cost - least:.0f} more)"
        if not is_proven:
            line += "; not proven best"
        yield "cost", line


def _claimed(claim: LoggedClaim) -> str:
    number = plurals.text(claim.transactions, "transaction")
    return f"{claim.vms} at once, {number}" if claim.vms else f"not at once: {number} failed"


def _shunned(reasons: Mapping[str, LoggedShunned]) -> Iterator[tuple[str, str]]:
    for i, (why, found) in enumerate(sorted(reasons.items())):
        names = hostlist.fold(found.hosts)
        more = found.count - len(found.hosts)
        others = f" and {more} more" if more > 0 else ""
        yield "" if i else "shunned", f"{why}: {plurals.text(found.count, 'host')}: {names}{others}"


def _landed(landed: LoggedLanding, title: str) -> Iterator[tuple[str, str]]:
    if landed.released:
        number = sum(landed.hosts.values())
        yield title, f"nowhere: the request failed, Nova released its claims: {number}"
        return
    text, planned = _counts(landed.leaves), landed.planned
    if landed.as_planned:
        text += ", as planned"
    elif planned == landed.leaves:
        text += ", on other hosts than planned"
    elif planned is not None:
        text += f"; planned {_counts(planned)}"
    yield title, text
    if not landed.as_planned or title != "landed":
        for line in hostlist.fold_counts(landed.hosts):
            yield "", line
        if landed.hop_bytes is not None:
            yield "", f"Hop-Byte {landed.hop_bytes:.0f}"


def _counts(leaves: Mapping[str, int]) -> str:
    shown = [f"{name} ({count})" for name, count in list(leaves.items())[:MAX_LEAVES]]
    more = f" and {len(leaves) - len(shown)} more" if len(leaves) > len(shown) else ""
    return f"{sum(leaves.values())} in {', '.join(shown) or 'no leaf'}{more}"
