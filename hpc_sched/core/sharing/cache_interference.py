"""Rules for sharing a host (Gupta2013): dedicated hosts, cache scores, the interference index.

An application may also run faster next to another one: positive interference (section II-A).
"""

import json
import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from hpc_sched import decimals
from hpc_sched.core.capacity import UNBOUNDED

# Scores and losses are decimals: their sums are compared with this much room for rounding.
EPSILON = 1e-9


@dataclass(frozen=True, slots=True)
class Application:
    """The application that a VM runs, with defaults for what is unknown."""

    app_class: str  # extreme, sync, async or none
    name: str | None = None
    score: float = 0.0  # 1 = 100,000 last-level cache misses per second
    group: str | None = None  # the group that the VM belongs to
    is_isolated: bool = False  # whether its group shares no uplinks with others that are isolated


@dataclass(frozen=True, slots=True)
class Limits:
    """The limits on the sum of the cache scores on one host."""

    alpha: float  # on every host
    beta: float  # on hosts with a VM of class sync


ALPHA = "cache_score_limit"  # option, and metadata of host aggregates
BETA = "sync_cache_score_limit"


def limits_in(metadata: Sequence[Mapping[str, str]], default: Limits) -> tuple[Limits, list[str]]:
    """Return the limits of a host, and the metadata ignored because it is no number >= 0.

    Of several aggregates the lowest value counts.

    :param metadata: of each of the host's aggregates
    :param default: limits that no aggregate sets
    """
    wrong: list[str] = []

    def lowest(key: str, default: float) -> float:
        found = []
        for text in (values[key] for values in metadata if key in values):
            value = decimals.number_in(text.strip())
            if value is None or value < 0:
                wrong.append(f"{key}={text[:80]!r}")
            else:
                found.append(value)
        return min(found, default=default)

    return Limits(lowest(ALPHA, default.alpha), lowest(BETA, default.beta)), wrong


@dataclass(frozen=True, slots=True)
class InterferenceIndex:
    """The speed of each application next to each other one; 1 is its speed alone."""

    performance: Mapping[tuple[str, str], float]  # (application, its neighbour)

    @property
    def applications(self) -> frozenset[str]:
        """The applications that the index knows."""
        return frozenset(name for name, _ in self.performance)

    def lines(self) -> list[str]:
        """Return the canonical text: one line for each entry, sorted."""
        return [
            f"interference {json.dumps(name)} with {json.dumps(neighbour)} {speed!r}"
            for (name, neighbour), speed in sorted(self.performance.items())
        ]

    def bad_company(self, tolerance: float) -> Mapping[str, frozenset[str]]:
        """Return, per application, those with which it must not share a host.

        A pair is kept apart if one of the two loses at least ``tolerance``, and more than 0.
        O(entries).

        :param tolerance: a loss of performance, 0 to 1
        """
        bad: dict[str, set[str]] = {}
        for (name, neighbour), speed in self.performance.items():
            loss = 1.0 - speed
            if loss > EPSILON and loss >= tolerance - EPSILON:
                bad.setdefault(name, set()).add(neighbour)
                bad.setdefault(neighbour, set()).add(name)
        return {name: frozenset(others) for name, others in bad.items()}

    def attracting(self, name: str | None, tolerance: float) -> Mapping[str, float]:
        """Return the applications that attract one, each with what the two gain together.

        A change of performance below ``tolerance`` counts as none, as in
        :meth:`bad_company`: measured times scatter. Of a pair one application must gain, and none
        may lose. What they gain is the sum over both: 1.2 if one has a performance of 2.2 and the
        other one of 1. O(entries).

        :param name: of the application; None has no pairs
        """
        found = {}
        for (one, neighbour), speed in self.performance.items():
            back = self.performance.get((neighbour, one))
            if one == name and back is not None:
                changes = [_change(speed, tolerance), _change(back, tolerance)]
                if min(changes) >= 0 and max(changes) > 0:
                    found[neighbour] = math.fsum(changes)
        return found


def dedicated_room(vm: Application, neighbours: Iterable[Application]) -> int:
    """Return the VMs of an application that a host takes as a dedicated one: 0 or UNBOUNDED.

    VMs of class ``extreme`` share a host with VMs of their own group only. O(neighbours).
    """
    is_broken = any(
        "extreme" in (vm.app_class, there.app_class)
        and (vm.group is None or there.group != vm.group)
        for there in neighbours
    )
    return 0 if is_broken else UNBOUNDED


def room(
    vm: Application,
    neighbours: Collection[Application],
    limits: Limits,
    incompatible: Collection[str] = (),
) -> int:
    """Return the VMs of an application that a host takes next to its neighbours (Gupta2013).

    The sum of all cache scores is at most alpha, and at most beta with any VM of class ``sync``.
    0 with an incompatible neighbour; at most 1 for an application incompatible with itself.
    UNBOUNDED for ``extreme``, see :func:`dedicated_room`. O(neighbours).

    :param incompatible: applications with which the VM must not share a host
    """
    if vm.app_class == "extreme":
        return UNBOUNDED
    if incompatible and any(there.name in incompatible for there in neighbours):
        return 0
    most = 1 if vm.name is not None and vm.name in incompatible else UNBOUNDED
    has_sync = vm.app_class == "sync" or any(there.app_class == "sync" for there in neighbours)
    limit = min(limits.alpha, limits.beta) if has_sync else limits.alpha
    left = limit - math.fsum(there.score for there in neighbours)
    if vm.score <= 0:
        # It adds nothing, but as a sync VM it may lower the limit below the present sum.
        return most if left >= -EPSILON else 0
    return max(0, math.floor(min(left / vm.score + EPSILON, most)))


def attraction(
    vm: Application,
    neighbours: Iterable[Application],
    gains: Mapping[str, float],
    incompatible: Collection[str] = (),
) -> float:
    """Return what a VM and the VMs on a host gain by sharing it; 0 for nothing.

    Each application of other groups' VMs counts once, whatever its VMs. A host with bad company
    attracts nothing: where no filter removes it, a gain must not lead to a loss. O(neighbours).

    :param gains: of the VM's application, see :meth:`InterferenceIndex.attracting`
    :param incompatible: its bad company, see :meth:`InterferenceIndex.bad_company`
    """
    names = {
        there.name
        for there in neighbours
        if there.name is not None and not (vm.group is not None and there.group == vm.group)
    }
    if any(name in incompatible for name in names):
        return 0.0
    return math.fsum(gains.get(name, 0.0) for name in names)


def _change(speed: float, tolerance: float) -> float:
    """Return by how much a performance differs from 1; 0 below the tolerance."""
    change = speed - 1.0
    is_noticed = abs(change) > EPSILON and abs(change) >= tolerance - EPSILON
    return change if is_noticed else 0.0
