"""The other jobs on the cluster of one job: scattered, or packed as the hops plan leaves them."""

import random
from collections import Counter
from dataclasses import dataclass

import numpy as np

from hpc_sched import exceptions
from hpc_sched.core.arrays import Array, Mask
from hpc_sched.core.constraints import NO_CONSTRAINTS
from hpc_sched.core.group_request import GroupRequest
from hpc_sched.core.objectives.used_uplinks import used_uplinks
from hpc_sched.core.plan.objective import Objective
from hpc_sched.core.plan.result import Rejection
from hpc_sched.core.plan.tie_order import TieOrder
from hpc_sched.experiments.objectives.fabrics import PATTERNS
from hpc_sched.topology.model import Topology

SCATTERED, PACKED = NEIGHBOURS = ("scattered", "packed")
SIZES = (8, 12, 24, 48)  # ranks of another job; a leaf of 16 holds the first two


@dataclass(frozen=True, slots=True, eq=False)
class Neighbour:
    """Another job."""

    pattern: str
    hosts: Array  # of each rank


@dataclass(frozen=True, slots=True, eq=False)
class DrawnNeighbours:
    """What a seed draws: all objectives find the same other jobs."""

    seed: int
    topology: Topology
    jobs: tuple[Neighbour, ...]

    @property
    def free(self) -> Array:
        """1 for a host without a rank of another job, else 0. Shape (hosts,)."""
        room = np.ones(len(self.topology.hosts), dtype=np.int64)
        for job in self.jobs:
            room[job.hosts] = 0
        return room

    @property
    def uses_uplinks(self) -> Mask:
        """Whether another job uses the uplinks of each switch. Shape (switches,)."""
        names = self.topology.hosts
        jobs = (Counter(names[host] for host in job.hosts.tolist()) for job in self.jobs)
        return used_uplinks(self.topology, jobs)


def drawn_neighbours(topology: Topology, seed: int, kind: str, taken: float) -> DrawnNeighbours:
    """Return other jobs on at most a part of the hosts; the same jobs, whatever their kind.

    A full cluster, placed job by job by the hops plan, of which random jobs have ended. Those that
    are left are where they were, or scattered: on random hosts.

    :param kind: one of NEIGHBOURS
    :param taken: part of the hosts
    """
    draw = random.Random(f"objectives {seed}")
    free = np.ones(len(topology.hosts), dtype=np.int64)
    jobs: list[Neighbour] = []
    while (left := int(free.sum())) >= SIZES[0]:
        ranks = min(draw.choice(SIZES), left)
        hosts = placed(topology, free, ranks, f"{seed} {len(jobs)}")
        assert hosts is not None  # without an objective whatever has room has a plan
        free[hosts] = 0
        jobs.append(Neighbour(draw.choice(PATTERNS), hosts))
    draw.shuffle(jobs)
    kept, count = [], 0
    for job in jobs:
        if count + len(job.hosts) <= taken * len(topology.hosts):
            kept.append(job)
            count += len(job.hosts)
    if kept and kind == SCATTERED:
        places = np.array(draw.sample(range(len(topology.hosts)), count), dtype=np.int64)
        ends = np.cumsum([len(job.hosts) for job in kept])[:-1]
        parts = np.split(places, ends)
        kept = [Neighbour(job.pattern, hosts) for job, hosts in zip(kept, parts, strict=True)]
    return DrawnNeighbours(seed, topology, tuple(kept))


def placed(
    topology: Topology, free: Array, ranks: int, name: str, objective: Objective | None = None
) -> Array | None:
    """Return the host of each rank, one a host, in the order of the fabric; None without a plan.

    :param free: 1 for a host that can be used. Shape (hosts,)
    :param name: key of the order of equals
    :param objective: None for the least Hop-Byte
    :raises exceptions.SimulationError: if there are fewer free hosts than ranks
    """
    if ranks > int(free.sum()):
        raise exceptions.SimulationError(f"{ranks} ranks, but {int(free.sum())} free hosts")
    group = GroupRequest(
        topology=topology,
        tie=TieOrder(topology, name),
        host_index=None,
        room=free.copy(),
        members=np.zeros_like(free),
        left=ranks,
        awaiting=ranks,
        constraints=NO_CONSTRAINTS,
        packing=None,
        homogeneous="prefer",
        processors=None,
        objective=objective,
    )
    answer = group.decide()
    if isinstance(answer, Rejection):
        return None
    return np.array([topology.index_of(host) for host in answer.places], dtype=np.int64)
