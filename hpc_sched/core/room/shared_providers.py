"""Limits by providers that many hosts share, such as a storage pool."""

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from hpc_sched.core.arrays import Array
from hpc_sched.core.capacity import UNBOUNDED
from hpc_sched.core.room.providers import Amounts, Inventory

# Returns the first claims on the host at an index, up to a number, as far as they fit once some
# amounts have been taken.
Claims = Callable[[int, int, Mapping[Inventory, int]], Sequence[Amounts]]


def shared_limits(
    planned: Array, shared: Callable[[int], frozenset[Inventory]], claims: Claims
) -> dict[str, Array]:
    """Return the VMs that each host may have of a plan, by resource class that has too little.

    The hosts with the most planned VMs keep their places; the others get what is left. Which
    hosts should give way for the least Hop-Byte is not searched. UNBOUNDED for hosts that do not
    use such an inventory. Empty if there is enough for the plan.

    :param planned: VMs planned on each host, shape (hosts,)
    :param shared: returns the inventories that the host at an index does not have for itself
    """
    count = int(planned.sum())
    taken: dict[Inventory, int] = {}
    lacking: set[Inventory] = set()
    limit = np.full(len(planned), UNBOUNDED, dtype=np.int64)
    order = np.argsort(-planned, kind="stable").tolist()
    for i in order:
        if planned[i] and (keys := shared(i)):
            found = claims(i, int(planned[i]), taken)
            limit[i] = len(found)
            if len(found) < planned[i]:
                lacking |= keys
            for claimed in found:
                for key in keys & claimed.keys():
                    taken[key] = taken.get(key, 0) + claimed[key]
    if not lacking:
        return {}
    for i in order:
        if not planned[i] and lacking & shared(i):
            limit[i] = len(claims(i, count, taken))
    return {name: limit for _, name in sorted(lacking)}
