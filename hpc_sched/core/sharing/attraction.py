"""Positive interference: applications that run faster on one host (Gupta2013, section II-A)."""

import math
from collections.abc import Collection, Iterable, Mapping

from hpc_sched.core.sharing.cache_interference import EPSILON, Application, InterferenceIndex


def attracting(index: InterferenceIndex, name: str | None, tolerance: float) -> Mapping[str, float]:
    """Return the applications that attract one, each with what the two gain together.

    A change of performance below ``tolerance`` counts as none, as in
    :meth:`InterferenceIndex.bad_company`: measured times scatter. Of a pair one application must
    gain, and none may lose. What they gain is the sum over both: 1.2 if one has a performance of
    2.2 and the other one of 1. O(entries).

    :param name: of the application; None has no pairs
    """
    found = {}
    for (one, neighbour), speed in index.performance.items():
        if one != name:
            continue
        back = index.performance.get((neighbour, one))
        if back is None:
            continue
        changes = [_change(speed, tolerance), _change(back, tolerance)]
        if min(changes) >= 0 and max(changes) > 0:
            found[neighbour] = math.fsum(changes)
    return found


def attraction(
    vm: Application,
    neighbours: Iterable[Application],
    gains: Mapping[str, float],
    incompatible: Collection[str] = (),
) -> float:
    """Return what a VM and the VMs on a host gain by sharing it; 0 for nothing.

    Each application of other groups' VMs counts once, whatever its VMs. A host with bad company
    attracts nothing: where no filter removes it, a gain must not lead to a loss. O(neighbours).

    :param gains: of the VM's application, see :func:`attracting`
    :param incompatible: its bad company, see :meth:`InterferenceIndex.bad_company`
    """
    names = {
        there.name
        for there in neighbours
        if there.name is not None and not (vm.group is not None and there.group == vm.group)
    }
    if any(name in incompatible for name in names):
        return 0.0
    return math.fsum(gains.get(name, 0.0) for name in names)


def _change(speed: float, tolerance: float) -> float:
    """Return by how much a performance differs from 1; 0 below the tolerance."""
    change = speed - 1.0
    is_noticed = abs(change) > EPSILON and abs(change) >= tolerance - EPSILON
    return change if is_noticed else 0.0
