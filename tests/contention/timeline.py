"""What was held of the hosts at every moment, by the log of what Placement was sent."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.contention.fabric import VCPUS

# Placement's code for a provider that others have changed at the same moment.
CONCURRENT_UPDATE = "placement.concurrent_update"
# Claims that Nova sends then, see nova.scheduler.client.report.retries.
CLAIM_ATTEMPTS = 4


@dataclass(frozen=True)
class Write:
    """A write of one consumer's allocations that succeeded."""

    consumer: str
    vcpus: Mapping[str, int]  # by host; empty where all is removed
    began: float  # time.monotonic()
    ended: float


@dataclass(frozen=True)
class Held:
    """VCPUs of a host that a consumer held, at most from the first to the last moment."""

    consumer: str
    host: str
    vcpus: int
    first: float
    last: float


@dataclass
class Timeline:
    """The calls of one round."""

    used: Mapping[str, int]  # host to VCPUs that others use
    held: list[Held] = field(default_factory=list)
    # Consumer and host to Nova's claims that failed because others changed the host.
    conflicts: Counter[tuple[str, str]] = field(default_factory=Counter)
    # Seconds that Placement took, by method and path.
    seconds: Counter[str] = field(default_factory=Counter)

    def given_up(self, vm: str) -> set[str]:
        """Return the hosts on which Nova's claims of a VM failed by conflicts, all it sends."""
        return {
            host
            for (consumer, host), number in self.conflicts.items()
            if consumer == vm and number >= CLAIM_ATTEMPTS
        }

    def lowest_room(self, first: float, last: float, without: Iterable[str] = ()) -> dict[str, int]:
        """Return the least VCPUs that were free on each host between two moments.

        A place counts as taken from the beginning of the call that takes it to the end of the one
        that gives it back.

        :param without: consumers whose places count as free
        """
        ignored = set(without)
        room = {}
        by_host: defaultdict[str, list[Held]] = defaultdict(list)
        for found in self.held:
            if found.first <= last and found.last >= first and found.consumer not in ignored:
                by_host[found.host].append(found)
        for host, used in self.used.items():
            # What is held at once is most where something begins.
            most = max(
                (
                    sum(h.vcpus for h in by_host[host] if h.first <= moment <= h.last)
                    for moment in (first, *(h.first for h in by_host[host] if h.first > first))
                ),
                default=0,
            )
            room[host] = VCPUS - used - most
        return room


class CallLog:
    """Reads a log that is being written."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.offset = 0

    def skip(self) -> None:
        """Forget what has been written so far."""
        self.offset = self.path.stat().st_size

    def claimed_by_nova(self) -> set[str]:
        """Return the consumers that Nova has claimed since the last call of :meth:`read`."""
        return {
            call["path"].rpartition("/")[2]
            for call in self._calls()
            if call["method"] == "PUT" and call["status"] == 204
            if call["path"].startswith("/allocations/")
        }

    def gang_claims(self) -> list[list[str]]:
        """Return the consumers of each claim ahead of Nova's since then, in their order."""
        return [
            list(call["body"])
            for call in self._calls()
            if call["method"] == "POST" and call["status"] == 204
            if all("consumer_type" in claim for claim in call["body"].values())
        ]

    def _calls(self) -> list[dict[str, Any]]:
        with self.path.open() as file:
            file.seek(self.offset)
            # The last line may be incomplete.
            lines = file.read().rpartition("\n")[0].splitlines()
        return [json.loads(line) for line in lines]

    def read(
        self, used: Mapping[str, int], hosts: Mapping[str, str]
    ) -> tuple[Timeline, Counter[str]]:
        """Return the timeline since the last call, and the number of calls by method and path.

        :param used: host to VCPUs that others use
        :param hosts: of the providers
        """
        with self.path.open() as file:
            file.seek(self.offset)
            lines = file.read()
            self.offset = file.tell()
        calls = [json.loads(line) for line in lines.splitlines()]
        writes = [
            write
            for call in sorted(calls, key=lambda found: float(found["ended"]))
            if call["status"] in (200, 204)
            for write in _writes(call, hosts)
        ]
        kinds = Counter(map(_kind, calls))
        found = timeline(used, writes)
        for call in calls:
            found.seconds[_kind(call)] += call["ended"] - call["began"]
            if call["method"] == "PUT" and call.get("code") == CONCURRENT_UPDATE:
                for write in _writes(call, hosts):
                    found.conflicts.update((write.consumer, host) for host in write.vcpus)
        return found, kinds


def timeline(used: Mapping[str, int], writes: Iterable[Write]) -> Timeline:
    """Return the timeline of the writes of one round."""
    found = Timeline(used)
    last: dict[str, Write] = {}
    for write in writes:
        before = last.get(write.consumer)
        if before is not None and before.vcpus == write.vcpus:
            continue  # Nova claims what is claimed already
        if before is not None:
            found.held += _held(before, write.ended)
        last[write.consumer] = write
    for write in last.values():
        found.held += _held(write, float("inf"))
    return found


def _kind(call: Mapping[str, Any]) -> str:
    return f"{call['method']} /{call['path'].split('/')[1]}"


def _held(write: Write, until: float) -> list[Held]:
    return [
        Held(write.consumer, host, vcpus, write.began, until) for host, vcpus in write.vcpus.items()
    ]


def _writes(call: Mapping[str, Any], hosts: Mapping[str, str]) -> Iterable[Write]:
    parts = call["path"].strip("/").split("/")
    if parts[0] != "allocations":
        return
    moments = (call["began"], call["ended"])
    if call["method"] == "DELETE":
        yield Write(parts[1], {}, *moments)
    elif call["method"] == "PUT":
        yield Write(parts[1], _vcpus(call["body"]["allocations"], hosts), *moments)
    elif call["method"] == "POST":
        for consumer, body in call["body"].items():
            yield Write(consumer, _vcpus(body["allocations"], hosts), *moments)


def _vcpus(allocations: Mapping[str, Any], hosts: Mapping[str, str]) -> dict[str, int]:
    return {
        hosts[provider]: vcpus
        for provider, found in allocations.items()
        if (vcpus := found["resources"].get("VCPU"))
    }
