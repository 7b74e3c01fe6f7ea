"""Distances between leaves, from the leaves below each switch."""

from collections.abc import Mapping, Sequence

from hpc_sched.topology.leaf_masks import bits, union

# Both bounds are far above any fabric: they protect the scheduler's memory and time from a hostile
# file.
MAX_BITS = 1 << 31  # of all masks in memory: 256 MB
MAX_STEPS = 1 << 31  # some ten seconds


def check_size(leaves: int, uppers: int) -> None:
    """Check that the masks of all switches fit into memory.

    :raises ValueError: where they do not
    """
    if leaves * (leaves + uppers) > MAX_BITS:
        raise ValueError(
            f"{leaves} leaf switches and {uppers} different lists of switches: too many to compare"
        )


def near_of(leaves: int, below: Mapping[int, Sequence[int]]) -> list[list[int]]:
    """Return the leaves near each leaf, as :func:`hierarchy.build` takes them.

    Two leaves that no switch has both below, but a chain of others connects, meet one level above
    all switches. Linear in the leaves below all the different switches of a level, in steps of 64
    leaves.

    :param below: per level from 2, the masks of the leaves below each of its switches
    :raises ValueError: where that would take too long
    """
    now = [1 << leaf for leaf in range(leaves)]
    near = [now]
    kept = 0
    steps = 0
    for level in range(2, max(below, default=1) + 1):
        masks = dict.fromkeys(below.get(level, ()))
        steps += sum(mask.bit_count() for mask in masks) * (leaves // 64 + 64)
        now = list(now)
        for mask in masks:
            if steps > MAX_STEPS or kept > MAX_BITS:
                raise ValueError(
                    f"{leaves} leaf switches with too many different switches above to compare"
                )
            for leaf in bits(mask):
                union = now[leaf] | mask
                # Leaves below the same switches share one mask.
                if union == mask:
                    now[leaf] = mask
                else:
                    now[leaf] = union
                    kept += leaves
        near += [near[-1], now]
    connected = _connected(now)
    return near if connected == now else [*near, now, connected]


def _connected(near: Sequence[int]) -> list[int]:
    """Return, per leaf, the mask of all leaves connected with it, directly or by others."""
    if sum(mask.bit_count() for mask in set(near)) == len(near):
        return list(near)  # the parts are disjoint already
    connected = [0] * len(near)
    for start in range(len(near)):
        if connected[start]:
            continue
        part = 1 << start
        new = part
        while new:
            reached = union(near[leaf] for leaf in bits(new))
            new = reached & ~part
            part |= reached
        for leaf in bits(part):
            connected[leaf] = part
    return connected
