"""How many VMs of one flavor hosts can take."""

from collections.abc import Mapping, Sequence

import numpy as np

from hpc_sched.core.arrays import Array

# More VMs than any request has; the capacity of a host of which no demanded resource is known.
UNBOUNDED = 1 << 20
# The largest int64: demands are clipped to it.
_MOST = (1 << 63) - 1


def host_capacity(free: Mapping[str, float], demand: Mapping[str, int]) -> int:
    """Return how many VMs fit into the free resources of a host (Gupta2012).

    The minimum over the demanded resource classes of free // demand. A class that the host does
    not report is no bound.

    :param free: resource class to free amount, in the units of Placement
    :param demand: resource class to the amount of one VM
    """
    fits = UNBOUNDED
    for resource_class, amount in demand.items():
        if amount > 0 and resource_class in free:
            fits = min(fits, int(free[resource_class] // amount))
    return max(fits, 0)


def capacities(free: Array, demand: Sequence[int]) -> Array:
    """Return :func:`host_capacity` of many hosts at once, in whole units. Shape (hosts,).

    :param free: shape (hosts, resources)
    :param demand: amount of each resource that one VM takes
    """
    fits = np.full(len(free), UNBOUNDED, dtype=np.int64)
    for column, amount in enumerate(demand):
        if amount > 0:
            np.minimum(fits, free[:, column] // min(amount, _MOST), out=fits)
    return np.maximum(fits, 0)
