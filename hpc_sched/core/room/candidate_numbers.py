"""How many allocation candidates Placement has for a VM on some hosts, without their trees."""

import math
from collections import Counter
from collections.abc import Mapping

from hpc_sched.core.room.resource_request import ResourceRequest


def estimated(request: ResourceRequest, devices: Mapping[str, Mapping[str, int]]) -> int:
    """Return about how many candidates there are, repeats included.

    Request groups that are alike take of the same devices in any order: ``d! / (d - k)!`` for k of
    d devices. Without regard to traits and to several VMs of one device.

    :param devices: class to the number of providers with room for one part of it by host, of the
        classes that are devices
    """
    wanted = Counter(n for group in request.groups for n in group.resources if n in devices)
    if not wanted:
        return 0
    hosts = set.intersection(*(set(devices[name]) for name in wanted))
    return sum(
        math.prod(math.perm(devices[name][host], number) for name, number in wanted.items())
        for host in hosts
    )
