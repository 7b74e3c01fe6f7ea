"""Rounds: a burst, its answers, the checks, and the end of its servers."""

from __future__ import annotations

import json
import random
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from hpc_sched.nova_glue.claim import abandoned_claims, claim_followup
from tests.contention import placement_rows, timeline, verification
from tests.contention.bursts import Burst, Outcome
from tests.contention.cloud import Cloud
from tests.contention.deployment import ReloadingScheduler, Scheduler
from tests.contention.verification import Broken, Findings

# Seconds for schedulers to release what they claimed in vain, at most: a request that Nova itself
# refuses is noticed by a garbage collection.
SETTLED_IN = claim_followup.ALL_AFTER + claim_followup.ALL_EVERY + 1.0
# And those of one that was killed, once the looks are over that can see them: see released_in.
RELEASED_IN = 5.0
LOOK_EVERY = 0.1
# Seconds that a gang claim is waited for, to kill its scheduler; and between two looks.
CLAIMED_IN, CLAIMED_EVERY = 30.0, 0.005


@dataclass
class Round:
    """What came of a burst."""

    outcomes: list[Outcome]
    findings: Findings
    calls: Counter[str] = field(default_factory=Counter)  # to Placement, for the burst itself
    seconds: Counter[str] = field(default_factory=Counter)  # that these took, by their kind
    audited: int = 0  # consumers that only an audit removed
    abandoned: int = 0  # VMs for which a dead scheduler held claims
    released_after: float | None = None  # seconds until none of them held any


def run(
    cloud: Cloud, log: timeline.CallLog, schedulers: Sequence[Scheduler], burst: Burst, seed: str
) -> Round:
    """Send a burst, check what came of it and delete its servers."""
    cloud.set_use(burst.used)
    cloud.deleted.clear()
    for request in burst.requests:
        if request.group is not None and request.group not in cloud.groups:
            assert request.policy is not None
            cloud.add_group(request.group, request.policy)
    log.skip()
    numbers = random.Random(seed)
    victim = numbers.choice(list(schedulers))
    outcomes = _send(cloud, log, schedulers, burst, victim)
    end = time.monotonic()
    found = Round(outcomes, Findings())
    by_nova = _settle(cloud, log, burst, found)
    findings = found.findings
    if burst.reload_after is not None:
        for outcome in outcomes:
            if outcome.is_dead:
                findings.add(Broken.LOST, outcome.request.vms[0])
    line, calls = log.read(burst.used, placement_rows.providers(cloud.placement_engine))
    verification.check_wishes(findings, outcomes, line, cloud.deleted)
    deadline = 2.0 * cloud.deployment.cell_timeout
    verification.check_answers(findings, outcomes, line, end, deadline=deadline)
    if (found_plans := plans([s.decisions for s in schedulers], outcomes)) is not None:
        verification.check_plans(findings, outcomes, found_plans, line)
    verification.check_times(findings, times([scheduler.times for scheduler in schedulers]))
    if not findings.broken:
        # Nothing right was removed since.
        held = cloud.allocations()
        ended = (burst.used, cloud.deleted, by_nova)
        verification.check_allocations(findings, outcomes, held, *ended)
    cloud.delete_all(outcomes)
    found.calls, found.seconds = calls, line.seconds
    left = cloud.allocations()
    if left and cloud.deleted >= left.keys():
        found.audited = len(left)
        _audit(cloud.deployment.conf)
        left = cloud.allocations()
    for consumer, places in left.items():
        findings.add(Broken.LEFT, f"{consumer} holds {places} after all servers were deleted")
        cloud.placement.delete_allocation_for_instance(cloud.context, consumer, force=True)
    for scheduler in schedulers:
        if scheduler.process.poll() is not None:
            scheduler.start()
    return found


def _send(
    cloud: Cloud,
    log: timeline.CallLog,
    schedulers: Sequence[Scheduler],
    burst: Burst,
    victim: Scheduler,
) -> list[Outcome]:
    begin = threading.Barrier(len(burst.requests))
    timers = [
        threading.Timer(request.deleted_after, cloud.delete_before_claim, [request.vms[-1]])
        for request in burst.requests
        if request.deleted_after is not None
    ]
    if burst.kill_after is not None:
        timers.append(threading.Timer(burst.kill_after, victim.kill))
    if burst.kill_at is not None:
        killing = partial(_kill_at, log, burst.kill_at, schedulers, burst)
        timers.append(threading.Timer(0, killing))
    if burst.reload_after is not None:
        assert isinstance(victim, ReloadingScheduler)
        timers.append(threading.Timer(burst.reload_after, victim.reload))

    def send(number: int) -> Outcome:
        request = burst.requests[number]
        begin.wait()
        time.sleep(request.delay)
        return cloud.create(request, schedulers[number % len(schedulers)])

    for timer in timers:
        timer.start()
    with ThreadPoolExecutor(len(burst.requests)) as pool:
        outcomes = list(pool.map(send, range(len(burst.requests))))
    for timer in timers:
        timer.join()
    return outcomes


