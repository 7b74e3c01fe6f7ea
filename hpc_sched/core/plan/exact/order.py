"""The order of plans of equal cost, as integers that add up."""

import itertools
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np

from hpc_sched.core.arrays import Array, Mask
from hpc_sched.core.plan.problem import Problem


@dataclass(frozen=True, slots=True)
class ScoreWeights:
    """The weights of saved hops, leaves and excess capacity in a score.

    A score is what a plan saves, less what its leaves and their excess capacity count. Numbers of
    leaves have a sign: negative for a bound at least, so that both kinds are bounds at most.
    """

    price: Fraction  # of a leaf with its sign, in saved hops
    sign: int
    # Whether ways that use more leaves, with their sign, and save no more than others are wanted:
    # with bounds at most and at least.
    keeps_all: bool
    saving: int
    leaf: int
    excess: int
    unit: int  # of scores: no sum of leaves, without their price, and excess capacity reaches it
    width: int  # of a leaf without its price

    def leaves(self, scores: Array) -> Array:
        """Return the leaves without members that ways with some scores use, with their sign."""
        return self.sign * (-scores % self.unit // self.width)

    def saved(self, scores: Array, leaves: Array) -> Array:
        """Return the hops that ways with some scores and leaves save."""
        # The excess capacity counts less than one saved hop.
        return -(-(scores + self.leaf * self.sign * leaves) // self.saving)


@dataclass(frozen=True, slots=True)
class Greatest:
    """The greatest values of any plan."""

    saved: int  # hops
    leaves: int  # without members' leaves
    excess: int  # capacity of the used leaves

    def weights(
        self, price: Fraction = Fraction(0), sign: int = 1, *, keeps_all: bool = False
    ) -> ScoreWeights:
        """Return weights by which a leaf costs as much as ``price`` saved hops.

        Of equal scores those with fewer leaves, then with less excess capacity, come first.
        Excess that does not fit into 62 bits is left to the rank of a plan.

        :param sign: of leaves; with -1 a leaf counts as much as ``price`` saved hops
        :param keeps_all: see :class:`ScoreWeights`
        :raises OverflowError: if the rest does not fit either
        """
        hops, of_leaf = price.denominator, sign * price.numerator
        most = (self.saved * hops + self.leaves * abs(of_leaf) + 1) * (self.leaves + 1)
        if most >= 1 << 62:
            raise OverflowError("scores do not fit into 62 bits")
        width = self.excess + 1 if most * (self.excess + 1) < 1 << 62 else 1
        unit = (self.leaves + 1) * width
        return ScoreWeights(
            price=price,
            sign=sign,
            keeps_all=keeps_all,
            saving=hops * unit,
            leaf=of_leaf * unit + width,
            excess=int(width > 1),
            unit=unit,
            width=width,
        )


@dataclass(frozen=True, slots=True)
class Rank:
    """The used leaves and switches of a part of a plan, in the order of plans of equal cost.

    The greatest is first. Ranks of parts add up.
    """

    # The leaves without members, then the excess capacity of the used switches on each level from
    # the leaves up, as the digits of one negative integer.
    digits: int
    leaf_set: int  # a bit for each used leaf; the first in tie order is the highest

    def __add__(self, other: "Rank") -> "Rank":
        return Rank(self.digits + other.digits, self.leaf_set + other.leaf_set)

    def __lt__(self, other: "Rank") -> bool:
        return (self.digits, self.leaf_set) < (other.digits, other.leaf_set)


NO_RANK = Rank(0, 0)


@dataclass(frozen=True)
class LeafOrder:
    """The ranks of leaves and switches for one group."""

    problem: Problem
    room: Array  # capacity below each switch. Shape (switches,)
    place: Array  # of each leaf with room in tie order. Shape (switches,)
    leaves: int  # leaves with room

    @classmethod
    def of(cls, problem: Problem, room: Array, has_members: Mask, leaves: Array) -> "LeafOrder":
        """Return the order of some leaves; those with members come last, as all sets have them.

        :param leaves: indices in ``topology.switches``
        """
        place = np.zeros(len(room), dtype=np.int64)
        in_order = leaves[np.lexsort((problem.tie[leaves], has_members[leaves]))]
        place[in_order] = np.arange(len(leaves))
        return cls(problem, room, place, len(leaves))

    def leaf_set(self, leaves: Array) -> int:
        """Return the bits of some leaves."""
        bits = np.zeros(self.leaves, dtype=np.bool_)
        bits[self.leaves - 1 - self.place[leaves]] = True
        return int.from_bytes(np.packbits(bits, bitorder="little").tobytes(), "little")

    def bit(self, leaf: int) -> int:
        """Return the bit of a leaf in a set of leaves."""
        return 1 << (self.leaves - 1 - int(self.place[leaf]))

    def rank_of_leaf(self, leaf: int, room: int, new: int) -> Rank:
        """Return the rank of one used leaf.

        :param new: 1 if it has no members, else 0
        """
        return Rank(self.digits(leaf, room) - new * self.digit(0), self.bit(leaf))

    def digits(self, switch: int, room: int) -> int:
        """Return the digits of used switches with some capacity, all children of one switch."""
        topology = self.problem.topology
        here = topology.switches[switch]
        above = topology.depth if here.parent < 0 else topology.switches[here.parent].level - 1
        return -room * (self._digits_from[here.level] - self._digits_from[above + 1])

    def digits_above(self, switch: int) -> int:
        """Return the digits of all switches above a switch."""
        above = itertools.islice(self.problem.topology.upwards(switch), 1, None)
        return sum(self.digits(upper, int(self.room[upper])) for upper in above)

    def digit(self, level: int) -> int:
        """Return the weight of a level's excess, or of the number of leaves at level 0."""
        return 1 << (self._width * (self.problem.topology.depth - level))

    @cached_property
    def _digits_from(self) -> tuple[int, ...]:
        """The sum of the weights of a level's excess and of all above, by level."""
        depth = self.problem.topology.depth
        weights = [self.digit(level) for level in range(depth, -1, -1)]
        return (*reversed([*itertools.accumulate(weights)]), 0)

    @cached_property
    def _width(self) -> int:
        """The bits of a digit: the capacity of all leaves fits."""
        return int(self.problem.capacity.sum()).bit_length() + 1
