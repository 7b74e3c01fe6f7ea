"""The most VMs that a number of leaves can take, by a price of each service (Lagrange multipliers).

Of each VM of a service a part, its price, is paid where it is, and the rest once for all VMs that
the service may take. At any price in 0 to 1 no set of leaves takes more VMs than all services
are paid once, with the leaves that are paid most.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from hpc_sched.core.arrays import Array
from hpc_sched.core.plan.time_limit import Effort

# A price of 1. All numbers are whole ones: the same on each machine.
UNIT = 1 << 12
# Sums that take as long as the rest of a round.
_CALL = 10_000
# Rounds without a lower bound until prices change by half as much.
_STALE = 4
# Numbers are clipped where their products would not fit into 62 bits.
_MOST_SLOPE, _MOST_GAP = 1 << 15, 1 << 40


@dataclass(frozen=True, slots=True, eq=False)
class LeafRooms:
    """What leaves take of a group, in the order in which equal ones are chosen.

    A set of them takes, of each service, the VMs of its nodes there, and at most those that it may
    take; and the VMs of further services.
    """

    rooms: Array  # shape (leaves, services): VMs on the nodes of a service, at most ``allowed``
    allowed: Array  # shape (services,): VMs that a service may take
    # Shape (leaves,): VMs of services which take them whatever other leaves take.
    others: Array

    def take(self, chosen: Sequence[int] | Array) -> int:
        """Return the VMs that a set of leaves takes."""
        rows = np.asarray(chosen, dtype=np.int64)
        cover = np.minimum(self.rooms[rows].sum(axis=0), self.allowed)
        return int(cover.sum() + self.others[rows].sum())

    def gains(self, chosen: Sequence[int] | Array) -> Array:
        """Return the VMs that each leaf takes in addition to a set of others. Shape (leaves,)."""
        gains: Array = np.minimum(self.rooms, self._left(chosen)).sum(axis=1) + self.others
        return gains

    def after(self, taken: Sequence[int], leaves: Array) -> "LeafRooms":
        """Return what some leaves take in addition to others that are taken."""
        left = self._left(taken)
        return LeafRooms(np.minimum(self.rooms[leaves], left), left, self.others[leaves])

    def _left(self, taken: Sequence[int] | Array) -> Array:
        rows = np.asarray(taken, dtype=np.int64)
        left: Array = np.maximum(self.allowed - self.rooms[rows].sum(axis=0), 0)
        return left


class Bound(NamedTuple):
    """An upper bound, and what was found on the way."""

    vms: int  # that no set of the number of leaves exceeds
    price: Array  # of each service, at which this is the bound. Shape (services,)
    scores: Array  # what each leaf is paid at that price. Shape (leaves,)
    may_help: Array  # leaves of sets that may take more than the floor, sorted
    chosen: Array  # the leaves of a good set
    found: int  # VMs that it takes


def upper_bound(
    leaves: LeafRooms,
    number: int,
    price: Array,
    floor: int,
    wanted: int,
    rounds: int,
    effort: Effort,
) -> Bound:
    """Return a bound on the VMs that ``number`` of some more leaves take.

    Prices go down where the leaves that are paid most take more than a service may, and up where
    they take less (subgradient). Ends once no set can take more than ``floor``, or a set takes
    the wanted VMs. O(rounds * leaves * services).

    :param price: of each service to begin with, 0 to UNIT
    :param floor: VMs of which it matters whether a set takes more; rises to those of ``chosen``
    :raises EffortSpent: for too many sums
    """
    rooms, allowed = leaves.rooms, leaves.allowed
    best: Bound | None = None
    least, step, stale = 0, 2.0, 0
    may_help = np.ones(len(rooms), dtype=np.bool_)
    chosen, found = np.arange(number), -1
    for _ in range(rounds):
        effort.spend(rooms.size + _CALL)
        scores = rooms @ price + leaves.others * UNIT
        paid_most = np.argsort(-scores, kind="stable")[:number]
        cover = rooms[paid_most].sum(axis=0)
        takes = int(np.minimum(cover, allowed).sum() + leaves.others[paid_most].sum())
        if takes > found:
            chosen, found, floor = paid_most, takes, max(floor, takes)
        bound = int((UNIT - price) @ allowed + scores[paid_most].sum())
        # With a leaf that is paid less, a set is paid at most the difference less.
        may_help &= (bound + np.minimum(scores - scores[paid_most[-1]], 0)) // UNIT > floor
        if best is None or bound < least:
            best, least, stale = Bound(bound // UNIT, price, scores, chosen, chosen, 0), bound, 0
        else:
            stale += 1
            if stale == _STALE:
                step, stale = step / 2, 0
        slope = np.clip(cover - allowed, -_MOST_SLOPE, _MOST_SLOPE)
        is_at_end = np.where(slope > 0, price == 0, price == UNIT)
        slope = np.where(is_at_end, 0, slope)
        norm = int((slope * slope).sum())
        if found >= wanted or least // UNIT <= floor or not norm:
            break
        gap = int(min(least - floor * UNIT, _MOST_GAP) * step)
        price = np.clip(price - gap * slope // (2 * norm), 0, UNIT)
    assert best is not None
    return best._replace(may_help=np.flatnonzero(may_help), chosen=chosen, found=found)
