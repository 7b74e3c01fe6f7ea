"""The order of plans of equal cost, as integers that add up, and the ways that it orders."""

import itertools
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import NamedTuple

import numpy as np

from hpc_sched.core.arrays import Array, Mask
from hpc_sched.core.fragmentation.price import LEAF, POD
from hpc_sched.core.plan.exact.charges import LEAVES_OF_POD
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

    saved: int  # hops, or parts of them
    leaves: int  # without members' leaves
    excess: int  # capacity of the used leaves; 0 where another order is left to the rank

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


class UsedLeaf(NamedTuple):
    """A leaf with the new VMs that it takes."""

    place: int  # in tie order
    leaf: int  # in topology.switches
    vms: int


@dataclass(frozen=True, slots=True, eq=False)
class Way:
    """One way to place VMs below a node."""

    rank: Rank
    parts: tuple["Way", ...] = ()  # of the nodes below
    own: tuple[Array, ...] = ()  # the fields of its own used leaves, shape (leaves,) each

    def beside(self, other: "Way") -> "Way":
        """Return both ways together."""
        if self is NOTHING or other is NOTHING:
            return other if self is NOTHING else self
        return Way(self.rank + other.rank, (self, other))

    def used_leaves(self) -> Iterator[UsedLeaf]:
        """Yield the leaves that have VMs."""
        yield from map(UsedLeaf._make, zip(*(each.tolist() for each in self.own), strict=True))
        for part in self.parts:
            yield from part.used_leaves()

    def __lt__(self, other: "Way") -> bool:
        """True if this of two ways with the same score comes first in the order of plans."""
        if self.rank != other.rank:
            return other.rank < self.rank
        # Both use the same leaves: the first of them takes most.
        in_order, others_in_order = sorted(self.used_leaves()), sorted(other.used_leaves())
        return [used.vms for used in in_order] > [used.vms for used in others_in_order]


NOTHING = Way(Rank(0, 0))


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
        in_order = leaves[np.lexsort((problem.tie.among(leaves), has_members[leaves]))]
        place[in_order] = np.arange(len(leaves))
        return cls(problem, room, place, len(leaves))

    def way(self, leaves: Array, vms: Array, room: int, *, has_members: bool) -> Way:
        """Return the way that places VMs in some leaves just below one switch.

        :param leaves: all of them with members, or none
        :param vms: in each of the leaves
        :param room: of all of them
        """
        bits = np.zeros(self.leaves, dtype=np.bool_)
        bits[self.leaves - 1 - self.place[leaves]] = True
        leaf_set = int.from_bytes(np.packbits(bits, bitorder="little").tobytes(), "little")
        new = 0 if has_members else len(leaves)
        digits = self._digits(int(leaves[0]), room) - new * self._digit(0)
        return Way(Rank(digits, leaf_set), own=(self.place[leaves], leaves, vms))

    def rank_of(self, switches: Iterable[int]) -> Rank:
        """Return the rank of used switches above leaves."""
        return Rank(sum(self._digits(switch, int(self.room[switch])) for switch in switches), 0)

    def _digits(self, switch: int, room: int) -> int:
        """Return the digits of used switches with some capacity, all children of one switch."""
        topology = self.problem.topology
        here = topology.switches[switch]
        above = topology.depth if here.parent < 0 else topology.switches[here.parent].level - 1
        return -room * (self._digits_from[here.level] - self._digits_from[above + 1])

    def _digit(self, level: int) -> int:
        """Return the weight of a level's excess, or of the number of leaves at level 0.

        With a price of free slots, leaves and pods have one digit together.
        """
        depth = self.problem.topology.depth
        if level == LEAF and self.problem.price is not None and depth >= POD:
            return LEAVES_OF_POD * self._digit(POD)
        return 1 << (self._width * (depth - level))

    @cached_property
    def _digits_from(self) -> tuple[int, ...]:
        """The sum of the weights of a level's excess and of all above, by level."""
        depth = self.problem.topology.depth
        weights = [self._digit(level) for level in range(depth, -1, -1)]
        return (*reversed([*itertools.accumulate(weights)]), 0)

    @cached_property
    def _width(self) -> int:
        """The bits of a digit: the capacity of all leaves fits."""
        return int(self.problem.capacity.sum()).bit_length() + 1
