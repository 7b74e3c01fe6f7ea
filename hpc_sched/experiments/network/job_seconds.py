"""How long jobs communicate: step by step next to given flows, and next to each other by links."""

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TypeVar

import numpy as np

from hpc_sched.core.arrays import Array, Reals
from hpc_sched.experiments.network.drawn_cluster import (
    VOLUME,
    DrawnCluster,
    NetworkStudy,
    endless_flows,
    hosts_and_leaves,
    unbounded_at_one,
)
from hpc_sched.sim.network.flows import Flows
from hpc_sched.sim.network.link_bytes import LinkBytes, LinkLoad
from hpc_sched.sim.network.links import Network
from hpc_sched.sim.network.messages.iteration import Iteration, iteration
from hpc_sched.sim.network.neighbours.shared_links import SharedLinks
from hpc_sched.sim.network.neighbours.traffic import Traffic
from hpc_sched.sim.network.placed_steps import PlacedSteps

ENDLESS, PART_TIME = "endlessly", "part of the time"
NEIGHBOURS = (ENDLESS, PART_TIME)
_Key = TypeVar("_Key", bound=Hashable)
_JOB = -1  # number of the job among the other jobs


@dataclass(frozen=True, slots=True, eq=False)
class LoadedNetwork:
    """The links of a cluster, and what other jobs send there without the job."""

    capacity: Reals  # bytes/s
    others: Mapping[str, Flows]  # by one of NEIGHBOURS

    @classmethod
    def of(cls, study: NetworkStudy, drawn: DrawnCluster, ratio: float) -> "LoadedNetwork":
        """Return the links with an oversubscription of the leaves."""
        network = study.network(drawn.topology, ratio)
        endless = endless_flows(network, drawn.rings)
        # Each host's link has one flow of another job, and none of the job: a bound is enough.
        shared = hosts_and_leaves(endless.links)
        shared[:, :2] = network.padding
        flows = Flows(shared, endless.weight, np.full(len(shared), study.host_rate))
        load = mean_load(study, drawn, network)
        links = np.arange(network.uplinks, network.padding)
        at_leaves = links[np.isin(links, shared)]
        others = {
            ENDLESS: flows.rows(np.flatnonzero((shared != network.padding).any(axis=1))),
            PART_TIME: LinkLoad(load.rate[at_leaves], load.flows[at_leaves]).as_flows(
                at_leaves, network.padding, shared.shape[1]
            ),
        }
        if ratio <= 1:
            others = {name: each.rows(np.empty(0, np.int64)) for name, each in others.items()}
        return cls(unbounded_at_one(network, ratio), others)


def placed_job(network: Network, pattern: str, hosts: Array) -> PlacedSteps:
    """Return an iteration of the job on its hosts, on the links that can be full."""
    placed = PlacedSteps.of(network, steps_of(pattern, len(hosts)), hosts)
    return replace(placed, links=hosts_and_leaves(placed.links))


@lru_cache(maxsize=64)
def steps_of(pattern: str, ranks: int) -> Iteration:
    """Return the messages of an iteration."""
    return iteration(pattern, ranks, VOLUME)


def mean_load(study: NetworkStudy, drawn: DrawnCluster, network: Network) -> LinkLoad:
    """Return what the other jobs take of links next to each other, mean. Shape (links,)."""
    shared = _other_jobs(study, drawn, network)
    rate, flows = np.zeros(len(network.capacity)), np.zeros(len(network.capacity))
    for member in shared.members.values():
        traffic, period = member.traffic, study.computation + member.seconds
        rate[traffic.sent.links] += traffic.totals / period
        flows[traffic.sent.links] += traffic.present * member.seconds / period
    return LinkLoad(rate, flows)


def slowdown_of_others(
    study: NetworkStudy, drawn: DrawnCluster, network: Network, jobs: Mapping[_Key, PlacedSteps]
) -> dict[_Key, float]:
    """Return the iteration time of other jobs with a job over that without it, their mean.

    :param jobs: with full paths; each is there without the others of these
    """
    shared = _other_jobs(study, drawn, network)
    before = np.array([study.computation + each.seconds for each in shared.members.values()])
    found = {}
    for name, placed in jobs.items():
        shared.add(_JOB, _traffic(study, network, placed))
        shared.settle()
        after = np.array(
            [
                study.computation + member.seconds
                for number, member in shared.members.items()
                if number != _JOB
            ]
        )
        found[name] = float((after / before).mean())
        shared.remove(_JOB)
    return found


def _other_jobs(study: NetworkStudy, drawn: DrawnCluster, network: Network) -> SharedLinks:
    shared = SharedLinks(network.capacity)
    for number, hosts in enumerate(drawn.rings):
        placed = PlacedSteps.of(network, steps_of("ring", len(hosts)), hosts)
        shared.add(number, _traffic(study, network, placed))
    shared.settle()
    return shared


def _traffic(study: NetworkStudy, network: Network, placed: PlacedSteps) -> Traffic:
    sent = LinkBytes.of(network, placed)
    return Traffic.of(
        sent,
        network.capacity,
        computation=study.computation,
        hosts=len(np.unique(placed.links[:, 0])),
        # One rank a host: the hosts' own links bound each step.
        least=np.zeros(len(sent.times)),
    )
