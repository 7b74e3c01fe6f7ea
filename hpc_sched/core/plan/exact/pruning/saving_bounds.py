"""Bounds on what VMs save below each switch, as tables by number of VMs.

Just above leaves VMs save at most as if each leaf took any part of its room at the mean that is
the best there: leaves are filled by that mean. And at most as if each took VMs as the leaf with the
largest hosts does, of which the first VM adds as many pairs on its host as they add in the mean:
then full leaves are best. Above, VMs save in the mean no more than as many or fewer VMs save below
the best child. What switches are charged is taken off, at least in part.
"""

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from hpc_sched.core.arrays import Array, Reals
from hpc_sched.core.plan.exact.leaves.open_leaves import OpenLeaves, saved_by, whole_bound
from hpc_sched.core.plan.time_limit import NO_LIMIT, Limit


@dataclass(frozen=True)
class SavingBounds:
    """Bounds on what 0, 1, 2 .. VMs save below each switch, with their members."""

    open: OpenLeaves
    limit: Limit
    most_of_leaf: dict[int, int]  # by the switch just above leaves: the most VMs in one of them
    in_leaves: dict[int, Array]  # by the same: the most that VMs save in all of them
    children: dict[int, list[int]]  # by switch: those just below it that are above open leaves
    _below: dict[int, Array] = field(default_factory=dict)
    _own: dict[int, Array] = field(default_factory=dict)

    @classmethod
    def of(cls, leaves: OpenLeaves, allowed: Array, limit: Limit = NO_LIMIT) -> "SavingBounds":
        """Return the tables of the switches above some leaves, as indices into them.

        :raises TimeLimitPassed: if the limit passes
        """
        count, topology = leaves.count, leaves.problem.topology
        rooms, scale = leaves.rooms[allowed], leaves.scale
        means = scale * leaves.most_means(count) - leaves.least_charged(count, with_pods=False)
        means = means[allowed]
        linear = (leaves.most_on_host(count) + 2 * leaves.rise * leaves.here)[allowed]
        order = np.lexsort((-means, leaves.above[allowed]))
        parents, first = np.unique(leaves.above[allowed[order]], return_index=True)
        most_of_leaf, in_leaves = {}, {}
        children: dict[int, set[int]] = {}
        for parent, part in zip(parents.tolist(), np.split(order, first[1:]), strict=True):
            limit.check()
            bound = np.minimum(
                _by_means(rooms[part], means[part], count),
                scale
                * _convex(
                    rooms[part], int(leaves.rise[allowed[part[0]]]), linear[part].max(), count
                ),
            )
            in_leaves[parent] = whole_bound(bound)
            most_of_leaf[parent] = min(int(rooms[part].max()), count)
            for child, above in itertools.pairwise(topology.upwards(parent)):
                children.setdefault(above, set()).add(child)
        below = {switch: sorted(found) for switch, found in children.items()}
        return cls(leaves, limit, most_of_leaf, in_leaves, below)

    def below(self, switch: int) -> Array:
        """Return the most that VMs save below a switch's children and in its leaves."""
        if switch not in self._below:
            parts = [self.above(child) for child in self.children.get(switch, [])]
            if switch in self.in_leaves:
                parts.append(self.in_leaves[switch])
            self._below[switch] = parts[0] if len(parts) == 1 else self._together(parts)
        return self._below[switch]

    def above(self, switch: int) -> Array:
        """Return the most that VMs save below a switch and in it."""
        below = self.below(switch)
        return below + self.own(switch)

    def own(self, switch: int) -> Array:
        """Return what VMs save in a switch, with its members."""
        if switch not in self._own:
            levels = self.open.levels
            parent = self.open.problem.topology.switches[switch].parent
            rise = int(levels[parent] - levels[switch])
            vms = np.arange(len(self.below(switch)))
            saved = saved_by(vms, int(self.open.members[switch]), rise)
            charges = self.open.charges
            self._own[switch] = saved if charges is None else charges.worth(switch, saved)
        return self._own[switch]

    def _together(self, parts: Sequence[Array]) -> Array:
        """Return the most that VMs save in parts: each saves in the mean at most as in the best."""
        room = sum(len(part) - 1 for part in parts)
        means = np.full(min(room, self.open.count) + 1, -np.inf)
        for part in parts:
            vms = np.arange(1, len(part))
            np.maximum(means[1 : len(part)], part[1:] / vms, out=means[1 : len(part)])
        means = np.maximum.accumulate(means)
        means[0] = 0
        return whole_bound(means * np.arange(len(means)))


def _by_means(rooms: Array, means: Reals, count: int) -> Reals:
    """Return what VMs save if leaves are filled one after the other, each at its mean.

    Shape (VMs + 1,).
    """
    takes = np.clip(count - np.cumsum(rooms) + rooms, 0, rooms)
    return np.concatenate(([0.0], np.cumsum(np.repeat(means, takes))))


def _convex(rooms: Array, rise: int, linear: float, count: int) -> Reals:
    """Return what VMs save if k of them save ``rise * k * (k - 1) + linear * k`` in any leaf.

    That is convex: the largest leaves are filled, and one takes the rest. Shape (VMs + 1,).
    """
    largest = np.sort(rooms)[::-1]
    ends = np.concatenate(([0], np.cumsum(largest)))
    vms = np.arange(min(int(ends[-1]), count) + 1)
    full = np.searchsorted(ends, vms, side="right") - 1
    rest = vms - ends[full]
    in_full = np.concatenate(([0], np.cumsum(saved_by(largest, 0, rise))))
    saved: Reals = in_full[full] + saved_by(rest, 0, rise) + linear * vms
    return saved
