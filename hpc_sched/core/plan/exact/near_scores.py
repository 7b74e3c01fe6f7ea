"""Scores of ways that are near the best one, by VMs and leaves.

From the tables of a tree of nodes follows, top down, how many VMs a good plan may place below
each node, and how good a way it must have there. Bottom up, the few scores that are left are then
kept for each number of leaves, see :mod:`hpc_sched.core.plan.exact.bound.near_sums`.
"""

from typing import NamedTuple

import numpy as np

from hpc_sched.core.arrays import Array


class Wanted(NamedTuple):
    """The numbers of VMs below a node with which a plan may be good enough."""

    vms: Array  # sorted, each once
    least: Array  # the least score of a way with that many VMs that leads to such a plan


class NearScores(NamedTuple):
    """The best scores by VMs and leaves, as far as they are wanted.

    Ways that use more leaves and save no more than another with as many VMs are left out.
    """

    vms: Array  # sorted
    scores: Array

    def at(self, vms: int) -> Array:
        """Return the scores of a number of VMs."""
        first, last = np.searchsorted(self.vms, (vms, vms + 1))
        scores: Array = self.scores[first:last]
        return scores


NOTHING_NEAR = NearScores(np.zeros(1, dtype=np.int64), np.zeros(1, dtype=np.int64))


def near_in_table(scores: Array, wanted: Wanted) -> NearScores:
    """Return the scores of a node with one number of leaves for each number of VMs."""
    found = scores[wanted.vms]
    is_near = found >= wanted.least
    return NearScores(wanted.vms[is_near], found[is_near])
