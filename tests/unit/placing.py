"""Requests to the simulator's policies, and what the tests say of the answers."""

import random
from collections import Counter
from collections.abc import Mapping

import numpy as np

from hpc_sched.core.constraints import NO_CONSTRAINTS, Constraints
from hpc_sched.core.group_request import GroupRequest
from hpc_sched.core.plan.result import Rejection
from hpc_sched.core.plan.tie_order import TieOrder
from hpc_sched.core.sharing.cache_interference import Application
from hpc_sched.core.sharing.mdobp import MDOBPInput
from hpc_sched.sim.policies.placement_policy import PlacementRequest, Places, Policy
from hpc_sched.topology import Topology

Free = Mapping[str, tuple[float, float]]  # host to free processors and memory, MB


def request(
    topology: Topology,
    room: Mapping[str, int],
    awaiting: int,
    *,
    demand: tuple[float, float] = (2, 1024),
    free: Free | None = None,
    constraints: Constraints = NO_CONSTRAINTS,
    seed: int = 1,
) -> PlacementRequest:
    """Return the request of a group.

    :param room: VMs that hosts take; others take none
    :param free: what hosts have free; by default just enough for those VMs
    """
    counts = np.array([room.get(host, 0) for host in topology.hosts], dtype=np.int64)
    left = np.outer(counts, demand).astype(float)
    for host, both in (free or {}).items():
        left[topology.index_of(host)] = both
    group = GroupRequest(
        topology=topology,
        tie=TieOrder(topology, ""),
        host_index=None,
        room=counts,
        members=np.zeros_like(counts),
        left=awaiting,
        awaiting=awaiting,
        constraints=constraints,
        packing=MDOBPInput(np.array(demand, dtype=float), left, np.maximum(left, 1.0)),
    )
    return PlacementRequest(group, Application("sync"), random.Random(seed))


def per_host(request: PlacementRequest, answer: Places | Rejection) -> dict[str, int]:
    """Return the VMs per host, in the order in which hosts were taken."""
    assert not isinstance(answer, Rejection), str(answer)
    return dict(Counter(request.problem.topology.hosts[host] for host in answer))


def placed(policy: Policy, topology: Topology, *args: object, **kwargs: object) -> dict[str, int]:
    """Return the VMs per host that a policy gives to the group of :func:`request`."""
    made = request(topology, *args, **kwargs)  # type: ignore[arg-type]
    return per_host(made, policy.place(made))


def per_leaf(topology: Topology, hosts: Mapping[str, int]) -> dict[str, int]:
    """Return the VMs per leaf, in the order in which leaves were taken."""
    counts = Counter[str]()
    for host, count in hosts.items():
        counts[topology.leaf_of(host)] += count
    return dict(counts)
