"""What several hosts share is given to the hosts with the most planned VMs first."""

from collections.abc import Mapping, Sequence

import numpy as np
import pytest

from hpc_sched.core.capacity import UNBOUNDED
from hpc_sched.core.room.hypervisor_rooms import shared_limits
from hpc_sched.core.room.providers import Amounts, Inventory

POOL: Inventory = ("pool", "DISK_GB")


def limits(planned: Sequence[int], free: int, on_pool: Sequence[int]) -> dict[str, list[int]]:
    """Return the limits of hosts, of which some have their disks in a pool.

    ::

               pool
             /  |   \\
        host0 host1 host2   host3

    :param free: VMs whose disks the pool has room for
    """

    def claims(_host: int, number: int, taken: Mapping[Inventory, int]) -> list[Amounts]:
        return [{POOL: 1}] * min(number, free - taken.get(POOL, 0))

    found = shared_limits(
        np.array(planned), lambda i: frozenset({POOL} if i in on_pool else ()), claims
    )
    return {name: limit.tolist() for name, limit in found.items()}


@pytest.mark.parametrize(
    ("planned", "free", "expected"),
    [
        pytest.param([1, 3, 0, 2], 4, None, id="enough for the plan"),
        pytest.param([1, 3, 0, 2], 3, [0, 3, 0], id="the host with most VMs keeps its places"),
        pytest.param([3, 1, 0, 2], 3, [3, 0, 0], id="wherever it is in the order of the hosts"),
        pytest.param([2, 3, 0, 0], 4, [1, 3, 0], id="the next one gets what is left"),
        pytest.param([2, 2, 0, 0], 3, [2, 1, 0], id="of equal hosts the first keeps its places"),
    ],
)
def test_the_hosts_with_the_most_planned_vms_keep_their_places(
    planned: list[int], free: int, expected: list[int] | None
):
    found = limits(planned, free, on_pool=(0, 1, 2))
    assert found == ({} if expected is None else {"DISK_GB": [*expected, UNBOUNDED]})
