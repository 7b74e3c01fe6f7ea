"""Policies that take hosts in one order, whatever the fabric."""

import numpy as np

from hpc_sched.core.plan.result import Rejection
from hpc_sched.sim.policies.placement_policy import (
    PlacementRequest,
    Places,
    Policy,
    filled,
    refused,
)


def _least_free(request: PlacementRequest) -> Places | Rejection:
    # A host that takes a VM has fewer free processors then, and stays first until it is full: one
    # order serves the whole group. Equal hosts by name. O(hosts log hosts).
    problem = request.problem
    assert problem.packing is not None
    return filled(problem, np.lexsort((problem.topology.name_rank, problem.packing.free[:, 0])))


def _most_free(request: PlacementRequest) -> Places | Rejection:
    # Each VM of a host finds fewer free processors there than the one before: one sort serves the
    # whole group. Equal hosts by name. O(slots log slots), slots being the VMs that hosts take.
    problem = request.problem
    assert problem.packing is not None
    room = np.minimum(problem.capacity, problem.awaiting)
    hosts = np.repeat(np.arange(len(room)), room)
    if len(hosts) < problem.awaiting:
        return refused(problem)
    before = np.arange(len(hosts)) - np.repeat(np.cumsum(room) - room, room)  # VMs on this host
    free = problem.packing.free[hosts, 0] - before * problem.packing.demand[0]
    order = np.lexsort((problem.topology.name_rank[hosts], -free))
    return tuple(hosts[order[: problem.awaiting]].tolist())


def _random(request: PlacementRequest) -> Places | Rejection:
    problem = request.problem
    if int(problem.capacity.sum()) < problem.awaiting:
        return refused(problem)
    # In the order of names: that of the topology file does not matter. O(hosts).
    by_name = np.argsort(problem.topology.name_rank)
    hosts = by_name[problem.capacity[by_name] > 0].tolist()
    room = {host: int(problem.capacity[host]) for host in hosts}
    places = []
    for _ in range(problem.awaiting):
        drawn = request.draw.randrange(len(hosts))
        host = hosts[drawn]
        places.append(host)
        room[host] -= 1
        if not room[host]:
            # Replaced by the last host, which is cheaper than moving up all that follow.
            hosts[drawn] = hosts[-1]
            hosts.pop()
    return tuple(places)


FIRST_FIT = Policy(
    "first-fit",
    "the first hosts by name, each filled before the next",
    lambda request: filled(request.problem, np.argsort(request.group.topology.name_rank)),
    draws=False,
    packs=False,
)
LEAST_FREE_PE = Policy(
    "least-free-pe",
    "each VM on the host with the fewest free processors that still takes it (Gupta2013's default)",
    _least_free,
    draws=False,
)
MOST_FREE_PE = Policy(
    "most-free-pe",
    "each VM on the host with the most free processors (CloudSim's VmAllocationPolicySimple)",
    _most_free,
    draws=False,
)
RANDOM = Policy(
    "random", "each VM on any host that has room, all equally likely", _random, packs=False
)
