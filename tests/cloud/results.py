"""The table of what the sides did: totals, and differences of rounds with the same seed."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Iterable, Mapping, Sequence

from hpc_sched.core.hopbyte import hop_bytes
from hpc_sched.topology import Topology
from tests.cloud.deployment import TREE
from tests.cloud.rounds import Round
from tests.contention.fabric import leaves_of
from tests.contention.results import aligned, difference
from tests.contention.verification import Broken

_TOPOLOGY = Topology.from_tree({"core": TREE})
Rounds = Sequence[Round]


def refused(found: Round) -> int:
    """Return how many groups have a VM in error."""
    return len({o.request.group for o in found.outcomes if not o.hosts})


def split(found: Round) -> int:
    """Return how many groups are on several leaves."""
    return sum(len(leaves_of(hosts)) > 1 for hosts in _groups(found).values())


def cost(found: Round) -> float:
    """Return the mean Hop-Byte cost of the groups whose VMs are all active; NaN without any."""
    failed = {o.request.group for o in found.outcomes if not o.hosts}
    costs = [
        hop_bytes(topology=_TOPOLOGY, placement=dict(enumerate(hosts)))
        for group, hosts in _groups(found).items()
        if group not in failed
    ]
    return statistics.fmean(costs) if costs else math.nan


def in_error(found: Round) -> int:
    """Return how many VMs are in error."""
    return sum(len(o.request.vms) for o in found.outcomes if not o.hosts)


def writes(found: Round) -> int:
    """Return how many transactions on allocations Placement was sent."""
    return sum(found.calls[f"{method} /allocations"] for method in ("POST", "PUT", "DELETE"))


# Counts, of which the table has totals, and numbers, of which it has means over the rounds.
COUNTS: Mapping[str, Callable[[Round], float]] = {
    "groups refused": refused,
    "groups split": split,
    "VMs in ERROR": in_error,
}
NUMBERS: Mapping[str, Callable[[Round], float]] = {
    "Hop-Byte a group": cost,
    "s to ACTIVE, median": lambda found: statistics.median(found.seconds or [math.nan]),
    "s to ACTIVE, slowest": lambda found: max(found.seconds, default=math.nan),
    "s of the burst": lambda found: found.duration,
    "allocation transactions": writes,
    "calls of Placement": lambda found: sum(found.calls.values()),
}


def table(sides: Mapping[str, Rounds]) -> str:
    """Return a column a side, then its differences a round to the first side."""
    columns = {side: dict(_cells(rounds)) for side, rounds in sides.items()}
    (first, base), *others = sides.items()
    for side, rounds in others:
        columns[f"{side} - {first}"] = {
            name: cell
            for name, measure in {**COUNTS, **NUMBERS}.items()
            if (cell := difference(*([measure(one) for one in side] for side in (rounds, base))))
        }
    return aligned(columns)


def is_broken(rounds: Rounds) -> bool:
    """True if an invariant is broken, a group refused, or one of a single request split."""
    return any(
        found.findings.broken
        or refused(found)
        or any(len(leaves_of(outcome.hosts)) > 1 for outcome in found.outcomes)
        for found in rounds
    )


def _cells(rounds: Rounds) -> Iterable[tuple[str, str]]:
    yield "rounds", str(len(rounds))
    yield "groups", str(sum(len({o.request.group for o in r.outcomes}) for r in rounds))
    yield "VMs ACTIVE", str(sum(len(o.hosts) for r in rounds for o in r.outcomes))
    for name, measure in COUNTS.items():
        yield name, str(sum(measure(found) for found in rounds))
    for name, measure in NUMBERS.items():
        values = [value for value in map(measure, rounds) if not math.isnan(value)]
        yield name, f"{statistics.fmean(values):.1f}" if values else "-"
    for what in Broken:
        if total := sum(found.findings.broken[what] for found in rounds):
            yield what, str(total)


def _groups(found: Round) -> dict[str | None, list[str]]:
    groups: dict[str | None, list[str]] = {}
    for outcome in found.outcomes:
        groups.setdefault(outcome.request.group, []).extend(outcome.hosts)
    return groups
