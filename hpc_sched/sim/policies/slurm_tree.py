"""Slurm's topology/tree: best fit over leaf switches.

Restated from Slurm 26.05.3 (src/plugins/topology/tree/eval_nodes_tree.c and switch_record.c); the
rule, and what is left out of it, is in docs/reference/policies.rst.
"""

from dataclasses import dataclass

import numpy as np

from hpc_sched.core.arrays import Array, Mask
from hpc_sched.core.plan.result import Rejection
from hpc_sched.core.plan.switch_rooms import sums_below
from hpc_sched.sim.policies.placement_policy import (
    PlacementRequest,
    Places,
    Policy,
    filled,
    refused,
)
from hpc_sched.topology.model import Topology


@dataclass(frozen=True, slots=True, eq=False)
class Leaves:
    """Leaf switches in the order of the description, with the switches above each."""

    above: Array  # the leaf, its parent and so on; a root repeats. Shape (steps, leaves)
    level: Array  # per switch of the fabric

    @classmethod
    def of(cls, topology: Topology) -> "Leaves":
        """Return all leaves of a topology."""
        switches = topology.switches
        parent = np.array([s if one.parent < 0 else one.parent for s, one in enumerate(switches)])
        level = np.array([one.level for one in switches])
        leaves = np.flatnonzero(level == 1).tolist()
        rows = [np.array(sorted(leaves, key=lambda s: (switches[s].order, s)))]
        while (parent[rows[-1]] != rows[-1]).any():
            rows.append(parent[rows[-1]])
        return cls(np.vstack(rows), level)

    def below(self, root: int) -> "Leaves":
        """Return the leaves below a root."""
        return Leaves(self.above[:, self.above[-1] == root], self.level)

    def links(self, leaf: int) -> Array:
        """Return the links between one of the leaves and each of them. Shape (leaves,)."""
        path = list(dict.fromkeys(self.above[:, leaf].tolist()))
        down = np.full(len(self.level), -1)
        down[path] = np.arange(len(path))
        meets = down[self.above]
        up = np.argmax(meets >= 0, axis=0)
        links: Array = up + meets[up, np.arange(len(up))]
        return links


def _place(request: PlacementRequest) -> Places | Rejection:
    """Return the places of a job's VMs. O(leaves taken * leaves * levels)."""
    problem = request.problem
    if not problem.awaiting:
        return ()
    leaves = Leaves.of(problem.topology)
    # Free hosts below each switch, and the VMs that they take.
    hosts = sums_below(problem, np.minimum(problem.capacity, 1))
    room = sums_below(problem, problem.capacity)
    # A job on hosts that take one VM each requests a number of hosts; another one a single host.
    wanted_hosts = problem.awaiting if problem.capacity.max() <= 1 else 1
    roots = [
        (switch.level, switch.order, s)
        for s, switch in enumerate(problem.topology.switches)
        if switch.parent < 0 and hosts[s] >= wanted_hosts and room[s] >= problem.awaiting
    ]
    if not roots:
        return refused(problem)
    *_, root = max(roots)
    leaves = leaves.below(root)
    distance = np.zeros(leaves.above.shape[1], dtype=np.int64)
    wanted = problem.awaiting
    taken: list[int] = []  # leaf switches
    while wanted > 0:
        enough = (hosts[leaves.above] >= wanted_hosts) & (room[leaves.above] >= wanted)
        best = best_leaf(leaves, np.argmax(enough, axis=0), hosts, distance)
        path = list(dict.fromkeys(leaves.above[:, best].tolist()))
        leaf = path[0]
        taken.append(leaf)
        wanted -= int(room[leaf])
        wanted_hosts -= int(hosts[leaf])
        hosts[path] -= hosts[leaf]
        distance += leaves.links(best)
    turn = np.full(len(room), len(room))
    turn[taken] = np.arange(len(taken))
    turns = turn[problem.topology.leaf_index]
    order = np.lexsort((problem.topology.name_rank, turns))
    return filled(problem, order[turns[order] < len(taken)])


def best_leaf(leaves: Leaves, end: Array, hosts: Array, distance: Array) -> int:
    """Return the last leaf that was better than the best one before it.

    :param end: per leaf, the steps of the walk up to the first switch with enough for the rest;
        the root always has enough
    :param hosts: per switch of the fabric, the free hosts
    :param distance: per leaf, the links to all leaves taken before
    """
    above, level = leaves.above, leaves.level

    def are_better(those: Array, best: int) -> Mask:
        equal = end[those] == end[best]
        same = equal & (above[end[those], those] == above[end[best], best])
        # Two walks to one switch are compared just before they meet.
        apart = (above[:, those] != above[:, [best]]).sum(axis=0) - 1
        step = np.where(same, apart, end[those])
        one, two = above[step, those], above[step, best]
        more = hosts[one] - hosts[two]
        fits = np.where(same, more, -more)
        tighter = (fits > 0) | ((fits == 0) & (level[one] < level[two]))
        sooner = end[those] < end[best]
        nearer = (distance[those] < distance[best]) & (sooner | (equal & ~same))
        as_far = distance[those] == distance[best]
        better: Mask = nearer | (as_far & (sooner | (equal & tighter)))
        return better

    left = np.flatnonzero(hosts[above[0]] > 0)
    best, left = int(left[0]), left[1:]
    while len(left):
        better = are_better(left, best)
        first = int(np.argmax(better))
        if not better[first]:
            break
        best, left = int(left[first]), left[first + 1 :]
    return best


POLICY = Policy(
    "slurm-tree",
    "Slurm's topology/tree (26.05.3): leaves by best fit below the lowest switch that has enough",
    _place,
    draws=False,
    packs=False,
)
