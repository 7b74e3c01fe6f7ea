"""Rounds: a burst through the API, what came of it, the checks, and the end of its servers."""

from __future__ import annotations

import json
import math
import threading
import time
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import sqlalchemy as sa

from tests.cloud import computes
from tests.cloud.bursts import Burst
from tests.cloud.deployment import HOSTS, Deployment
from tests.cloud.instances import SETTLED_IN, add_flavor, delete_all, flavor_of, settled
from tests.contention import fabric, placement_rows, timeline, verification
from tests.contention.bursts import Outcome, Request
from tests.contention.rounds import plans
from tests.contention.verification import Findings

USED = fabric.free_leaves(len(HOSTS) // fabric.HOSTS_A_LEAF)  # the other leaves do not exist
SMALL = "small"  # flavor

_STATS = sa.text("SELECT host, stats FROM compute_nodes WHERE deleted = 0")


@dataclass
class Round:
    """What came of a burst."""

    outcomes: list[Outcome]  # of VMs with a host, and of those without
    findings: Findings
    calls: Counter[str]  # to Placement, for the burst itself
    seconds: list[float]  # of each active VM, since its request was accepted
    duration: float  # until all VMs were active or had failed
    notes: list[str] = field(default_factory=list)  # on what has failed


def run(cloud: Deployment, log: timeline.CallLog, decisions: Sequence[Path], burst: Burst) -> Round:
    """Send a burst, check what came of it and delete its servers."""
    _prepare(cloud, burst.failed)
    names = {request.group for request in burst.requests}
    groups = {name: cloud.api.add_group(name, "anti-affinity") for name in sorted(map(str, names))}
    flavors = [flavor_of(cloud, request) for request in burst.requests]
    log.skip()
    moments = _send(cloud, burst.requests, flavors, groups)
    ends = settled(cloud, sum(len(request.vms) for request in burst.requests))
    end = time.monotonic()
    servers = {server["name"]: server for server in cloud.api.servers()}
    outcomes = [
        outcome
        for request, (sent, _) in zip(burst.requests, moments, strict=True)
        for outcome in _outcomes(request, sent, ends, servers)
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
    seconds = [moment - accepted[vm] for vm, (state, moment) in ends.items() if state == "active"]
    delete_all(cloud, findings)
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


def _outcomes(
    request: Request,
    sent: float,
    ends: dict[str, tuple[str, float]],
    servers: dict[str, Any],
) -> list[Outcome]:
    """Return what Nova's API says of a request's VMs: of those with a host, and of the others."""
    own = [servers[name] for name in request.vms]
    answered = max(ends[name][1] for name in request.vms)
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


def _prepare(cloud: Deployment, failed: frozenset[str]) -> None:
    """Have the last build of some hosts fail, and that of all others succeed."""
    add_flavor(cloud, SMALL, 1, {})
    before = _failed_hosts(cloud)
    # A compute reports the failure of a build with its next one.
    _build(cloud, [(f"{computes.FAILS}-{n}-{h}", h) for n in (0, 1) for h in failed - before])
    _build(cloud, [(f"builds-{host}", host) for host in before - failed])
    what = f"failed builds of {len(failed)} hosts"
    cloud.processes.wait_for(what, SETTLED_IN, lambda: _failed_hosts(cloud) == failed)


def _build(cloud: Deployment, servers: Sequence[tuple[str, str]]) -> None:
    for name, host in servers:
        cloud.api.boot(name, SMALL, host=host)
    if servers:
        settled(cloud, len(servers))
        delete_all(cloud, Findings())


def _failed_hosts(cloud: Deployment) -> frozenset[str]:
    with cloud.databases["cell1"].connect() as connection:
        rows = connection.execute(_STATS).all()
    counts = {host: int(json.loads(stats or "{}").get("failed_builds", 0)) for host, stats in rows}
    return frozenset(host for host, count in counts.items() if count)
