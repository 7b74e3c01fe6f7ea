"""Which resource keeps a group from fitting."""

from collections.abc import Mapping

import numpy as np

from hpc_sched.core.arrays import Array, Mask
from hpc_sched.core.capacity import UNBOUNDED


def scarcest(by_resource: Mapping[str, Array], among: Mask, count: int) -> str | None:
    """Return the resource that runs out first, or None if there are enough of all.

    It is the one without which the most VMs more would fit; equal ones: the one that alone allows
    the fewest, then the name. O(resources * hypervisors).

    :param by_resource: VMs that each hypervisor takes if one resource alone counted
    :param among: the hypervisors to look at, shape (hypervisors,)
    :param count: VMs that do not fit
    """
    names = sorted(by_resource)
    if not names or not among.any():
        return None
    alone = np.minimum(np.array([by_resource[name][among] for name in names]), UNBOUNDED)
    if int(alone.min(axis=0).sum()) >= count:
        return None

    def without(i: int) -> int:
        others = np.delete(alone, i, axis=0)
        return int(others.min(axis=0, initial=UNBOUNDED).sum())

    return names[min(range(len(names)), key=lambda i: (-without(i), int(alone[i].sum()), names[i]))]
