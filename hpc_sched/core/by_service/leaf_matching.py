"""Leaves that take a VM each where every service takes few: a matching of leaves and services."""

from collections.abc import Mapping, Sequence

import numpy as np

from hpc_sched.core.arrays import Array


def matched(rooms: Array, allowed: Array, leaves: Sequence[int], most: int) -> Mapping[int, int]:
    """Return a service for each of up to ``most`` leaves, as many of these as possible.

    By augmenting paths: O(most * leaves * services).

    :param rooms: VMs on the nodes of a service below each leaf, shape (leaves, services)
    :param allowed: VMs that each service may take, shape (services,)
    :param leaves: the leaves that need a VM, in the order in which they get it
    """
    service: dict[int, int] = {}
    served: list[list[int]] = [[] for _ in allowed]
    for leaf in leaves:
        if len(service) >= most:
            break
        # The leaf that would get a VM of each service, in the order in which they are reached.
        reached: dict[int, int] = {}
        waiting, free = [leaf], -1
        for other in waiting:
            for number in np.flatnonzero(rooms[other]).tolist():
                if number in reached or not allowed[number]:
                    continue
                reached[number] = other
                if len(served[number]) < allowed[number]:
                    free = number
                    break
                waiting += [one for one in served[number] if one not in waiting]
            if free >= 0:
                break
        while free >= 0:
            other = reached[free]
            before = service.get(other, -1)
            if before >= 0:
                served[before].remove(other)
            service[other] = free
            served[free].append(other)
            free = before
    return service
