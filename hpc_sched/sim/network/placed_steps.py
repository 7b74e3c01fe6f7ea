"""Steps of ranks that are on hosts, with a barrier after each: the level of detail steps."""

from dataclasses import dataclass

import numpy as np

from hpc_sched.core.arrays import Array, Reals
from hpc_sched.sim.network.flows import Flows
from hpc_sched.sim.network.links import Network, paths_between
from hpc_sched.sim.network.messages.iteration import Iteration
from hpc_sched.sim.network.transfers import finish_times

_NO_HOSTS = np.empty(0, dtype=np.int64)


@dataclass(frozen=True, slots=True, eq=False)
class PlacedSteps:
    """The steps of an iteration that have messages."""

    times: Reals  # how often each step is done. Shape (steps,)
    step: Array  # of each message, ascending; every step has one. Shape (messages,)
    links: Array  # of each message, padded. Shape (messages, longest path)
    size: Reals  # bytes. Shape (messages,)
    latency: Reals  # s. Shape (messages,)

    @classmethod
    def of(cls, network: Network, iteration: Iteration, hosts: Array) -> "PlacedSteps":
        """Return the steps. O(messages * depth).

        :param hosts: of each rank, as indices in ``topology.hosts``
        """
        steps = [each for each in iteration if len(each.sender)]
        links = paths_between(
            network,
            source=np.concatenate([_NO_HOSTS, *(hosts[each.sender] for each in steps)]),
            target=np.concatenate([_NO_HOSTS, *(hosts[each.receiver] for each in steps)]),
        )
        return cls(
            times=np.array([each.times for each in steps], dtype=np.float64),
            step=np.repeat(np.arange(len(steps)), [len(each.sender) for each in steps]),
            links=links,
            size=np.concatenate([np.empty(0), *(each.size for each in steps)]),
            latency=network.path_latency(links),
        )

    def seconds(self, capacity: Reals, others: Flows, least: Reals | float = 0.0) -> float:
        """Return how long the messages of an iteration take, s.

        All messages of a step begin together, after the last of the step before has come. Shares
        are computed again whenever one of them ends.

        :param capacity: bytes/s by link
        :param others: flows that never end
        :param least: of each step, or of all, whatever the links have, s
        """
        if not len(self.times):
            return 0.0
        ends = finish_times(capacity, self.links, self.size, self.step, others)
        return float(np.maximum(self.latest(ends + self.latency), least) @ self.times)

    def latest(self, of_messages: Reals) -> Reals:
        """Return the highest number of each step's messages. Shape (steps,)."""
        starts = np.flatnonzero(np.diff(self.step, prepend=-1))
        found: Reals = np.maximum.reduceat(of_messages, starts)
        return found
