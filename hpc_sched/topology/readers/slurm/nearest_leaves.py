"""Which leaves are near each other, from the leaves that each switch has below it."""

from collections.abc import Mapping, Sequence

from hpc_sched.topology.hierarchy import bits

# Sets of leaves are masks of bits. Both bounds are far above any fabric: they keep a file that
# was made to hurt from taking the scheduler's memory or time.
MAX_BITS = 1 << 31  # in all masks that are kept: 256 MB
MAX_STEPS = 1 << 31  # some ten seconds


def check_size(leaves: int, uppers: int) -> None:
    """Go on where masks for all switches fit into memory.

    :raises ValueError: where they do not
    """
    if leaves * (leaves + uppers) > MAX_BITS:
        raise ValueError(
            f"{leaves} leaf switches and {uppers} different lists of switches: too many to compare"
        )


def near_of(leaves: int, below: Mapping[int, Sequence[int]]) -> list[list[int]]:
    """Return which leaves are near each leaf, as :func:`hierarchy.build` takes it.

    Leaves that no switch has both below, though others connect them, meet one level above all
    switches. Linear in the leaves below all the different switches of a level, in steps of 64
    leaves.

    :param below: per level from 2 the leaves below each of its switches, as masks
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
    """Return for each leaf all leaves that can be reached from it by way of others."""
    if sum(mask.bit_count() for mask in set(near)) == len(near):
        return list(near)  # nobody is near two parts
    connected = [0] * len(near)
    for start in range(len(near)):
        if connected[start]:
            continue
        part = 1 << start
        new = part
        while new:
            reached = 0
            for leaf in bits(new):
                reached |= near[leaf]
            new = reached & ~part
            part |= reached
        for leaf in bits(part):
            connected[leaf] = part
    return connected
