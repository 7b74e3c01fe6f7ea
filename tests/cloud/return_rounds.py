"""Rounds in which several groups lose their places at once and come back VM by VM.

``evacuation``: their leaf dies, and Masakari evacuates it. ``unshelve``: they are shelved, other
VMs take places meanwhile, and their users unshelve them.
"""

from __future__ import annotations

import math
import random
import re
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import requests

from tests.cloud import holds, lost_places
from tests.cloud.deployment import HOSTS, Deployment
from tests.cloud.instances import add_flavor, delete_all, flavor_of, settled
from tests.cloud.lost_places import Loss
from tests.cloud.moves import HOST, Move, move_all, shelve_all
from tests.cloud.rounds import USED, Round
from tests.contention import fabric, placement_rows, timeline, verification
from tests.contention.bursts import Outcome, Request
from tests.contention.verification import Findings

BLOCK = "b10c0000-0000-4000-8000-000000000000"  # consumer that keeps the groups off other leaves
_NOT_RELEASED = re.compile(r"\[instance: (\S+)\] Failed to clean allocation of evacuated instance")
MICROVERSION = "1.28"  # of Placement; the first one with the generations of consumers


def evacuation(
    cloud: Deployment, log: timeline.CallLog, _decisions: Sequence[Path], numbers: random.Random
) -> Round:
    """Let a leaf die, evacuate its VMs, check where they are, and clean all up."""
    loss = lost_places.draw(numbers, is_dead=True)
    dead = fabric.LEAVES[loss.home]
    with _groups(cloud, loss) as servers:
        _boot_others(cloud, loss)
        cloud.kill_computes(dead)
        log.skip()
        moves = move_all(cloud.api, servers, "evacuate")
        used = loss.others | dict.fromkeys(dead, fabric.VCPUS)
        found = _judged(cloud, log, loss, moves, used)
        cloud.start_computes(dead)
        _check_places(cloud, found, dead)
        _clean(cloud, found)
    return found


def unshelve(
    cloud: Deployment, log: timeline.CallLog, _decisions: Sequence[Path], numbers: random.Random
) -> Round:
    """Shelve whole groups, unshelve them, check where they are, and clean all up."""
    loss = lost_places.draw(numbers, is_dead=False)
    with _groups(cloud, loss) as servers:
        shelve_all(cloud.api, servers)
        _boot_others(cloud, loss)
        log.skip()
        shelved = [server | {HOST: None} for server in servers]
        found = _judged(cloud, log, loss, move_all(cloud.api, shelved, "unshelve"), loss.others)
        _check_places(cloud, found)
        _clean(cloud, found)
    return found


def _clean(cloud: Deployment, found: Round) -> None:
    delete_all(cloud, found.findings)
    holds.check(cloud, found.findings)
    if left := holds.ends(cloud):
        found.notes.append(f"{len(left)} places are held at the end")


@contextmanager
def _groups(cloud: Deployment, loss: Loss) -> Iterator[list[dict[str, Any]]]:
    """Create the groups on their leaf; yield their servers in the order of the hosts."""
    ids, count, home = [], 0, fabric.LEAVES[loss.home]
    with _blocked(cloud, set(HOSTS) - set(home)):
        for request in loss.groups:
            ids.append(cloud.api.add_group(str(request.group), "anti-affinity"))
            vms = len(request.vms)
            cloud.api.boot(str(request.group), flavor_of(cloud, request), vms, ids[-1])
            count += vms
            settled(cloud, count)
    servers = cloud.api.servers()
    for server in servers:
        assert server[HOST] in home, f"not created on {loss.home}: {server}"
    order = {host: number for number, host in enumerate(loss.order)}
    yield sorted(servers, key=lambda server: (order[server[HOST]], server["name"]))
    for group in ids:
        cloud.api.call("DELETE", f"/os-server-groups/{group}")


