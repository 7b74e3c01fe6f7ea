"""Rounds: a burst through the API, what came of it, the checks, and the end of its servers."""

from __future__ import annotations

import json
import math
import threading
import time
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import requests
import sqlalchemy as sa

from tests.cloud import service
from tests.cloud.bursts import Burst
from tests.cloud.deployment import HOSTS, Deployment
from tests.contention import fabric, placement_rows, timeline, verification
from tests.contention.bursts import Outcome, Request
from tests.contention.rounds import plans
from tests.contention.verification import Broken, Findings

SETTLED_IN = 300  # seconds, at most
USED = fabric.free_leaves(len(HOSTS) // fabric.HOSTS_A_LEAF)  # the other leaves do not exist
SETTLED = ("active", "error")
AT_ONCE = 4  # deletions
SMALL = "small"  # flavor

_STATES = sa.text("SELECT display_name, vm_state FROM instances WHERE deleted = 0")
_IDLE = sa.text("SELECT SUM(vcpus_used) FROM compute_nodes WHERE deleted = 0")
_STATS = sa.text("SELECT host, stats FROM compute_nodes WHERE deleted = 0")


@dataclass
class Round:
    """What came of a burst."""

    outcomes: list[Outcome]  # of VMs with a host, and of those without
    findings: Findings
    calls: Counter[str]  # to Placement, for the burst itself
    seconds: list[float]  # of each active VM, since its request was accepted
    duration: float  # until all VMs were active or had failed


def run(cloud: Deployment, log: timeline.CallLog, decisions: Sequence[Path], burst: Burst) -> Round:
    """Send a burst, check what came of it and delete its servers."""
    _prepare(cloud, burst.failed)
    names = {request.group for request in burst.requests}
    groups = {name: cloud.api.add_group(name, "anti-affinity") for name in sorted(map(str, names))}
    flavors = [_flavor(cloud, request) for request in burst.requests]
    log.skip()
    moments = _send(cloud, burst.requests, flavors, groups)
    settled = _settled(cloud, sum(len(request.vms) for request in burst.requests))
    end = time.monotonic()
    servers = {server["name"]: server for server in cloud.api.servers()}
    outcomes = [
        outcome
        for request, (sent, _) in zip(burst.requests, moments, strict=True)
        for outcome in _outcomes(request, sent, settled, servers)
    ]
    findings = Findings()
    engine = cloud.databases["placement"]
    line, calls = log.read(USED, placement_rows.providers(engine))
    verification.check_allocations(findings, outcomes, placement_rows.allocations(engine), USED)
    verification.check_wishes(findings, outcomes, line)
    verification.check_answers(findings, outcomes, line, end, deadline=math.inf)
    if (found := plans(decisions, outcomes)) is not None:
        verification.check_plans(findings, outcomes, found, line)
    accepted = {
        vm: moment for r, (_, moment) in zip(burst.requests, moments, strict=True) for vm in r.vms
    }
    seconds = [
        moment - accepted[vm] for vm, (state, moment) in settled.items() if state == "active"
    ]
    _delete_all(cloud, findings)
    for group in groups.values():
        cloud.api.call("DELETE", f"/os-server-groups/{group}")
    return Round(outcomes, findings, calls, seconds, end - min(sent for sent, _ in moments))


def _send(
    cloud: Deployment,
    requests_: Sequence[Request],
    flavors: Sequence[str],
    groups: dict[str, str],
) -> list[tuple[float, float]]:
    """Send requests at once; return when each was sent and accepted."""
    begin = threading.Barrier(len(requests_))

    def send(number: int) -> tuple[float, float]:
        request = requests_[number]
        count = len(request.vms)
        name = request.vms[0] if count == 1 else str(request.group)
        begin.wait()
        time.sleep(request.delay)
        sent = time.monotonic()
        cloud.api.boot(name, flavors[number], count, groups[str(request.group)])
        return sent, time.monotonic()

    with ThreadPoolExecutor(len(requests_)) as pool:
        return list(pool.map(send, range(len(requests_))))


def _settled(cloud: Deployment, count: int) -> dict[str, tuple[str, float]]:
    """Wait until all servers are active or have failed; return how and when, by name."""
    found: dict[str, tuple[str, float]] = {}

    def look() -> bool:
        now = time.monotonic()
        for part in ("cell0", "cell1"):
            with cloud.databases[part].connect() as connection:
                for name, state in connection.execute(_STATES):
                    if state in SETTLED:
                        found.setdefault(name, (state, now))
        return len(found) == count

    cloud.processes.wait_for(f"{count} servers active or in error", SETTLED_IN, look)
    return found


def _outcomes(
    request: Request,
    sent: float,
    settled: dict[str, tuple[str, float]],
    servers: dict[str, Any],
) -> list[Outcome]:
    """Return what Nova's API says of a request's VMs: of those with a host, and of the others."""
    own = [servers[name] for name in request.vms]
    answered = max(settled[name][1] for name in request.vms)
    active = [server for server in own if server["status"] == "ACTIVE"]
    failed = [server for server in own if server["status"] != "ACTIVE"]
    found = []
    if active:
        hosts = tuple(server["OS-EXT-SRV-ATTR:host"] for server in active)
        part = replace(request, vms=tuple(server["id"] for server in active))
        found.append(Outcome(part, hosts, None, sent, answered))
    if failed:
        part = replace(request, vms=tuple(server["id"] for server in failed))
        reason = failed[0].get("fault", {}).get("message", failed[0]["status"])
        found.append(Outcome(part, (), reason, sent, answered))
    return found


def _delete_all(cloud: Deployment, findings: Findings) -> None:
    """Delete all servers; what Placement holds when their hosts are idle is left."""

    def are_gone() -> bool:
        rows = sum(len(_states(cloud, part)) for part in ("cell0", "cell1"))
        return rows == 0 and cloud.scalar("cell1", _IDLE) == 0

    with ThreadPoolExecutor(AT_ONCE) as pool:
        ids = [server["id"] for server in cloud.api.servers()]
        list(pool.map(lambda vm: cloud.api.call("DELETE", f"/servers/{vm}"), ids))
    cloud.processes.wait_for("the end of all servers", SETTLED_IN, are_gone)
    for consumer, places in placement_rows.allocations(cloud.databases["placement"]).items():
        findings.add(Broken.LEFT, f"{consumer} holds {places} after all servers were deleted")
        requests.delete(
            f"{cloud.placement}allocations/{consumer}", timeout=60, headers={"X-Auth-Token": "a"}
        )


def _states(cloud: Deployment, part: str) -> dict[str, str]:
    with cloud.databases[part].connect() as connection:
        return dict(connection.execute(_STATES).all())


def _flavor(cloud: Deployment, request: Request) -> str:
    """Return the flavor of a request, which is created at its first use."""
    wishes = request.wishes or {}
    name = "-".join([str(request.vcpus), *(f"{key}-{value}" for key, value in wishes.items())])
    _add_flavor(cloud, name, request.vcpus, wishes)
    return name


def _add_flavor(cloud: Deployment, name: str, vcpus: int, wishes: Any) -> None:
    if name not in cloud.flavors:
        cloud.api.add_flavor(name, vcpus, wishes)
        cloud.flavors.add(name)


def _prepare(cloud: Deployment, failed: frozenset[str]) -> None:
    """Have the last build of some hosts fail, and that of all others succeed."""
    _add_flavor(cloud, SMALL, 1, {})
    before = _failed_hosts(cloud)
    # A compute reports the failure of a build with its next one.
    _build(cloud, [(f"{service.FAILS}-{n}-{h}", h) for n in (0, 1) for h in failed - before])
    _build(cloud, [(f"builds-{host}", host) for host in before - failed])
    what = f"failed builds of {len(failed)} hosts"
    cloud.processes.wait_for(what, SETTLED_IN, lambda: _failed_hosts(cloud) == failed)


def _build(cloud: Deployment, servers: Sequence[tuple[str, str]]) -> None:
    for name, host in servers:
        cloud.api.boot(name, SMALL, host=host)
    if servers:
        _settled(cloud, len(servers))
        _delete_all(cloud, Findings())


def _failed_hosts(cloud: Deployment) -> frozenset[str]:
    with cloud.databases["cell1"].connect() as connection:
        rows = connection.execute(_STATS).all()
    counts = {host: int(json.loads(stats or "{}").get("failed_builds", 0)) for host, stats in rows}
    return frozenset(host for host, count in counts.items() if count)
