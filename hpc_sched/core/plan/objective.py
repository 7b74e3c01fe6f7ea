"""What a plan is best by, where that is not the least Hop-Byte alone."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fractions import Fraction

    from hpc_sched.topology.capacities import Capacities


@dataclass(frozen=True, slots=True, eq=False)
class Objective:
    """The least bottleneck, then the least Hop-Byte, within a bound on the harm to others.

    The bottleneck of a plan is the greatest crossing by capacity of any switch and host: what of
    the group's traffic enters or leaves it in one direction, with uniform traffic n_s * (n - n_s).
    """

    capacities: Capacities
    # By how much more than in the plan of least Hop-Byte the sum of crossing by uplinks may be.
    tradeoff: Fraction | None = None  # None: without a bound
