"""Jobs next to each other: what they send, how they settle, four of them out of phase."""

from collections.abc import Sequence

import numpy as np

from hpc_sched.core.arrays import Array, Reals
from hpc_sched.sim.network.link_bytes import LinkBytes
from hpc_sched.sim.network.links import Network, fat_tree
from hpc_sched.sim.network.messages.iteration import Iteration, computation, iteration
from hpc_sched.sim.network.messages.program import Computation, Program, programs
from hpc_sched.sim.network.neighbours.shared_links import SharedLinks
from hpc_sched.sim.network.neighbours.traffic import Traffic
from hpc_sched.sim.network.placed_steps import PlacedSteps
from hpc_sched.topology import Topology


def traffic(network: Network, steps: Iteration, places: Array) -> Traffic:
    sent = LinkBytes.of(network, PlacedSteps.of(network, steps, places))
    return Traffic.of(
        *(sent, network.capacity),
        computation=computation(steps),
        hosts=len(set(places.tolist())),
        least=np.zeros(len(sent.times)),
    )


def period(links: SharedLinks, number: int) -> float:
    """Return how long an iteration of a job takes, s."""
    member = links.members[number]
    return member.traffic.computation + member.seconds


def settled(network: Network, jobs: Sequence[Traffic], order: Sequence[int]) -> SharedLinks:
    links = SharedLinks(network.capacity)
    for number in order:
        links.add(number, jobs[number])
    links.settle()
    return links


RANKS, ITERATIONS = 16, 20


def out_of_phase(
    seed: int, ratio: float, part: float = 0.3
) -> tuple[Network, list[Traffic], list[Program]]:
    """Return four jobs that communicate a part of their time, each with its own phase.

    On random hosts of the fabric 4 x 4 x 16, at times of computation that differ by up to a fifth,
    so that phases drift.
    """
    draw = np.random.default_rng(seed)
    tree = {
        f"p{pod}": {
            f"l{pod}{leaf}": [f"h{pod}{leaf}{n:02}" for n in range(16)] for leaf in range(4)
        }
        for pod in range(4)
    }
    topology = Topology.from_tree({"core": tree})
    network = fat_tree(topology, host_rate=1.25e9, oversubscription=(ratio, 1.0), host_latency=1e-6)
    order = draw.permutation(256)
    jobs: list[Traffic] = []
    ranks: list[Program] = []
    for number, pattern in enumerate(("ring", "doubling", "halo2", "alltoall")):
        seconds = 1e7 / 1.25e9 * (1 - part) / part * draw.uniform(0.9, 1.1)
        steps = iteration(pattern, RANKS, 1e7, seconds)
        places = order[RANKS * number : RANKS * (number + 1)]
        start = Computation(float(draw.uniform(0, seconds)))
        ranks += [
            Program(each.host, (start, *each.operations))
            for each in programs(steps, places, times=ITERATIONS, first=RANKS * number)
        ]
        jobs.append(traffic(network, steps, places))
    return network, jobs, ranks


def mean_periods(ends: Reals, ranks: Sequence[Program]) -> list[float]:
    """Return the mean duration of an iteration of each job, s."""
    found = []
    for first in range(0, len(ranks), RANKS):
        start = ranks[first].operations[0]
        assert isinstance(start, Computation)
        found.append((float(ends[first : first + RANKS].max()) - start.seconds) / ITERATIONS)
    return found
