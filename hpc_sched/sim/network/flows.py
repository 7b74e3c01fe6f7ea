"""Flows on the links of a network."""

from dataclasses import dataclass

import numpy as np

from hpc_sched.core.arrays import Array, Reals


@dataclass(frozen=True, slots=True, eq=False)
class Flows:
    """Flows on their links. A row is for flows that are alike, and rates are those of one of them.

    A weight need not be whole: a flow that is there for a part of the time weighs that part.
    """

    links: Array  # each at most once, padded. Shape (flows, longest path)
    weight: Reals  # flows that a row is for, above 0. Shape (flows,)
    bound: Reals  # of the rate of one of them, whatever links leave, bytes/s. Shape (flows,)

    @classmethod
    def on(cls, links: Array) -> "Flows":
        """Return one flow without a bound on each path."""
        return cls(links, np.ones(len(links)), np.full(len(links), np.inf))

    def rows(self, chosen: Array) -> "Flows":
        """Return chosen rows, in that order."""
        return Flows(self.links[chosen], self.weight[chosen], self.bound[chosen])

    def __add__(self, other: "Flows") -> "Flows":
        """Return the rows of both, whose paths have the same length."""
        return Flows(
            np.concatenate([self.links, other.links]),
            np.concatenate([self.weight, other.weight]),
            np.concatenate([self.bound, other.bound]),
        )


def no_flows(longest: int) -> Flows:
    """Return no flow, of paths with a length."""
    return Flows.on(np.empty((0, longest), dtype=np.int64))
