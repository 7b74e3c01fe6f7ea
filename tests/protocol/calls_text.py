"""What is sent to Placement and what it holds, in words: hosts and VMs by name."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from tests.protocol.actors import Call
from tests.protocol.nova_model import DEMAND, name_of
from tests.protocol.placement_model import PlacementModel

_PROVIDERS = "resource_providers"
UUID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")


def named(text: str) -> str:
    """Return a text with names in place of uuids."""
    return UUID.sub(lambda found: name_of(found[0]), text)


def call_text(call: Call) -> str:
    """Return a call as ``POST a1: h1 (new), a2: nothing (was 1)``."""
    path = call.path.partition("?")[0].strip("/").split("/")
    if path[0] == "resource_classes" or (call.method in ("POST", "PUT") and path[0] == _PROVIDERS):
        return f"{call.method} {' '.join([*path[1:], str((call.body or {}).get('name', ''))])}"
    if call.method == "POST":
        written = ", ".join(
            _claim_text(name_of(uuid), body) for uuid, body in (call.body or {}).items()
        )
        return f"POST {written}"
    if call.method == "PUT":
        return f"PUT {_claim_text(name_of(path[1]), call.body)}"
    if path[0] == "allocations":
        return f"{call.method} {name_of(path[1])}"
    if len(path) == 1:
        providers = "hosts with room" if "resources=" in call.path else "the tree"
        return f"{call.method} {providers if path[0] == 'resource_providers' else 'candidates'}"
    return f"{call.method} {path[2]} of {name_of(path[1])}"


def answer_text(call: Call, answer: Any) -> str:
    """Return status and content of an answer."""
    if not answer:
        return named(f"{answer.status_code} {answer.body['errors'][0]['detail']}")
    body, what = answer.body, call.path.partition("?")[0].strip("/").split("/")
    if what[0] == "allocation_candidates":
        found = [next(iter(one["allocations"])) for one in body["allocation_requests"]]
        return f"200 {' '.join(map(name_of, found)) or 'none'}"
    if what == ["resource_providers"] and "resources=" in call.path:
        found = [one["uuid"] for one in body["resource_providers"]]
        return f"200 {' '.join(sorted(map(name_of, found))) or 'none'}"
    if call.method == "GET" and what[0] == "allocations":
        held = hosts_text(body["allocations"])
        return f"200 {held} ({body['consumer_generation']})" if held else "200 nothing"
    if call.method == "GET" and what[-1] == "usages":
        return f"200 {next(iter(body['usages'].values()), 0)}"
    if call.method == "GET" and what[-1] == "allocations":
        return f"200 {' '.join(map(name_of, sorted(body['allocations']))) or 'nothing'}"
    return str(answer.status_code)


def hosts_text(allocations: Mapping[str, Any]) -> str:
    """Return the hosts of allocations, with how much of a VM's demand unless it is 1."""
    return "+".join(
        name_of(provider) + _times(_vms(found["resources"]))
        for provider, found in sorted(allocations.items())
    )


def held_text(placement: PlacementModel) -> str:
    """Return what Placement holds: hosts and generation of each consumer."""
    texts = []
    for uuid in sorted(placement.consumers.keys() | placement.allocations.keys(), key=name_of):
        record, rows = placement.consumers.get(uuid), placement.allocations.get(uuid, {})
        hosts = "+".join(sorted({placement.providers[at].name for at, _ in rows})) or "nothing"
        generation = record.generation if record is not None else "no consumer"
        texts.append(f"{name_of(uuid)} {hosts} ({generation})")
    return ", ".join(texts) or "nothing"


def _claim_text(name: str, body: Mapping[str, Any]) -> str:
    before = body["consumer_generation"]
    generation = "new" if before is None else f"was {before}"
    return f"{name}: {hosts_text(body['allocations']) or 'nothing'} ({generation})"


def _vms(resources: Mapping[str, int]) -> int:
    """Return for how many VMs an amount is; 1 of what is not counted in processors."""
    return resources["VCPU"] // DEMAND["VCPU"] if "VCPU" in resources else 1


def _times(number: int) -> str:
    return "" if number == 1 else f"*{number}"
