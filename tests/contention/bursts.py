"""Seeded bursts of requests, as many users send them at the same moment."""

from __future__ import annotations

import random
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from tests.contention import fabric


@dataclass(frozen=True)
class Request:
    """A create of some VMs."""

    vms: tuple[str, ...]  # uuids, in the order of their launch index
    vcpus: int
    group: str | None = None  # name of the server group; requests of one name share it
    policy: str | None = None
    wishes: Mapping[str, str | int] | None = None  # hpc: extra specs
    delay: float = 0.0  # seconds after the burst's begin
    deleted_after: float | None = None  # seconds until the user deletes the last VM


@dataclass(frozen=True)
class Burst:
    """Requests that are sent at once, and what is in use before."""

    used: Mapping[str, int]  # host to VCPUs
    requests: tuple[Request, ...]
    kill_after: float | None = None  # seconds until a scheduler is killed
    # The gang claim at which its scheduler is killed, 1 for the first of the burst.
    kill_at: int | None = None
    reload_after: float | None = None  # seconds until one gets SIGHUP


@dataclass(frozen=True)
class Outcome:
    """What became of a request."""

    request: Request
    hosts: tuple[str, ...]  # of its VMs in their order; empty without an answer or room
    refused: str | None
    sent: float  # time.monotonic(); to the scheduler
    answered: float
    is_dead: bool = False  # the scheduler died before it answered


LONGEST_DELAY = 0.5
# What groups wish, each as often as it stands here.
WISHES: tuple[Mapping[str, str | int], ...] = (
    {},
    {},
    {"require": "leaf"},
    {"require": "leaf"},
    {"require": "pod"},
    {"max_leaves": 1},
    {"max_leaves": 2},
)


def mixed(numbers: random.Random) -> Burst:
    """Two to sixteen groups of 2 to 32 VMs, and plain VMs; the fabric is half full or more.

    Some groups are created by two requests.
    """
    share = numbers.uniform(0.5, 1.0)
    groups = [_group(numbers) for _ in range(numbers.randint(2, 16))]
    for group in groups[:-1:4]:
        fewer = _vms(numbers, (len(group.vms) + 1) // 2)
        groups.append(replace(group, vms=fewer, delay=numbers.uniform(0.0, LONGEST_DELAY)))
    plain = [_plain(numbers) for _ in range(numbers.randint(0, 8))]
    requests = numbers.sample([*groups, *plain], len(groups) + len(plain))
    return Burst(fabric.seeded_use(numbers, share), tuple(requests))


def leaves(numbers: random.Random) -> Burst:
    """Four groups of 8 that require a leaf, with four leaves free."""
    names = [f"g{n}" for n in range(4)]
    wishes = {"require": "leaf"}
    return Burst(
        fabric.free_leaves(4),
        tuple(
            Request(_vms(numbers, 8), fabric.VCPUS, name, "anti-affinity", wishes) for name in names
        ),
    )


def singles(numbers: random.Random) -> Burst:
    """64 single creates into one group that requires a leaf, where two leaves have room for all."""
    wishes = {"require": "leaf", "group_size": 64}
    return Burst(
        fabric.free_leaves(2),
        tuple(Request(_vms(numbers, 1), 2, "g", "soft-affinity", wishes) for _ in range(64)),
    )


def sigkill(numbers: random.Random) -> Burst:
    """A mixed burst during which a scheduler is killed, and some VMs deleted by their users.

    In every second one it is killed with a gang claim that it has just made.
    """
    burst = mixed(numbers)
    requests = [
        replace(found, deleted_after=numbers.uniform(0.0, 2.0)) if numbers.random() < 0.3 else found
        for found in burst.requests
    ]
    if numbers.random() < 0.5:
        return Burst(burst.used, tuple(requests), kill_at=numbers.randint(1, 3))
    return Burst(burst.used, tuple(requests), kill_after=numbers.uniform(0.0, 2.5))


def sighup(numbers: random.Random) -> Burst:
    """Some small groups and plain VMs; a scheduler gets SIGHUP meanwhile, which ends its worker."""
    groups = [_group(numbers) for _ in range(numbers.randint(3, 8))]
    requests = [
        *(replace(found, vms=found.vms[:4], delay=found.delay / 2) for found in groups),
        *(_plain(numbers) for _ in range(numbers.randint(0, 3))),
    ]
    used = fabric.seeded_use(numbers, numbers.uniform(0.5, 1.0))
    reload_after = numbers.uniform(0.0, 2.5)
    return Burst(used, tuple(requests), reload_after=reload_after)


def quiet(numbers: random.Random) -> Burst:
    """One group of 16, 64 or 256 VMs and nothing else: what a request costs."""
    size = numbers.choice((16, 64, 256))
    return Burst(fabric.free_leaves(6), (Request(_vms(numbers, size), 1, "g", "soft-affinity"),))


SCENARIOS: Mapping[str, Callable[[random.Random], Burst]] = {
    "mixed": mixed,
    "leaves": leaves,
    "singles": singles,
    "sigkill": sigkill,
    "sighup": sighup,
    "quiet": quiet,
}


def _group(numbers: random.Random) -> Request:
    policy = numbers.choice(("anti-affinity", "anti-affinity", "soft-affinity"))
    wishes = numbers.choice(WISHES)
    size = min(numbers.randint(2, 32), numbers.randint(2, 32))
    if policy == "anti-affinity" and wishes:
        size = min(size, fabric.HOSTS_A_LEAF)
    return Request(
        vms=_vms(numbers, size),
        vcpus=numbers.choice((4, 8, 16)),
        group=f"g{numbers.getrandbits(32):08x}",
        policy=policy,
        wishes=wishes,
        delay=numbers.uniform(0.0, LONGEST_DELAY),
    )


def _plain(numbers: random.Random) -> Request:
    delay = numbers.uniform(0.0, LONGEST_DELAY)
    return Request(_vms(numbers, 1), numbers.choice((4, 16)), delay=delay)


def _vms(numbers: random.Random, count: int) -> tuple[str, ...]:
    return tuple(str(uuid.UUID(int=numbers.getrandbits(128), version=4)) for _ in range(count))
