"""The table of what the sides did."""

from __future__ import annotations

import math
import statistics
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from hpc_sched.sim.statistics.columns import plus_minus
from hpc_sched.sim.statistics.estimate import Estimate
from tests.contention.bursts import Outcome
from tests.contention.rounds import Round
from tests.contention.verification import Broken, Findings


@dataclass
class Result:
    """All rounds of one side."""

    rounds: int = 0
    clean: int = 0  # rounds without a refusal
    findings: Findings = field(default_factory=Findings)
    calls: Counter[str] = field(default_factory=Counter)
    audited: int = 0
    abandoned: int = 0
    released_after: float = 0.0  # the longest time
    outcomes: list[Outcome] = field(default_factory=list)
    overbooked: list[int] = field(default_factory=list)  # hosts, of each round
    # Seconds of Placement by kind of call, of each round of one request by its number of VMs.
    seconds: dict[int, list[Counter[str]]] = field(default_factory=dict)

    def add(self, found: Round) -> None:
        """Add a round."""
        self.rounds += 1
        self.clean += not any(outcome.refused for outcome in found.outcomes)
        self.findings.broken.update(found.findings.broken)
        self.findings.details += found.findings.details
        self.findings.split_by_plain += found.findings.split_by_plain
        self.findings.split_by_nova += found.findings.split_by_nova
        self.findings.broken_by_nova += found.findings.broken_by_nova
        self.findings.late += found.findings.late
        self.findings.decisions += found.findings.decisions
        self.findings.apart += found.findings.apart
        gap = found.findings.largest_gap
        self.findings.largest_gap = max(self.findings.largest_gap, gap)
        self.calls.update(found.calls)
        self.audited += found.audited
        self.abandoned += found.abandoned
        self.released_after = max(self.released_after, found.released_after or 0.0)
        self.outcomes += found.outcomes
        self.overbooked.append(found.findings.broken[Broken.OVERBOOKED])
        if len(found.outcomes) == 1:
            vms = len(found.outcomes[0].request.vms)
            self.seconds.setdefault(vms, []).append(found.seconds)


def table(results: Mapping[str, Result]) -> str:
    """Return the results, a column a side."""
    return aligned({side: dict(_rows(result)) for side, result in results.items()})


def paired(results: Mapping[str, Result], first: str, second: str) -> str:
    """Return the difference of the hosts that two sides overbook in the same rounds, in words."""
    found = difference(results[first].overbooked, results[second].overbooked)
    return f"hosts overbooked a round, {first} less {second}: {found}"


def difference(values: Sequence[float], base: Sequence[float]) -> str:
    """Return the mean difference of pairs, with its 95 % interval if there are enough.

    Pairs of which one is NaN are left out; empty without any.
    """
    both = [one - other for one, other in zip(values, base, strict=True)]
    found = Estimate.of([value for value in both if not math.isnan(value)], is_drawn=True)
    if found is None:
        return ""
    if not found.half_width:
        return f"{found.mean:+.1f}"
    mean, half = plus_minus(found.mean, found.half_width)
    return f"{mean} ± {half}"


def aligned(columns: Mapping[str, Mapping[str, str]]) -> str:
    """Return columns of cells as text, with the names of the rows in front."""
    names = list(dict.fromkeys(name for rows in columns.values() for name in rows))
    lines = [["", *columns]] + [[n, *(rows.get(n, "") for rows in columns.values())] for n in names]
    widths = [max(len(line[i]) for line in lines) for i in range(len(lines[0]))]
    return "\n".join(
        "  ".join(
            [
                line[0].ljust(widths[0]),
                *(c.rjust(w) for c, w in zip(line[1:], widths[1:], strict=True)),
            ]
        ).rstrip()
        for line in lines
    )


def _rows(result: Result) -> Iterable[tuple[str, str]]:
    groups = [o for o in result.outcomes if o.request.group is not None]
    plain = [o for o in result.outcomes if o.request.group is None]
    yield "rounds", str(result.rounds)
    yield "rounds with all placed", str(result.clean)
    for name, found in (("groups", groups), ("plain VMs", plain)):
        if found:
            placed = sum(bool(outcome.hosts) for outcome in found)
            dead = sum(outcome.is_dead for outcome in found)
            yield f"{name}: placed", f"{placed} of {len(found)}"
            if dead:
                yield f"{name}: scheduler killed", str(dead)
    for what in Broken:
        yield what, str(result.findings.broken[what])
    yield "split after a plain VM's claim", str(result.findings.split_by_plain)
    yield "split after Nova gave up a claim", str(result.findings.split_by_nova)
    yield "wish broken after Nova gave up a claim", str(result.findings.broken_by_nova)
    yield "refused after their deadline", str(result.findings.late)
    if result.findings.decisions:
        yield "decisions with a measured time", str(result.findings.decisions)
        yield "more than 5 % from the sum of its parts", str(result.findings.apart)
        yield "largest gap to that sum", f"{result.findings.largest_gap:.1%}"
    if result.abandoned:
        yield "claims of dead schedulers", str(result.abandoned)
        yield "seconds until they were released, most", f"{result.released_after:.1f}"
    if result.audited:
        yield "removed by the audit", str(result.audited)
    by_size: dict[int, list[float]] = {}
    for outcome in result.outcomes:
        if outcome.hosts:
            by_size.setdefault(len(outcome.request.vms), []).append(outcome.answered - outcome.sent)
    everything = sorted(seconds for found in by_size.values() for seconds in found)
    if everything:
        yield "seconds, median", f"{statistics.median(everything):.2f}"
        yield "seconds, 95 %", f"{everything[int(0.95 * (len(everything) - 1))]:.2f}"
    if len(by_size) <= 4:
        for size, found in sorted(by_size.items()):
            yield f"seconds of {size} VMs, median", f"{statistics.median(found):.2f}"
    for size, rounds in sorted(result.seconds.items()):
        for kind in sorted({kind for one in rounds for kind in one}):
            median = statistics.median(one[kind] for one in rounds)
            yield f"of these in Placement for {size} VMs, {kind}", f"{median:.2f}"
    if result.outcomes:
        calls = sum(result.calls.values()) / len(result.outcomes)
        yield "calls of Placement a request", f"{calls:.1f}"
