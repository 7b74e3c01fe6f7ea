"""The model cluster of the network experiments: leaves, uplinks, and other jobs on them."""

import random
import statistics
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from hpc_sched.core.arrays import Reals
from hpc_sched.core.hopbyte import hop_bytes_of_counts
from hpc_sched.core.plan.problem import Problem
from hpc_sched.core.plan.tie_order import TieOrder
from hpc_sched.sim.runtime import traffic
from hpc_sched.sim.runtime.network import Flows, fat_tree, makespan, together
from hpc_sched.topology.model import Topology

OtherJobs = tuple[tuple[int, ...], ...]  # per job, the hosts of its VMs in the order of its ring


@dataclass(frozen=True, slots=True)
class NetworkSetup:
    """A job, the cluster that it runs on, with one VM per host, and the load of other jobs there.

    All values are guessed. 48-port switches with 32 hosts leave room for a group of 16 under one
    leaf of a cluster that is 40 % full. Oversubscription is the upper end of what Al-Fares et
    al. ("A scalable, commodity data center network architecture", 2008) call typical, 2.5:1 to
    8:1; at 4:1 the mean load of such a cluster does not fill its uplinks.
    """

    share: float  # communication in an iteration, alone under one leaf
    iterations: int = 20  # of one run
    leaves: int = 4
    hosts_a_leaf: int = 32
    host_rate: float = 125e6  # bytes/s, gigabit Ethernet
    oversubscription: float = 8.0
    taken: float = 0.4  # fraction of the hosts with a VM of another job
    neighbour_vms: int = 8  # of one other job
    talking: float = 0.3  # fraction of the time in which such a job communicates


@dataclass(frozen=True, slots=True)
class PlacementRun:
    """One run of the job under one placement."""

    placement: str
    leaves: int  # with VMs of the job
    hop_bytes: float  # one byte a pair, as Dudina2013 evaluates the metric
    computation: float  # s an iteration
    communication: float  # s an iteration, mean of the run

    @property
    def time(self) -> float:
        """Duration of an iteration, s; equal for all processes."""
        return self.computation + self.communication


def measured(
    setup: NetworkSetup,
    sent: Reals,
    seed: int,
    runs: int,
    place: Callable[[Problem, random.Random], Mapping[str, Sequence[int]]],
) -> Iterator[PlacementRun]:
    """Yield the placements of each run, with their times. The same seed gives the same ones.

    All placements of a run have the same neighbours, which communicate in the same iterations.
    """
    topology = fabric(setup)
    network = fat_tree(topology, host_rate=setup.host_rate, oversubscription=setup.oversubscription)
    computation = compute_time(setup, sent)
    for run in range(1, runs + 1):
        draw = random.Random(f"{seed} {run}")
        others = neighbours(setup, topology, draw)
        placed = place(group_problem(topology, others, len(sent), f"group{run}"), draw)
        noise = [chatter(setup, others, draw) for _ in range(setup.iterations)]
        for name, places in placed.items():
            flows = traffic.flows(sent, places)
            times = [makespan(network, together([flows, heard])) for heard in noise]
            leaves = len(set(topology.leaf_index[list(places)].tolist()))
            counts = Counter(topology.hosts[place] for place in places)
            yield PlacementRun(
                *(name, leaves),
                hop_bytes=hop_bytes_of_counts(topology=topology, counts=counts),
                computation=computation,
                communication=statistics.fmean(times),
            )


def compute_time(setup: NetworkSetup, sent: Reals) -> float:
    """Return the computation of an iteration, s.

    Communication takes its share of an iteration if the job has a leaf for itself, and each VM
    sends and receives at the rate of its host's link.
    """
    alone = float(sent.sum(axis=1).max()) / setup.host_rate
    return alone * (1 - setup.share) / setup.share


def fabric(setup: NetworkSetup) -> Topology:
    """Return the topology, two levels; ``n1-07`` is a host under ``leaf1``."""
    racks = {
        f"leaf{leaf}": [f"n{leaf}-{host:02}" for host in range(1, setup.hosts_a_leaf + 1)]
        for leaf in range(1, setup.leaves + 1)
    }
    return Topology.from_tree({"core": racks})


def neighbours(setup: NetworkSetup, topology: Topology, draw: random.Random) -> OtherJobs:
    """Return other jobs on random hosts, up to their fraction of the hosts."""
    hosts = range(len(topology.hosts))
    drawn = draw.sample(hosts, round(setup.taken * len(hosts)))
    size = setup.neighbour_vms
    return tuple(tuple(drawn[i : i + size]) for i in range(0, len(drawn), size))


def chatter(setup: NetworkSetup, others: OtherJobs, draw: random.Random) -> Flows:
    """Return the flows of the other jobs during one iteration.

    Each job communicates with the probability ``talking``: around its ring, at any rate.
    """
    heard = [job for job in others if draw.random() < setup.talking]
    return together(traffic.flows(traffic.ring(len(job), np.inf), job) for job in heard)


def group_problem(topology: Topology, others: OtherJobs, vms: int, group_id: str) -> Problem:
    """Return the problem of a group of VMs on the hosts that other jobs leave free.

    :raises ValueError: if these are too few
    """
    capacity = np.ones(len(topology.hosts), dtype=np.int64)
    capacity[[host for job in others for host in job]] = 0
    if capacity.sum() < vms:
        raise ValueError(f"{vms} VMs, but {capacity.sum()} free hosts")
    return Problem(
        *(topology, capacity),
        members=np.zeros_like(capacity),
        awaiting=vms,
        tie=TieOrder(topology, group_id),
    )


def random_places(problem: Problem, draw: random.Random) -> list[int]:
    """Return a random free host for each awaiting VM."""
    places = np.repeat(np.arange(len(problem.capacity)), problem.capacity)
    return draw.sample(places.tolist(), problem.awaiting)
