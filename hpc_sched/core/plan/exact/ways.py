"""Ways to place VMs below a node."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from hpc_sched.core.plan.exact.order import NO_RANK, Rank


class UsedLeaf(NamedTuple):
    """A leaf with the new VMs that it takes."""

    place: int  # in tie order
    leaf: int  # in topology.switches
    vms: int

    def used_leaves(self) -> Iterator["UsedLeaf"]:
        """Yield the leaf."""
        yield self


class Filling(Protocol):
    """VMs in some leaves."""

    def used_leaves(self) -> Iterator[UsedLeaf]:
        """Yield the leaves that have any."""


@dataclass(frozen=True, slots=True)
class Way:
    """One way to place VMs below a node."""

    rank: Rank
    parts: tuple["Way | Filling", ...] = ()  # of the nodes below

    def beside(self, other: "Way") -> "Way":
        """Return both ways together."""
        return Way(self.rank + other.rank, (self, other))

    def used_leaves(self) -> Iterator[UsedLeaf]:
        """Yield the leaves that have VMs."""
        for part in self.parts:
            yield from part.used_leaves()

    def is_before(self, other: "Way") -> bool:
        """True if this of two ways with the same score comes first in the order of plans."""
        if self.rank != other.rank:
            return other.rank < self.rank
        # Both use the same leaves: the first of them takes most.
        in_order, others_in_order = sorted(self.used_leaves()), sorted(other.used_leaves())
        return [used.vms for used in in_order] > [used.vms for used in others_in_order]


NOTHING = Way(NO_RANK)