def _boot_others(cloud: Deployment, loss: Loss) -> None:
    count = sum(len(request.vms) for request in loss.groups)
    for host, vcpus in loss.others.items():
        add_flavor(cloud, f"others-{vcpus}", vcpus, {})
        cloud.api.boot(f"x-{host}", f"others-{vcpus}", host=host)
    settled(cloud, count + len(loss.others))


@contextmanager
def _blocked(cloud: Deployment, hosts: set[str]) -> Iterator[None]:
    """Hold hosts that are free in Placement."""
    ids = placement_rows.providers(cloud.databases["placement"])
    everything = {"resources": {"VCPU": fabric.VCPUS}}
    body = {
        "allocations": {provider: everything for provider, host in ids.items() if host in hosts},
        "consumer_generation": None,
        "project_id": "project",
        "user_id": "user",
    }
    url = f"{cloud.placement}allocations/{BLOCK}"
    headers = {"X-Auth-Token": "a", "OpenStack-API-Version": f"placement {MICROVERSION}"}
    requests.put(url, json=body, headers=headers, timeout=60).raise_for_status()
    yield
    requests.delete(url, headers=headers, timeout=60).raise_for_status()


def _judged(
    cloud: Deployment,
    log: timeline.CallLog,
    loss: Loss,
    moves: Sequence[Move],
    used: Mapping[str, int],
) -> Round:
    """Return what came of the moves, compared with the room that there was.

    :param used: host to VCPUs that the groups could not have
    """
    end = time.monotonic()
    by_name = {move.name: move for move in moves}
    outcomes = [
        outcome
        for request in loss.groups
        for outcome in _outcomes(request, [by_name[vm] for vm in request.vms])
    ]
    findings = Findings()
    line, calls = log.read(USED | used, placement_rows.providers(cloud.databases["placement"]))
    verification.check_wishes(findings, outcomes, line)
    verification.check_answers(findings, outcomes, line, end, deadline=math.inf)
    seconds = [move.ended - move.sent for move in moves if move.host]
    sizes = " + ".join(f"{len(request.vms)}" for request in loss.groups)
    notes = [f"{sizes} VMs of {loss.groups[0].vcpus} VCPUs on {loss.home}"]
    notes += [f"{move.name} ({move.server}): {move.refused}" for move in moves if not move.host]
    began = min(move.sent for move in moves)
    return Round(outcomes, findings, calls, seconds, end - began, notes)


def _outcomes(request: Request, moves: Sequence[Move]) -> Iterator[Outcome]:
    """Yield that of the VMs with a place, and one of each that has failed."""
    placed = [move for move in moves if move.host]
    if placed:
        sent, ended = min(move.sent for move in placed), max(move.ended for move in placed)
        part = replace(request, vms=tuple(move.server for move in placed))
        yield Outcome(part, tuple(str(move.host) for move in placed), None, sent, ended)
    for move in moves:
        if not move.host:
            part = replace(request, vms=(move.server,))
            yield Outcome(part, (), move.refused, move.sent, move.ended)


def _check_places(cloud: Deployment, found: Round, started: Sequence[str] = ()) -> None:
    """Check that Placement holds each server on its host and nothing else.

    Nova's compute releases what was evacuated at its start with one call, and never again if others
    change the new host at that moment. It logs that; such places are noted, and are no fault.

    :param started: hosts whose computes have started again
    """
    outcomes = [_placed(server) for server in cloud.api.servers() if server[HOST]]
    held = placement_rows.allocations(cloud.databases["placement"])
    for host in started:
        for vm in _NOT_RELEASED.findall((cloud.folder / f"{host}.log").read_text()):
            if held.get(vm, {}).pop(host, None):
                found.notes.append(f"Nova has left the place of {vm} on {host}")
    verification.check_allocations(found.findings, outcomes, held, dict.fromkeys(HOSTS, 0))


def _placed(server: dict[str, Any]) -> Outcome:
    request = Request((server["id"],), server["flavor"]["vcpus"])
    return Outcome(request, (server[HOST],), None, 0.0, 0.0)
