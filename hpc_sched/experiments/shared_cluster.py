"""The model cluster of the network experiments: leaves, uplinks, and jobs of others on them."""

import random
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from hpc_sched.core.plan.problem import Problem, tie_order
from hpc_sched.sim.runtime import network as links
from hpc_sched.sim.runtime import traffic
from hpc_sched.sim.runtime.network import Flows, Network, fat_tree, together
from hpc_sched.topology.model import Topology


@dataclass(frozen=True, slots=True)
class SharedCluster:
    """A cluster with one VM a host, and how busy the jobs of others keep it.

    All of it is guessed. 48-port switches with 32 hosts leave room for a group of 16 under one
    leaf of a cluster that is 40 % full. Oversubscription is the upper end of what Al-Fares et
    al. ("A scalable, commodity data center network architecture", 2008) call typical, 2.5:1 to
    8:1; at 4:1 the mean load of such a cluster does not fill its uplinks.
    """

    leaves: int = 4
    hosts_a_leaf: int = 32
    host_rate: float = 125e6  # bytes/s, gigabit Ethernet
    oversubscription: float = 8.0
    taken: float = 0.4  # part of the hosts with a VM of others
    neighbour_vms: int = 8  # of one job of others
    talking: float = 0.3  # part of the time in which such a job communicates


GUESSED = SharedCluster()


@dataclass(frozen=True, slots=True)
class Neighbours:
    """The jobs of others: per job, the hosts of its VMs in the order of its ring."""

    jobs: tuple[tuple[int, ...], ...]


def fabric(cluster: SharedCluster) -> Topology:
    """Return the two levels of the cluster; ``n1-07`` is a host under ``leaf1``."""
    return Topology.from_tree(
        {
            "core": {
                f"leaf{leaf}": [f"n{leaf}-{host:02}" for host in range(1, cluster.hosts_a_leaf + 1)]
                for leaf in range(1, cluster.leaves + 1)
            }
        }
    )


def wires(cluster: SharedCluster, topology: Topology) -> Network:
    """Return the links of the cluster."""
    return fat_tree(
        topology, host_rate=cluster.host_rate, oversubscription=cluster.oversubscription
    )


def neighbours(cluster: SharedCluster, topology: Topology, draw: random.Random) -> Neighbours:
    """Return jobs of others on hosts drawn at random, until their part of the hosts is taken."""
    hosts = range(len(topology.hosts))
    drawn = draw.sample(hosts, round(cluster.taken * len(hosts)))
    size = cluster.neighbour_vms
    return Neighbours(tuple(tuple(drawn[i : i + size]) for i in range(0, len(drawn), size)))


def chatter(cluster: SharedCluster, others: Neighbours, draw: random.Random) -> Flows:
    """Return what the jobs of others send while one iteration communicates.

    Each job is at that moment communicating or not, by the part of its time that it does. One
    that is sends around its ring as fast as it can, and without end.
    """
    heard = [job for job in others.jobs if draw.random() < cluster.talking]
    return together(traffic.flows(traffic.ring(len(job), np.inf), job) for job in heard)


def group_problem(topology: Topology, others: Neighbours, vms: int, group_id: str) -> Problem:
    """Return the problem of a group of VMs that wants the hosts which others leave free.

    :raises ValueError: where they leave too few
    """
    capacity = np.ones(len(topology.hosts), dtype=np.int64)
    capacity[[host for job in others.jobs for host in job]] = 0
    if capacity.sum() < vms:
        raise ValueError(f"{vms} VMs, but {capacity.sum()} free hosts")
    return Problem(
        topology=topology,
        capacity=capacity,
        members=np.zeros_like(capacity),
        awaiting=vms,
        tie=tie_order(topology, group_id),
    )


def random_places(problem: Problem, draw: random.Random) -> list[int]:
    """Return a host for each awaiting VM, drawn from all places that are free."""
    places = np.repeat(np.arange(len(problem.capacity)), problem.capacity)
    return draw.sample(places.tolist(), problem.awaiting)


def communication(
    network: Network, sent: traffic.Traffic, places: Sequence[int], others: Flows
) -> float:
    """Return how long one iteration's messages take, s, beside the flows of others."""
    return links.makespan(network, together([traffic.flows(sent, places), others]))


def leaves_used(topology: Topology, places: Sequence[int]) -> int:
    """Return under how many leaves the places are."""
    return len(set(topology.leaf_index[list(places)].tolist()))
