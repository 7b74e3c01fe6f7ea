"""Output of hpc-sched fits --frontier: a row for each plan, the lines above them, the picture."""

import math
import sys
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

from hpc_sched import exceptions
from hpc_sched.cli.common import extra_modules, output
from hpc_sched.cli.common.base_command import Table
from hpc_sched.core.extra_spec_names import BOTTLENECK, HOPS, ISOLATED
from hpc_sched.core.objectives.frontier import FrontierPlan
from hpc_sched.core.plan.result import Plan
from hpc_sched.snapshot import group_frontier
from hpc_sched.snapshot.request_builder import SnapshotRequest
from hpc_sched.topology import plurals

COLUMNS = (
    *("Objective", "Tradeoff", "Bottleneck", "Bottleneck ratio", "Hop-Byte", "Hop-Byte ratio"),
    *("Harm", "Harm ratio", "Leaves", "Most VMs", "Fewest VMs", "Chosen"),
)
_PICTURE = "hpc_sched.page.frontier_picture"
_TRADEOFFS = 10_000  # in 1: to which parts the least value of the option is rounded up


@dataclass(frozen=True, slots=True)
class ShownFrontier:
    """The plans of a group, of which one is its own."""

    state: SnapshotRequest
    plans: Sequence[FrontierPlan]
    chosen: int
    is_whole: bool
    traffic: str  # that the numbers are of, as a part of a sentence

    def table(self, formatter: str) -> Table:
        """Return a row for each plan, from the least Hop-Byte to the least bottleneck."""
        rows = [
            tuple(output.cell(value, formatter) for value in self._row(i, one))
            for i, one in enumerate(self.plans)
        ]
        return COLUMNS, rows

    def _row(self, number: int, one: FrontierPlan) -> tuple[object, ...]:
        hops, vms = self.plans[0], group_frontier.vms_by_leaf(self.state, one.plan)
        hop_bytes = one.plan.hop_bytes
        tradeoff = None
        if one.tradeoff is not None:
            tradeoff = math.ceil(one.tradeoff * _TRADEOFFS) / _TRADEOFFS
        return (
            self.objective(number),
            tradeoff,
            float(one.loads.bottleneck),
            _ratio(one.loads.bottleneck, hops.loads.bottleneck),
            None if math.isinf(hop_bytes) else int(hop_bytes),
            _ratio(Fraction(hop_bytes), Fraction(hops.plan.hop_bytes)),
            float(one.loads.harm),
            _ratio(one.loads.harm, hops.loads.harm),
            len(vms),
            vms[0],
            vms[-1],
            number == self.chosen,
        )

    def objective(self, number: int) -> str:
        """Return the objective by which a plan is the best."""
        if not number:
            return HOPS
        is_extra = number == self.chosen and self.plans[number].tradeoff is None
        return self.state.hpc_specs.objective if is_extra else BOTTLENECK

    @property
    def sentences(self) -> Iterator[str]:
        """What the columns are."""
        yield (
            f"If each VM sends 1 GB, {self.traffic}: bottleneck is the seconds of the busiest "
            "uplinks or host's link, harm the seconds of the uplinks of all switches together."
        )
        yield (
            "Ratios are to the plan of least Hop-Byte. Tradeoff is the least bottleneck_tradeoff "
            "that gives the plan; most and fewest VMs are those in a leaf."
        )
        if not self.is_whole:
            yield "There may be more plans between two of these."


def shown(state: SnapshotRequest, plan: Plan) -> ShownFrontier:
    """Return the plans of a group that fits; report progress on standard error.

    :param plan: by its own objective
    :raises exceptions.RequestError: for a class that is not placed by topology
    """
    loads = group_frontier.LinkLoads.of(state)
    output.note(*group_frontier.notes(state, loads))
    made = 0
    with closing(output.StatusLine(sys.stderr, 5.0)) as line:

        def progress() -> None:
            nonlocal made
            made += 1
            line.show(f"plan {made}")

        found = group_frontier.of(state, loads, progress)
    if found is None:
        raise exceptions.RequestError("there is no plan of least Hop-Byte")
    own = loads.of_plan(plan)
    tradeoff = found.tradeoff_of(own) if state.hpc_specs.objective == BOTTLENECK else None
    plans, chosen = group_frontier.with_own(found, FrontierPlan(plan, own, tradeoff))
    is_uniform = loads.traffic(plan.count).traffic is None
    traffic = "the same to all others" if is_uniform else f"by {loads.objective.pattern} on average"
    return ShownFrontier(state, plans, chosen, found.is_whole, traffic)


def check_picture(path: str) -> None:
    """Raise an error before the plans, not after them, if the picture cannot be drawn or saved."""
    extra_modules.check_picture(Path(path), _PICTURE)


def draw(found: ShownFrontier, path: str) -> None:
    """Draw the plans into an SVG file."""
    points = [
        extra_modules.load(_PICTURE, "--picture").Point(
            float(one.loads.bottleneck),
            one.plan.hop_bytes,
            float(one.loads.harm),
            plurals.text(len(group_frontier.vms_by_leaf(found.state, one.plan)), "leaf"),
            found.objective(i),
            i == found.chosen,
            found.objective(i) == ISOLATED,
        )
        for i, one in enumerate(found.plans)
    ]
    output.save(extra_modules.load(_PICTURE, "--picture").picture(points), path)
    output.say(f"{path}: written")


def _ratio(one: Fraction, hops: Fraction) -> float | None:
    return float(one / hops) if hops else None
