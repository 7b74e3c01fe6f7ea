"""The model cluster of the network experiments: leaves, uplinks, and other jobs on them."""

import random
import statistics
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from hpc_sched.core.hopbyte import hop_bytes_of_counts
from hpc_sched.core.plan.problem import Problem
from hpc_sched.core.plan.tie_order import TieOrder
from hpc_sched.sim.network.flows import Flows, no_flows
from hpc_sched.sim.network.links import Network, fat_tree, paths_between
from hpc_sched.sim.network.messages.iteration import Iteration, volume
from hpc_sched.sim.network.placed_steps import PlacedSteps
from hpc_sched.topology.model import Topology

OtherJobs = tuple[tuple[int, ...], ...]  # per job, the hosts of its VMs in the order of its ring
Placement = Callable[[Problem, random.Random], Mapping[str, Sequence[int]]]


@dataclass(frozen=True, slots=True)
class NetworkSetup:
    """A job, the cluster that it runs on, with one VM per host, and the load of other jobs there.

    All values are guessed. 48-port switches with 32 hosts leave room for a group of 16 under one
    leaf of a cluster that is 40 % full. Oversubscription is the upper end of what Al-Fares et
    al. ("A scalable, commodity data center network architecture", 2008) call typical, 2.5:1 to
    8:1.
    """

    share: float  # communication in an iteration, alone under one leaf
    iterations: int = 20  # of one run; other jobs that communicate are drawn for each
    leaves: int = 4
    hosts_a_leaf: int = 32
    host_rate: float = 125e6  # bytes/s, gigabit Ethernet
    oversubscription: float = 8.0
    taken: float = 0.4  # fraction of the hosts with a VM of another job
    neighbour_vms: int = 8  # of one other job
    talking: float = 0.3  # fraction of the iterations in which such a job communicates


@dataclass(frozen=True, slots=True, eq=False)
class DrawnRun:
    """What is drawn for one run: all placements have the same other jobs."""

    network: Network
    places: Mapping[str, Sequence[int]]  # hosts of the VMs, by the name of the placement
    others: tuple[Flows, ...]  # of other jobs, by iteration


@dataclass(frozen=True, slots=True)
class PlacementRun:
    """One run of a program under one placement."""

    program: str
    placement: str
    leaves: int  # with VMs of the job
    hop_bytes: float  # one byte a pair, as Dudina2013 evaluates the metric
    communication: float  # s an iteration, mean of the run


def measured(
    setup: NetworkSetup,
    programs: Mapping[str, Iteration],
    seed: int,
    runs: int,
    place: Placement,
    vms: int,
) -> Iterator[PlacementRun]:
    """Yield a row for each run, placement and program, in this order.

    The same seed gives the same rows. Ranks wait for each other after every step.
    """
    for drawn in drawn_runs(setup, seed, runs, place, vms):
        topology = drawn.network.topology
        for placement, places in drawn.places.items():
            hosts = np.array(places, dtype=np.int64)
            counts = Counter(topology.hosts[host] for host in places)
            for program, steps in programs.items():
                placed = PlacedSteps.of(drawn.network, steps, hosts)
                yield PlacementRun(
                    *(program, placement, len(set(topology.leaf_index[hosts].tolist()))),
                    hop_bytes=hop_bytes_of_counts(topology=topology, counts=counts),
                    communication=_mean_seconds(drawn.network, placed, drawn.others),
                )


def _mean_seconds(network: Network, placed: PlacedSteps, others: Sequence[Flows]) -> float:
    """Return the mean time that the messages of an iteration take with each of the others, s."""
    used = np.setdiff1d(placed.links, [network.padding])
    alone = placed.seconds(network.capacity, no_flows(placed.links.shape[1]))
    # Flows that share no link with the job's change nothing, and under one leaf none does.
    return statistics.fmean(
        placed.seconds(network.capacity, heard) if np.isin(heard.links, used).any() else alone
        for heard in others
    )


def drawn_runs(
    setup: NetworkSetup, seed: int, runs: int, place: Placement, vms: int
) -> Iterator[DrawnRun]:
    """Yield the runs of a seed: other jobs, places, and which jobs communicate when."""
    topology = fabric(setup)
    network = fat_tree(topology, host_rate=setup.host_rate, oversubscription=setup.oversubscription)
    for run in range(1, runs + 1):
        draw = random.Random(f"{seed} {run}")
        others = neighbours(setup, topology, draw)
        places = place(group_problem(topology, others, vms, f"group{run}"), draw)
        heard = tuple(chatter(setup, network, others, draw) for _ in range(setup.iterations))
        yield DrawnRun(network, places, heard)


def compute_time(setup: NetworkSetup, steps: Iteration) -> float:
    """Return the computation of an iteration, s.

    Communication takes its share of an iteration if the job has a leaf for itself, and each VM
    sends and receives at the rate of its host's link.
    """
    return volume(steps) / setup.host_rate * (1 - setup.share) / setup.share


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


def chatter(setup: NetworkSetup, network: Network, others: OtherJobs, draw: random.Random) -> Flows:
    """Return the flows of the other jobs during one iteration, which do not end in it.

    Each job communicates with the probability ``talking``: around its ring, at any rate.
    """
    heard = [job for job in others if draw.random() < setup.talking and len(job) > 1]
    source = np.array([host for job in heard for host in job], dtype=np.int64)
    target = np.array([host for job in heard for host in (*job[1:], job[0])], dtype=np.int64)
    return Flows.on(paths_between(network, source, target))


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
