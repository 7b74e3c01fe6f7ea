"""An entry of the decision log as text for operators."""

from collections.abc import Iterator, Mapping

from hpc_sched import terminal_text
from hpc_sched.core.decision_entry import DecisionEntry, LeafCandidates, LoggedPlan
from hpc_sched.snapshot.decisions.log_reader import Record, entry_of
from hpc_sched.topology import hostlist, plurals

# Leaves listed one by one; the rest is summed up.
MAX_LEAVES = 24


def text_of(record: Record) -> str:
    """Return a record as lines of text; fields that it lacks are left out."""
    entry = entry_of(record)
    group = f"server group {entry.group}" if entry.group else "a request without a server group"
    lines = [f"{entry.time or '?'}  {entry.decision or '?'}: {group}"]
    lines += [f"  {title:<12}{line}" for title, line in _lines(entry)]
    return "\n".join(terminal_text.text_of(line.rstrip()) for line in lines)


def _lines(entry: DecisionEntry) -> Iterator[tuple[str, str]]:
    """Yield title and text of each line; a line without a title continues the one above."""
    if entry.request_id:
        yield "request", entry.request_id
    if entry.instance:
        yield "first VM", entry.instance
    stated = [
        *([f"class {entry.app_class}"] if entry.app_class else []),
        *([f"policy {entry.policy}"] if entry.policy else []),
        *(f"{key}={value}" for key, value in (entry.wishes or {}).items() if value is not None),
    ]
    if stated:
        yield "asked", ", ".join(stated)
    if entry.left is not None:
        more = (entry.awaiting or 0) - entry.left
        yield (
            "VMs",
            f"{entry.left} to place"
            + (f", {more} more of the group await one" if more > 0 else ""),
        )
    if entry.members:
        yield "members", _counts(entry.members)
    if entry.candidates:
        yield from _candidates(entry.candidates)
    for i, (why, count) in enumerate(sorted((entry.removed or {}).items())):
        yield "" if i else "left out", f"{count} hosts: {why}"
    if entry.plan is not None:
        yield from _plan(entry.plan)
    rejection = entry.rejection
    reason = entry.reason or (rejection.reason if rejection else "")
    if reason:
        yield "reason", reason
    for i, gang in enumerate(rejection.largest if rejection else ()):
        yield "" if i else "would fit", f"{gang.vms} under one {gang.level} ({gang.switch})"
    if entry.seconds is not None:
        yield "took", f"{1000 * entry.seconds:.1f} ms"


def _candidates(leaves: Mapping[str, LeafCandidates]) -> Iterator[tuple[str, str]]:
    hosts = plurals.text(sum(leaf.hosts for leaf in leaves.values()), "host")
    room = sum(leaf.room for leaf in leaves.values())
    under = plurals.text(len(leaves), "leaf switch")
    yield "candidates", f"{hosts} with room for {room} in {under}"
    for name, leaf in list(leaves.items())[:MAX_LEAVES]:
        yield "", f"{name}: {plurals.text(leaf.hosts, 'host')}, room for {leaf.room}"
    if len(leaves) > MAX_LEAVES:
        yield "", f"and {len(leaves) - MAX_LEAVES} more leaves"


def _plan(plan: LoggedPlan) -> Iterator[tuple[str, str]]:
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
        yield "cost", line


def _counts(leaves: Mapping[str, int]) -> str:
    shown = [f"{name} ({count})" for name, count in list(leaves.items())[:MAX_LEAVES]]
    more = f" and {len(leaves) - len(shown)} more" if len(leaves) > len(shown) else ""
    return f"{sum(leaves.values())} in {', '.join(shown) or 'no leaf'}{more}"
