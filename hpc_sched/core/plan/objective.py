"""What a plan is best by, where that is not the least Hop-Byte alone."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from hpc_sched.core.arrays import Mask
    from hpc_sched.topology.capacities import Capacities


# By how much more than in the plan of least Hop-Byte the sum of crossing by uplinks may be.
TRADEOFF = Fraction(3, 10)


@dataclass(frozen=True, slots=True, eq=False)
class LeastBottleneck:
    """The least bottleneck, then the least Hop-Byte, within a bound on the harm to others.

    The bottleneck of a plan is the greatest crossing by capacity of any switch and host: what of
    the group's traffic enters or leaves it in one direction, with uniform traffic n_s * (n - n_s),
    otherwise counted on the places of ranks.
    """

    capacities: Capacities
    tradeoff: Fraction | None = TRADEOFF  # None: without a bound
    pattern: str | None = None  # value of hpc:pattern; None: uniform traffic
    pattern_directory: str | None = None  # of the operator's matrices


@dataclass(frozen=True, slots=True, eq=False)
class Isolation:
    """The least Hop-Byte without an uplink that other isolated groups use, or a refusal.

    A group uses the uplinks of a switch if some of its VMs are below the switch and some are not.
    """

    is_used: Mask  # by others: the uplinks of each switch. Shape (switches,)
    # Why others may use more of them; None if all are known. Such a group is not placed anew.
    unverified: str | None = None


Objective: TypeAlias = LeastBottleneck | Isolation
