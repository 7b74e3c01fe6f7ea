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
from pathlib import Path
from typing import Any

from hpc_sched.nova_glue.claim import claim_followup
from tests.contention import placement_rows, timeline, verification
from tests.contention.bursts import Burst, Outcome
from tests.contention.cloud import Cloud
from tests.contention.deployment import Scheduler
from tests.contention.verification import Broken, Findings

# Seconds for schedulers to release what they claimed in vain, at most: a request that Nova itself
# refuses is noticed by a garbage collection.
SETTLED_IN = claim_followup.ALL_AFTER + claim_followup.ALL_EVERY + 1.0
LOOK_EVERY = 0.1


@dataclass
class Round:
    """What came of a burst."""

    outcomes: list[Outcome]
    findings: Findings
    calls: Counter[str] = field(default_factory=Counter)  # to Placement, for the burst itself
    audited: int = 0  # consumers that only an audit removed


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
    victim = numbers.choice(list(schedulers)) if burst.kill_after is not None else None
    outcomes = _send(cloud, schedulers, burst, victim)
    end = time.monotonic()
    findings = _settled(cloud, outcomes, burst)
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
        verification.check_allocations(findings, outcomes, held, burst.used, cloud.deleted)
    cloud.delete_all(outcomes)
    found = Round(outcomes, findings, calls)
    left = cloud.allocations()
    if left and cloud.deleted >= left.keys():
        found.audited = len(left)
        _audit(cloud.deployment.conf)
        left = cloud.allocations()
    for consumer, places in left.items():
        findings.add(Broken.LEFT, f"{consumer} holds {places} after all servers were deleted")
        cloud.placement.delete_allocation_for_instance(cloud.context, consumer, force=True)
    if victim is not None:
        victim.start()
    return found


def _send(
    cloud: Cloud, schedulers: Sequence[Scheduler], burst: Burst, victim: Scheduler | None
) -> list[Outcome]:
    begin = threading.Barrier(len(burst.requests))
    timers = [
        threading.Timer(request.deleted_after, cloud.delete_before_claim, [request.vms[-1]])
        for request in burst.requests
        if request.deleted_after is not None
    ]
    if victim is not None:
        assert burst.kill_after is not None
        timers.append(threading.Timer(burst.kill_after, victim.kill))

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


def _settled(cloud: Cloud, outcomes: Sequence[Outcome], burst: Burst) -> Findings:
    """Return what is wrong with allocations once schedulers had time to release theirs."""
    until = time.monotonic() + SETTLED_IN
    while True:
        findings = Findings()
        held = cloud.allocations()
        verification.check_allocations(findings, outcomes, held, burst.used, cloud.deleted)
        if not findings.broken or time.monotonic() > until:
            return findings
        time.sleep(LOOK_EVERY)


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
