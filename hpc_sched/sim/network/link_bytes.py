"""Bytes on links, and what others leave there: the level of detail links."""

from dataclasses import dataclass

import numpy as np

from hpc_sched.core.arrays import Array, Reals
from hpc_sched.sim.network.fair_rates import fair_rates
from hpc_sched.sim.network.flows import Flows
from hpc_sched.sim.network.links import Network
from hpc_sched.sim.network.placed_steps import PlacedSteps


@dataclass(frozen=True, slots=True, eq=False)
class LinkLoad:
    """What flows take from links: all of a network, or some that are known from elsewhere."""

    rate: Reals  # mean, bytes/s. Shape (links,)
    flows: Reals  # that are there at a time, mean. Shape (links,)

    @classmethod
    def of(cls, capacity: Reals, flows: Flows) -> "LinkLoad":
        """Return the load of flows that have the links for themselves."""
        rate = fair_rates(capacity, flows) * flows.weight
        spread = [np.repeat(each, flows.links.shape[1]) for each in (rate, flows.weight)]
        mean, count = (
            np.bincount(flows.links.ravel(), each, len(capacity)).astype(np.float64)
            for each in spread
        )
        mean[-1] = count[-1] = 0.0
        return cls(mean, count)

    def as_flows(self, links: Array, padding: int, longest: int) -> Flows:
        """Return flows that never end, one on each link, which take as much where they can.

        Where they cannot, they share the link with others as this many flows do.

        :param links: that the load is on. Shape (links,)
        :param padding: index of the unbounded link
        :param longest: path of the network
        """
        loaded = (self.rate > 0) & (self.flows > 0)
        padded = np.full((int(loaded.sum()), longest), padding)
        padded[:, :1] = links[loaded, None]
        weight = self.flows[loaded]
        return Flows(padded, weight, self.rate[loaded] / weight)


def sums_over_steps(times: Reals, of_steps: Reals) -> Reals:
    """Return the sums of what steps have, each as often as it is done. Shape (links,).

    One step after the other: a product of matrices is rounded as the number of threads has it.

    :param times: shape (steps,)
    :param of_steps: shape (steps, links)
    """
    found: Reals = (times[:, None] * of_steps).sum(axis=0)
    return found


@dataclass(frozen=True, slots=True, eq=False)
class LinkBytes:
    """What the steps of an iteration send over each link."""

    times: Reals  # how often each step is done. Shape (steps,)
    latency: Reals  # the longest of a step, s. Shape (steps,)
    links: Array  # that have any. Shape (links,)
    bytes: Reals  # of one step. Shape (steps, links)
    messages: Reals  # of one step. Shape (steps, links)

    @classmethod
    def of(cls, network: Network, placed: PlacedSteps) -> "LinkBytes":
        """Return what placed steps send. O(messages * depth + steps * links)."""
        steps, longest = len(placed.times), placed.links.shape[1]
        used, index = np.unique(placed.links, return_inverse=True)
        cells = (placed.step[:, None] * len(used) + index.reshape(-1, longest)).ravel()
        is_link = used != network.padding

        def sums(weights: Reals | None) -> Reals:
            found = np.bincount(cells, weights, minlength=steps * len(used))
            by_step: Reals = found.reshape(steps, len(used))[:, is_link].astype(np.float64)
            return by_step

        return cls(
            times=placed.times,
            latency=placed.latest(placed.latency) if steps else np.empty(0),
            links=used[is_link],
            bytes=sums(np.repeat(placed.size, longest)),
            messages=sums(None),
        )

    def in_groups(self, most: int) -> "LinkBytes":
        """Return at most this many steps, each the mean of some that follow each other.

        They send as many bytes over each link.
        """
        if len(self.times) <= most:
            return self
        group = np.arange(len(self.times)) * most // len(self.times)
        starts = np.flatnonzero(np.diff(group, prepend=-1))
        times = np.add.reduceat(self.times, starts)

        def means(of_steps: Reals) -> Reals:
            found: Reals = np.add.reduceat(of_steps * self.times[:, None], starts)
            return found / times[:, None]

        latency = means(self.latency[:, None]).ravel()
        return LinkBytes(times, latency, self.links, means(self.bytes), means(self.messages))

    def seconds(self, capacity: Reals, others: LinkLoad) -> float:
        """Return how long the messages of an iteration take, s.

        A step takes its latency, and the longest time that one of its links needs for its bytes.
        Others leave what they do not take, and at least an equal share for each message.

        :param capacity: bytes/s by link
        """
        if not len(self.times):
            return 0.0
        whole, taken, flows = (each[self.links] for each in (capacity, others.rate, others.flows))
        has_messages = self.messages > 0
        share = np.divide(
            self.messages, self.messages + flows, out=np.zeros_like(self.bytes), where=has_messages
        )
        left = np.maximum(whole - taken, whole * share)
        needed = np.divide(self.bytes, left, out=np.zeros_like(self.bytes), where=has_messages)
        return float((self.latency + needed.max(axis=1, initial=0.0)) @ self.times)
