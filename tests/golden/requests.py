"""Requests through Nova's own handlers with the real filters and weighers: what became of each."""

import json
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from nova import exception, objects
from nova.scheduler import filters, host_manager, weights

from tests.golden import edge, kinds, scene
from tests.golden.record import Case, digest
from tests.golden.scene import Scene

CASES = 3000
# What differs from run to run, and from machine to machine; the planner's input, which decisions
# of random groups have, see tests/golden/explained.py; and the project, which all have alike.
_VARYING = ("time", "seconds", "times", "request_id", "scheduler", "input", "project")
_MILLISECONDS = re.compile(r"; [0-9.]+ ms(?: \([^)]*\))?$")

States = list[host_manager.HostState]


@dataclass
class Outcome:
    """What became of a request."""

    placed: list[str] = field(default_factory=list)  # the node of each VM
    kept: list[str] = field(default_factory=list)  # a digest of the hosts left, VM by VM
    order: list[str] = field(default_factory=list)  # a digest of hosts and weights, VM by VM
    refused: str | None = None  # what the tenant reads, or why no host was claimed
    lost: int = 0  # claims


class Claims:
    """What Nova and Placement do around the filters: hard policies, and who gets a claim."""

    def __init__(self, drawn: Scene) -> None:
        self._scene = drawn
        self._of_group = Counter[str]()  # VMs of the group by service host
        for (host, _), count in drawn.members.items():
            self._of_group[host] += count
        self._free = {node: host.room(*drawn.wanted.size) for node, host in drawn.hosts.items()}
        # Placement knows better than HostState of hosts that seem to be full.
        self._offered = frozenset(list(drawn.hosts)[::2] if drawn.with_full else ())
        for node in self._offered:
            self._free[node] = max(self._free[node], 1)

    def candidates(self) -> States:
        """Return what Placement offers."""
        drawn = self._scene
        return [
            edge.state_of(host, is_offered=self._free[node] > 0)
            for node, host in drawn.hosts.items()
            if host.offered and (drawn.with_full or self._free[node])
        ]

    def permitted(self, states: States) -> States:
        """Return the hosts that pass Nova's own filters of a server group's policy."""
        wanted = self._scene.wanted
        there = {host for host, count in self._of_group.items() if count}
        if wanted.policy == "affinity" and there:
            return [state for state in states if state.host in there]
        if wanted.policy == "anti-affinity":
            most = wanted.max_per_host or 1
            return [state for state in states if self._of_group[state.host] < most]
        return states

    def claim(
        self, states: States, request: objects.RequestSpec, losing: int
    ) -> tuple[str | None, int]:
        """Claim the first host that has room; return its node and the claims that were lost.

        :param losing: how many hosts somebody else has just taken
        """
        taken = [state.nodename for state in states[:losing] if len(states) > losing]
        self._free |= dict.fromkeys(taken, 0)
        for lost, state in enumerate(states):
            if self._free[state.nodename] > 0:
                self._free[state.nodename] -= 1
                self._of_group[state.host] += 1
                state.consume_from_request(request)
                return state.nodename, lost
        return None, len(states)


def weighed(
    states: States, request: objects.RequestSpec, weighers: Sequence[Any]
) -> list[tuple[host_manager.HostState, float]]:
    """Return the hosts with their weights, best first, those of one weight by name."""
    found = weights.HostWeightHandler().get_weighed_objects(weighers, states, request)
    found.sort(key=lambda host: (-host.weight, host.obj.nodename))
    return [(host.obj, host.weight) for host in found]


def schedule(drawn: Scene, request: objects.RequestSpec) -> Outcome:
    """Place the VMs of a request in turn as Nova's scheduler does."""
    chain, weighers = edge.chains(drawn.setup)
    handler, claims, outcome = filters.HostFilterHandler(), Claims(drawn), Outcome()
    states = claims.candidates()

    def sorted_hosts(index: int) -> States:
        kept = claims.permitted(states)
        kept = list(handler.get_filtered_objects(chain, kept, request, index) or ())
        outcome.kept.append(digest(sorted(state.nodename for state in kept), length=6))
        order = weighed(kept, request, weighers) if kept else []
        named = [(state.nodename, f"{weight:.9g}") for state, weight in order]
        outcome.order.append(digest(named, length=6))
        return [state for state, _ in order]

    for index, uuid in enumerate(drawn.own):
        request.instance_uuid = uuid
        try:
            states = sorted_hosts(index)
        except exception.NoValidHost as refused:
            outcome.refused = str(refused)
            return outcome
        node, lost = claims.claim(states, request, drawn.losing.get(index, 0))
        outcome.lost += lost
        if node is None:
            outcome.refused = "no claim" if states else "no host left"
            return outcome
        outcome.placed.append(node)
    # Nova looks for alternates once all have a place.
    try:
        sorted_hosts(len(drawn.own) - 1)
    except exception.NoValidHost as refused:
        outcome.refused = f"at the end: {refused}"
    return outcome


def case_of(seed: int, folder: Path) -> Case:
    """Return what is recorded of the request of a seed."""
    drawn = scene.draw(seed)
    with edge.listening(folder) as said, edge.enabled(drawn, folder), edge.databases_of(drawn):
        outcome = schedule(drawn, edge.request_of(drawn))
    log = [_MILLISECONDS.sub("", line) for line in said]
    decisions = _decisions(folder / f"{seed}.jsonl")
    return {
        "case": seed,
        "seed": seed,
        "kinds": kinds.of_request(drawn, outcome.placed, outcome.refused, outcome.lost),
        "placed": " ".join(outcome.placed),
        "refused": outcome.refused,
        "lost": outcome.lost,
        "kept": " ".join(outcome.kept),
        "order": " ".join(outcome.order),
        "log": log,
        "decisions": decisions,
    }


def cases(folder: Path, seeds: Sequence[int] = range(CASES)) -> Iterator[Case]:
    """Yield the cases of some seeds.

    :param folder: for their files
    """
    for seed in seeds:
        yield case_of(seed, folder)


def _decisions(path: Path) -> list[dict[str, Any]]:
    if not path.exists():
        return []
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    return [{key: said for key, said in line.items() if key not in _VARYING} for line in lines]
