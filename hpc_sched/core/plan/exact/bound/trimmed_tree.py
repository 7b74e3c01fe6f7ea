"""The tree of a group without leaves and switches that no good plan uses."""

from dataclasses import replace

import numpy as np

from hpc_sched.core.arrays import Array
from hpc_sched.core.plan.exact.group_tree import GroupTree
from hpc_sched.core.plan.exact.nodes import Above, Siblings
from hpc_sched.core.plan.exact.pruning.branches import outside_one
from hpc_sched.core.plan.maxplus import LOWEST

# Sums of the other nodes of one switch: where more are needed nothing is left out.
_MOST = 1 << 20
_FEWEST = 4  # nodes below a switch: with fewer, to join them takes as long


def trimmed(tree: GroupTree, switch: int, below: Siblings, least: int) -> GroupTree:
    """Return a tree without what no plan uses that places all VMs below a switch.

    What all other nodes score if one has some VMs is at most what all nodes together score for the
    rest. A node whose best sum with that is too little for each number of VMs is left out.

    :param below: the nodes below the switch
    :param least: the least score of a plan
    """
    leaves, switches, most = dict(tree.leaves), dict(tree.switches), dict(tree.most)

    def trim(above: int, siblings: Siblings, outside: Array) -> None:
        """Leave out nodes; ``outside``: the most that all else scores, by VMs below the switch."""
        if len(siblings.nodes) < _FEWEST and above != switch:
            return
        longest = max(len(node.scores) for node in siblings.nodes)
        others = outside_one(siblings.together.scores, outside, least, longest, _MOST)
        if others is None:
            return
        caps = []
        for node in siblings.nodes:
            used = np.flatnonzero(node.scores + others[: len(node.scores)] >= least)
            caps.append(int(used[-1]) if len(used) else 0)
        own = leaves.get(above, [])
        # A node with a score for no VMs is part of each plan.
        is_kept = [
            cap > 0 or node.score(0) != 0 for node, cap in zip(siblings.nodes, caps, strict=True)
        ]
        leaves[above] = [
            part.up_to(cap) for part, cap, kept in zip(own, caps, is_kept, strict=False) if kept
        ]
        switches[above] = []
        for node, cap, kept in zip(siblings.nodes, caps, is_kept, strict=True):
            if isinstance(node, Above) and kept:
                most[node.switch] = cap
                trim(node.switch, node.below, others[: cap + 1] + node.own[: cap + 1])
                if leaves.get(node.switch) or switches.get(node.switch):
                    switches[above].append(node.switch)

    outside = np.full(tree.count + 1, LOWEST >> 1)
    outside[tree.count] = 0
    trim(switch, below, outside)
    return replace(tree, leaves=leaves, switches=switches, most=most)