def _kill_at(
    log: timeline.CallLog, number: int, schedulers: Sequence[Scheduler], burst: Burst
) -> None:
    """Kill the scheduler that has made one of the burst's gang claims; none without that claim."""
    of_vm = {
        vm: schedulers[i % len(schedulers)]
        for i, request in enumerate(burst.requests)
        for vm in request.vms
    }
    until = time.monotonic() + CLAIMED_IN
    while time.monotonic() < until:
        claims = log.gang_claims()
        if len(claims) >= number:
            of_vm[claims[number - 1][0]].kill()
            return
        time.sleep(CLAIMED_EVERY)


def _settle(cloud: Cloud, log: timeline.CallLog, burst: Burst, found: Round) -> set[str]:
    """Note what is wrong with allocations once schedulers had time to release theirs.

    Returns the VMs that Nova has claimed.
    """
    began = time.monotonic()
    dead = {vm for outcome in found.outcomes if outcome.is_dead for vm in outcome.request.vms}
    ends = (burst.kill_after, burst.kill_at, burst.reload_after)
    is_ended = any(one is not None for one in ends)
    until = began + (released_in(found.outcomes) if is_ended else SETTLED_IN)
    while True:
        found.findings = Findings()
        held, by_nova = cloud.allocations(), log.claimed_by_nova()
        abandoned = (dead & held.keys()) - by_nova
        found.abandoned = max(found.abandoned, len(abandoned))
        if not abandoned and found.abandoned and found.released_after is None:
            found.released_after = time.monotonic() - began
        ended = (burst.used, cloud.deleted, by_nova)
        verification.check_allocations(found.findings, found.outcomes, held, *ended)
        if not found.findings.broken or time.monotonic() > until:
            return by_nova
        time.sleep(LOOK_EVERY)


def released_in(outcomes: Sequence[Outcome]) -> float:
    """Return the seconds in which claims of a dead scheduler are released, as the docs state.

    One look reads some instances in cell0, the newest first, whether they hold a claim or not.
    """
    buried = sum(len(outcome.request.vms) for outcome in outcomes if not outcome.hosts)
    looks = 1 + buried // abandoned_claims.MAX_READS
    return looks * abandoned_claims.INTERVAL + RELEASED_IN


def plans(
    decisions: Iterable[Path], outcomes: Sequence[Outcome]
) -> dict[str, list[str] | None] | None:
    """Return the leaves of the last plan of each request, by its first VM; empty the logs.

    None for a request without a plan, and None altogether without any log.

    :param decisions: the schedulers' decision logs
    """
    wanted = {outcome.request.vms[0] for outcome in outcomes}
    logs = [log for log in decisions if log.exists()]
    found: dict[str, list[str] | None] = {}
    for log in logs:
        for line in log.read_text().splitlines():
            entry = json.loads(line)
            if entry["instance"] in wanted and entry["decision"] in ("planned", "no plan"):
                plan = entry.get("plan")
                found[entry["instance"]] = list(plan["leaves"]) if plan else None
        log.write_text("")
    return found if logs else None


def times(logs: Iterable[Path]) -> list[dict[str, Any]]:
    """Return what schedulers have measured; empty their logs."""
    found: list[dict[str, Any]] = []
    for log in logs:
        if log.exists():
            found += [json.loads(line) for line in log.read_text().splitlines()]
            log.write_text("")
    return found


def _audit(conf: Path) -> None:
    """Run ``nova-manage placement audit --delete``."""
    command = ("from nova.cmd.manage import main; raise SystemExit(main())", "--config-file")
    audit = (str(conf), "placement", "audit", "--delete")
    done = subprocess.run(
        [sys.executable, "-c", *command, *audit], capture_output=True, check=False
    )
    # It has removed something.
    assert done.returncode == 4, done.stderr.decode()
