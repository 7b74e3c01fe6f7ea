"""The text of a decision log's record, for operators."""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import replace

from hpc_sched import terminal_text
from hpc_sched.core.extra_spec_names import BOTTLENECK, ISOLATED
from hpc_sched.core.logged.decision_entry import DecisionEntry, LeafCandidates
from hpc_sched.core.logged.decision_summary import (
    LANDED,
    SHADOW,
    LoggedClaim,
    LoggedLanding,
    LoggedPlan,
    LoggedRejection,
    times_text,
)
from hpc_sched.core.logged.logged_objective import LoggedObjective
from hpc_sched.snapshot.log import decision_costs
from hpc_sched.snapshot.log.logged_decisions import Record, entry_of
from hpc_sched.topology import hostlist, plurals

# Leaves listed one by one; the rest is summed up.
MAX_LEAVES = 24
Part = tuple[str, Iterable[str | None]]  # title, and lines; those that are empty are left out


def text_of(
    record: Record, landing: Record | None = None, costs: decision_costs.DecisionCosts | None = None
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


def _lines(
    entry: DecisionEntry, costs: decision_costs.DecisionCosts | None
) -> Iterator[tuple[str, str]]:
    """Yield title and text of each line; a line without a title continues the one above."""
    yield from _titled(_decision(entry))
    if costs is not None:
        yield from decision_costs.lines(costs)
    yield from _titled(_outcome(entry))


def _titled(parts: Iterable[Part]) -> Iterator[tuple[str, str]]:
    for title, texts in parts:
        for i, text in enumerate(text for text in texts if text):
            yield "" if i else title, text


def _decision(entry: DecisionEntry) -> Iterable[Part]:
    own, rejection = entry.own_plan, entry.rejection or LoggedRejection()
    # No VM fits with members that themselves break a constraint.
    title = "would fit" if rejection.fits else "new group"
    return (
        ("request", [entry.request_id]),
        ("first VM", [entry.instance]),
        ("project", [entry.project]),
        ("asked", [", ".join(_asked(entry))]),
        ("VMs", [_number(entry)]),
        ("members", [_counts(entry.members)] if entry.members else []),
        ("candidates", _candidates(entry.candidates) if entry.candidates else []),
        ("left out", [f"{n} hosts: {why}" for why, n in sorted((entry.removed or {}).items())]),
        ("shunned", _shunned(entry)),
        *(_plan(entry.plan, is_proven=entry.proven) if entry.plan is not None else ()),
        ("links", _links(entry.objective) if entry.objective is not None else []),
        ("of these VMs", [] if own is None else [_counts(own.leaves), _hop_bytes(own.hop_bytes)]),
        ("neighbours", [_attraction(entry.attraction)] if entry.attraction else []),
        ("claimed", [] if entry.claim is None else [_claimed(entry.claim)]),
        ("reason", [entry.reason or rejection.reason]),
        ("no answer", [", ".join(entry.degraded or ())]),
        (title, [f"{one.vms} under one {one.level} ({one.switch})" for one in rejection.largest]),
    )


def _outcome(entry: DecisionEntry) -> Iterable[Part]:
    title = "stock Nova" if entry.mode == SHADOW else "landed"
    took: list[str] = []
    if entry.seconds is not None:
        # Records of earlier releases have no parts.
        took = [times_text(entry.times) if entry.times else f"{1000 * entry.seconds:.1f} ms"]
    return (
        ("took", took),
        (title, [] if entry.landed is None else _landed(entry.landed, title)),
        ("scheduler", [] if entry.scheduler is None else [entry.scheduler.text()]),
    )


def _asked(entry: DecisionEntry) -> Iterable[str]:
    return (
        *([f"class {entry.app_class}"] if entry.app_class else []),
        *([f"policy {entry.policy}"] if entry.policy else []),
        *(f"{key}={value}" for key, value in (entry.wishes or {}).items() if value is not None),
        *(_objective(entry.objective) if entry.objective is not None else []),
    )


def _objective(objective: LoggedObjective) -> Iterator[str]:
    yield f"objective={objective.name}"
    if objective.pattern is not None:
        yield f"pattern={objective.pattern}"
    if objective.name == BOTTLENECK:
        with suppress(ValueError):  # in a damaged record
            bound = objective.bound()
            yield f"bottleneck_tradeoff={'none' if bound is None else f'{float(bound):g}'}"


def _links(objective: LoggedObjective) -> Iterator[str]:
    """Yield what the plan does to links, or which uplinks it had to leave to others."""
    if objective.bottleneck is not None and objective.harm is not None:
        yield (
            f"bottleneck {objective.bottleneck:.4g} s, harm {objective.harm:.4g} s, "
            "if each VM sends 1 GB"
        )
    if objective.name == ISOLATED:
        used = hostlist.first(objective.used, MAX_LEAVES) or "of no switch"
        yield f"uplinks that other isolated groups use: {used}"


def _number(entry: DecisionEntry) -> str:
    if entry.left is None:
        return ""
    more = (entry.awaiting or 0) - entry.left
    others = f", {more} more of the group await one" if more > 0 else ""
    return f"{entry.left} to place{others}"


def _candidates(leaves: Mapping[str, LeafCandidates]) -> Iterator[str]:
    hosts = plurals.text(sum(leaf.hosts for leaf in leaves.values()), "host")
    room = sum(leaf.room for leaf in leaves.values())
    yield f"{hosts} with room for {room} in {plurals.text(len(leaves), 'leaf switch')}"
    for name, leaf in list(leaves.items())[:MAX_LEAVES]:
        yield f"{name}: {plurals.text(leaf.hosts, 'host')}, room for {leaf.room}"
    if len(leaves) > MAX_LEAVES:
        yield f"and {len(leaves) - MAX_LEAVES} more leaves"


def _plan(plan: LoggedPlan, *, is_proven: bool) -> Iterable[Part]:
    cost, least = _hop_bytes(plan.hop_bytes), plan.least
    if plan.hop_bytes is not None and least is not None:
        cost += f", least possible without wishes {least:.0f}"
        if plan.hop_bytes > least:
            cost += f" ({plan.hop_bytes - least:.0f} more)"
    if cost and not is_proven:
        cost += "; not proven best"
    return (
        ("plan", [_counts(plan.leaves)]),
        ("hosts", hostlist.fold_counts(plan.hosts)),
        ("cost", [cost]),
    )


def _hop_bytes(cost: float | None) -> str:
    return "" if cost is None else f"Hop-Byte {cost:.0f}"


def _attraction(hosts: Iterable[str]) -> str:
    return f"applications there gain by sharing a host: {hostlist.fold(sorted(hosts))}"


def _claimed(claim: LoggedClaim) -> str:
    number = plurals.text(claim.transactions, "transaction")
    return f"{claim.vms} at once, {number}" if claim.vms else f"not at once: {number} failed"


def _shunned(entry: DecisionEntry) -> Iterator[str]:
    for why, found in sorted((entry.shunned or {}).items()):
        names = hostlist.fold(found.hosts)
        more = found.count - len(found.hosts)
        others = f" and {more} more" if more > 0 else ""
        yield f"{why}: {plurals.text(found.count, 'host')}: {names}{others}"
    if entry.shunned and entry.plan is not None:
        yield f"the plan {'has to use some of them' if entry.uses_shunned else 'avoids them'}"


def _landed(landed: LoggedLanding, title: str) -> Iterator[str]:
    if landed.released:
        number = sum(landed.hosts.values())
        yield f"nowhere: the request failed, Nova released its claims: {number}"
        return
    text, planned = _counts(landed.leaves), landed.planned
    if landed.as_planned:
        text += ", as planned"
    elif planned == landed.leaves:
        text += ", on other hosts than planned"
    elif planned is not None:
        text += f"; planned {_counts(planned)}"
    yield text
    if not landed.as_planned or title != "landed":
        yield from hostlist.fold_counts(landed.hosts)
        yield _hop_bytes(landed.hop_bytes)


def _counts(leaves: Mapping[str, int]) -> str:
    shown = [f"{name} ({count})" for name, count in list(leaves.items())[:MAX_LEAVES]]
    more = f" and {len(leaves) - len(shown)} more" if len(leaves) > len(shown) else ""
    return f"{sum(leaves.values())} in {', '.join(shown) or 'no leaf'}{more}"
