"""A record of the decision log in words."""

import math
from collections.abc import Iterator, Mapping
from typing import Any

from hpc_sched import terminal_text
from hpc_sched.topology import hostlist, plurals

# Leaves that are listed one by one; more are added up.
MAX_LEAVES = 24

Record = Mapping[str, Any]


def text_of(record: Record) -> str:
    """Return a record as lines for people; what it lacks is left out.

    Records of older versions and hand-made ones may lack anything, and hold what was never
    written: nothing of them makes an error.
    """
    lines = [f"{_text(record, 'time')}  {_title(record)}"]
    lines += [f"  {title:<12}{line}" for title, line in _lines(record)]
    return "\n".join(terminal_text.text_of(line.rstrip()) for line in lines)


def _title(record: Record) -> str:
    decision = _text(record, "decision")
    group = record.get("group")
    whose = f"server group {group}" if group else "a request without a server group"
    return f"{decision}: {whose}"


def _lines(record: Record) -> Iterator[tuple[str, str]]:
    if record.get("request_id"):
        yield "request", str(record["request_id"])
    if record.get("instance"):
        yield "first VM", str(record["instance"])
    asked = _asked(record)
    if asked:
        yield "asked", asked
    if "left" in record:
        awaiting = _number(record, "awaiting")
        left = _number(record, "left")
        others = f", {awaiting - left} more of the group await one" if awaiting > left else ""
        yield "VMs", f"{left} to place{others}"
    members = _mapping(record, "members")
    if members:
        yield "members", f"{_sum(members)} in {_counts(members)}"
    yield from _candidates(_mapping(record, "candidates"))
    removed = _mapping(record, "removed")
    for i, (why, count) in enumerate(sorted(removed.items(), key=lambda item: str(item[0]))):
        yield "" if i else "left out", f"{count} hosts: {why}"
    yield from _plan(_mapping(record, "plan"))
    yield from _rejection(record)
    seconds = _finite(record, "seconds")
    if seconds is not None:
        yield "took", f"{1000 * seconds:.1f} ms"


def _asked(record: Record) -> str:
    """Return class, policy and wishes, those alone that are stated."""
    parts = [f"class {record['app_class']}"] if record.get("app_class") else []
    if record.get("policy"):
        parts.append(f"policy {record['policy']}")
    for key, value in _mapping(record, "wishes").items():
        if value is not None:
            parts.append(f"{key}={value}")
    return ", ".join(parts)


def _candidates(leaves: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield a line for each leaf with its candidates, the rest of many leaves as one."""
    found = [(name, leaf) for name, leaf in leaves.items() if isinstance(leaf, Mapping)]
    if not found:
        return
    under = plurals.text(len(found), "leaf switch")
    hosts, room = (sum(_number(leaf, key) for _, leaf in found) for key in ("hosts", "room"))
    yield "candidates", f"{plurals.text(hosts, 'host')} with room for {room} in {under}"
    for name, leaf in found[:MAX_LEAVES]:
        hosts, room = _number(leaf, "hosts"), _number(leaf, "room")
        yield "", f"{name}: {plurals.text(hosts, 'host')}, room for {room}"
    if len(found) > MAX_LEAVES:
        yield "", f"and {len(found) - MAX_LEAVES} more leaves"


def _plan(plan: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    if not plan:
        return
    leaves, hosts = _mapping(plan, "leaves"), _mapping(plan, "hosts")
    yield "plan", f"{_sum(leaves)} in {_counts(leaves) or 'no leaf'}"
    by_count: dict[int, list[str]] = {}
    for host in hosts:
        by_count.setdefault(_number(hosts, host), []).append(str(host))
    for i, (count, names) in enumerate(sorted(by_count.items(), reverse=True)):
        each = " each" if len(names) > 1 else ""
        yield "" if i else "hosts", f"{hostlist.fold(names)}: {count}{each}"
    cost, least = _finite(plan, "hop_bytes"), _finite(plan, "least")
    if cost is not None:
        line = f"Hop-Byte {cost:.0f}"
        if least is not None:
            line += f", least possible without wishes {least:.0f}"
            if cost > least:
                line += f" ({cost - least:.0f} more)"
        yield "cost", line


def _rejection(record: Record) -> Iterator[tuple[str, str]]:
    rejection = _mapping(record, "rejection")
    reason = record.get("reason") or rejection.get("reason")
    if reason:
        yield "reason", str(reason)
    largest = rejection.get("largest")
    found = largest if isinstance(largest, list | tuple) else ()
    gangs = [gang for gang in found if isinstance(gang, Mapping)]
    for i, gang in enumerate(gangs):
        yield (
            "" if i else "would fit",
            f"{_number(gang, 'vms')} under one {_text(gang, 'level')} ({_text(gang, 'switch')})",
        )


def _counts(counts: Mapping[str, Any]) -> str:
    shown = [f"{name} ({count})" for name, count in list(counts.items())[:MAX_LEAVES]]
    more = len(counts) - len(shown)
    return ", ".join(shown) + (f" and {more} more" if more else "")


def _sum(counts: Mapping[str, Any]) -> int:
    return sum(_number(counts, name) for name in counts)


def _mapping(record: Record, key: str) -> Mapping[str, Any]:
    found = record.get(key)
    return found if isinstance(found, Mapping) else {}


def _number(record: Record, key: str) -> int:
    found = record.get(key)
    return found if isinstance(found, int) and not isinstance(found, bool) else 0


def _finite(record: Record, key: str) -> float | None:
    found = record.get(key)
    if not isinstance(found, int | float) or isinstance(found, bool):
        return None
    try:
        return found if math.isfinite(found) else None
    except OverflowError:  # a whole number that no float comes near
        return None


def _text(record: Record, key: str) -> str:
    return str(record.get(key) or "?")
