"""How many VMs of one kind hosts can take."""

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

# More VMs than any request holds; a host whose demanded resources are all unknown takes as many.
UNBOUNDED = 1 << 20
# More than any host has; numpy's whole numbers end here.
_MOST = (1 << 63) - 1


def host_capacity(free: Mapping[str, float], demand: Mapping[str, int]) -> int:
    """Return how many VMs of a demand fit into what a host has free.

    The minimum over the demanded resource classes of free // demand (Gupta2012, whose text
    says "the maximum number of VMs each host can fit"). A class that the host tells nothing
    about does not bound.

    :param free: resource class to free amount, in the units of Placement
    :param demand: resource class to what one VM takes of it
    """
    fits = UNBOUNDED
    for resource_class, amount in demand.items():
        if amount > 0 and resource_class in free:
            fits = min(fits, int(free[resource_class] // amount))
    return max(fits, 0)


def capacities(free: NDArray[np.int64], demand: Sequence[int]) -> NDArray[np.int64]:
    """Return how many VMs of a demand fit into what each host has free. Shape (hosts,).

    :func:`host_capacity` for many hosts at once, in whole units.

    :param free: shape (hosts, resources)
    :param demand: what one VM takes of each resource
    """
    fits = np.full(len(free), UNBOUNDED, dtype=np.int64)
    for column, amount in enumerate(demand):
        if amount > 0:
            np.minimum(fits, free[:, column] // min(amount, _MOST), out=fits)
    return np.maximum(fits, 0)
