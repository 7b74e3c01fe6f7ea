"""Calls to Placement in words: VMs, nodes and holds by name."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hpc_sched.nova_glue.claim.holds import hold_numbers, hold_provider
from tests.protocol.actors import Call
from tests.protocol.calls_text import UUID
from tests.protocol.nova_model import name_of

if TYPE_CHECKING:
    from tests.group_histories.cloud import GroupCloud


def text(cloud: GroupCloud, call: Call) -> str:
    """Return a call as ``POST w1: a1, hold of w2: b1``."""
    if "allocations" not in call.path or call.method == "GET":
        return f"{call.method} {named(call.path)}"
    body = call.body or {}
    if call.method == "PUT":
        body = {call.path.rpartition("/")[2]: body}
    written = [_written(cloud, uuid, one) for uuid, one in body.items()]
    return f"{call.method} {', '.join(written) or named(call.path)}"


def answer(_: Call, found: Any) -> str:
    """Return the status of an answer, with what an error says."""
    if found:
        return str(found.status_code)
    return named(f"{found.status_code} {found.body['errors'][0]['detail']}")


def named(found: str) -> str:
    """Return a text with names in place of uuids."""
    return UUID.sub(lambda one: _name(one[0]), found)


def _written(cloud: GroupCloud, uuid: str, body: Any) -> str:
    allocations = body["allocations"]
    amounts = allocations.get(hold_provider.UUID, {}).get("resources", {})
    if (hold := hold_numbers.hold_of(amounts)) is not None:
        moving = " (moving)" if hold.is_moving else ""
        return f"hold of {_name(hold.instance)}: {cloud.node_called(hold.node)}{moving}"
    return f"{_name(uuid)}: {'+'.join(sorted(map(_name, allocations))) or 'nothing'}"


def _name(uuid: str) -> str:
    known = {hold_provider.TURN: "turn", hold_provider.UUID: "holds"}
    try:
        found = known.get(uuid) or name_of(uuid)
    except (UnicodeDecodeError, ValueError):
        found = ""
    # The consumer of a hold has a drawn uuid.
    return found if found.isprintable() and found else "a hold"
