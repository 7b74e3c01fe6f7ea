"""The leaves that take the most VMs where each service takes few of them: maximum coverage.

NP-hard. Greedy choice and exchanges of one leaf mostly find the best set, and a bound proves it.
Otherwise sets are searched, in a bounded number of steps: the answer is the same on each machine.
"""

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from hpc_sched.core.arrays import Array
from hpc_sched.core.by_service.coverage_bound import UNIT, LeafRooms, upper_bound
from hpc_sched.core.plan.time_limit import Effort, EffortSpent

# Rounds of the bound on all sets, and on those of a branch.
_FIRST_ROUNDS = 60
_ROUNDS = 20
# Times that each leaf of a set may be exchanged.
_EXCHANGES = 20


@dataclass(frozen=True, slots=True)
class LeafSet:
    """A set of leaves, by their numbers."""

    leaves: tuple[int, ...]
    vms: int  # that they take


# The VMs that a set of leaves takes: of LeafRooms, or fewer.
Take = Callable[[Sequence[int]], int]


def first_set(leaves: LeafRooms, forced: Sequence[int], number: int, take: Take) -> LeafSet:
    """Return a good set of leaves: each adds most; then each is exchanged as long as that helps.

    O(number * leaves * services) for each of a few times.

    :param forced: leaves that are in each set
    :param number: leaves in addition to these
    """
    chosen = list(forced)
    for _ in range(number):
        chosen.append(_best_gain(leaves, chosen))
    vms, is_better = leaves.take(chosen), True
    for _ in range(_EXCHANGES):
        if not is_better:
            break
        is_better = False
        for place in range(len(forced), len(chosen)):
            others = [*chosen[:place], *chosen[place + 1 :]]
            another = [*others, _best_gain(leaves, others)]
            if (more := leaves.take(another)) > vms:
                vms, is_better = more, True
                chosen[place] = another[-1]
    return LeafSet(tuple(chosen), take(chosen))


def _best_gain(leaves: LeafRooms, taken: Sequence[int]) -> int:
    """Return the leaf that takes most VMs in addition to others."""
    gains = leaves.gains(taken)
    gains[list(taken)] = -1
    return int(gains.argmax())


class _Branch(NamedTuple):
    """All sets with some leaves, and others of those that are open."""

    taken: tuple[int, ...]
    open: Array
    price: Array  # of services, to begin with
    most: int  # VMs that none of the sets exceeds


class CoverageSearch:
    """Branch and bound over the sets of a number of leaves.

    Depth first, and from the end of each path on where most VMs are possible.
    """

    def __init__(self, leaves: LeafRooms, start: LeafSet, take: Take, effort: Effort) -> None:
        """Begin with a set, the best one until another is found.

        :param take: the VMs that a set takes, at most those of ``leaves.take``
        """
        self.leaves, self.best, self._take, self._effort = leaves, start, take, effort
        self._floor = self._wanted = 0

    def run(self, forced: Sequence[int], number: int, floor: int, wanted: int) -> int:
        """Look for the best set of more than ``floor`` VMs; return the VMs that none exceeds.

        That is the floor or the VMs of the best set, the greater of them, unless the wanted VMs are
        found or the effort is spent.

        :param forced: leaves that are in each set
        :param number: leaves in addition to these
        :param wanted: VMs of a set that is good enough
        """
        self._floor, self._wanted = max(floor, self.best.vms), wanted
        rooms = self.leaves.rooms
        every = np.arange(len(rooms))
        price = np.full(rooms.shape[1], UNIT, dtype=np.int64)
        whole = _Branch(tuple(forced), np.setdiff1d(every, forced), price, self.leaves.take(every))
        waiting, rounds = [whole], _FIRST_ROUNDS
        with suppress(EffortSpent):
            while waiting and self.best.vms < wanted:
                left = len(forced) + number - len(waiting[-1].taken)
                waiting[-1:] = parts = self._parts(waiting[-1], left, rounds)
                waiting = [one for one in waiting if one.most > self._floor]
                rounds = _ROUNDS
                if waiting and not parts:
                    first = max(range(len(waiting)), key=lambda place: waiting[place].most)
                    waiting.append(waiting.pop(first))
        return max([self._floor, *(branch.most for branch in waiting)])

    def _parts(self, branch: _Branch, number: int, rounds: int) -> list[_Branch]:
        """Return the parts of a branch that may have better sets: without a leaf, and with it.

        :param number: leaves that its sets have in addition to those that are taken
        """
        taken, leaves = branch.taken, self.leaves
        if len(branch.open) <= number:
            self._add((*taken, *branch.open.tolist()))
            return []
        more = leaves.after(taken, branch.open)
        if number == 1:
            self._effort.spend(more.rooms.size)
            self._add((*taken, int(branch.open[(more.rooms.sum(axis=1) + more.others).argmax()])))
            return []
        have = leaves.take(list(taken))
        floor, wanted = self._floor - have, self._wanted - have
        bound = upper_bound(more, number, branch.price, floor, wanted, rounds, self._effort)
        self._add((*taken, *branch.open[bound.chosen].tolist()))
        kept = bound.may_help
        if not len(kept) or have + bound.vms <= self._floor:
            return []
        first = int(kept[bound.scores[kept].argmax()])
        rest = kept[kept != first]
        # What is no better than a leaf that is left out need not be taken.
        is_less = (more.rooms[rest] <= more.rooms[first]).all(axis=1)
        is_less &= more.others[rest] <= more.others[first]
        most = have + bound.vms
        return [
            _Branch(taken, branch.open[rest[~is_less]], bound.price, most),
            _Branch((*taken, int(branch.open[first])), branch.open[rest], bound.price, most),
        ]

    def _add(self, leaves: tuple[int, ...]) -> None:
        """Keep a set if it is better than the best one."""
        if self.leaves.take(leaves) <= self.best.vms:
            return
        vms = self._take(leaves)
        if vms > self.best.vms:
            self.best, self._floor = LeafSet(leaves, vms), max(self._floor, vms)
