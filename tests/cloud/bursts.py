"""The bursts: groups of 8 that are sent at once, with a free leaf for each."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from tests.cloud.deployment import LEAVES
from tests.contention import fabric
from tests.contention.bursts import Request

GROUPS, SIZE = len(LEAVES), fabric.HOSTS_A_LEAF
LONGEST_DELAY = 0.2  # seconds
Wishes = Mapping[str, str | int]


@dataclass(frozen=True)
class Burst:
    """Requests by names of servers, and the hosts whose last build has failed."""

    requests: tuple[Request, ...]
    failed: frozenset[str] = frozenset()


def require(numbers: random.Random) -> Burst:
    """Four groups that require a leaf each."""
    return Burst(_groups(numbers, GROUPS, {"require": "leaf"}))


def free(numbers: random.Random) -> Burst:
    """Four groups without a constraint."""
    return Burst(_groups(numbers, GROUPS, {}))


def singles(numbers: random.Random) -> Burst:
    """Four groups of single creates without a constraint.

    With one they may be refused by right: nothing keeps room for VMs that are not requested yet,
    so that two groups may begin on one leaf.
    """
    requests = [
        _request(numbers, (vm,), f"g{group}", {"group_size": SIZE})
        for group in range(GROUPS)
        for vm in _names(f"g{group}")
    ]
    return Burst(tuple(numbers.sample(requests, len(requests))))


def failures(numbers: random.Random) -> Burst:
    """Two groups without a constraint; a host of one leaf and half of another have failed."""
    one, other = numbers.sample(LEAVES, 2)
    half = numbers.sample(fabric.LEAVES[other], SIZE // 2)
    failed = {numbers.choice(fabric.LEAVES[one]), *half}
    return Burst(_groups(numbers, 2, {}), frozenset(failed))


BURSTS: Mapping[str, Callable[[random.Random], Burst]] = {
    "require": require,
    "free": free,
    "singles": singles,
    "failures": failures,
}


def _groups(numbers: random.Random, count: int, wishes: Wishes) -> tuple[Request, ...]:
    names = [f"g{number}" for number in range(count)]
    return tuple(_request(numbers, _names(name), name, wishes) for name in names)


def _request(numbers: random.Random, vms: tuple[str, ...], group: str, wishes: Wishes) -> Request:
    delay = numbers.uniform(0, LONGEST_DELAY)
    return Request(vms, fabric.VCPUS, group, "anti-affinity", wishes, delay)


def _names(group: str) -> tuple[str, ...]:
    """Return names as Nova makes them of that of a request for several servers."""
    return tuple(f"{group}-{number}" for number in range(1, SIZE + 1))
