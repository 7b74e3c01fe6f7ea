"""What a job sends in an iteration, on its hosts."""

from dataclasses import dataclass, replace

import numpy as np

from hpc_sched.core.arrays import Array, Mask, Reals
from hpc_sched.sim.network.link_bytes import LinkBytes, sums_over_steps

# Steps of which each is looked at for itself. Those of an all to all of many ranks differ little:
# in groups, neighbours slow them down alike.
MOST_STEPS = 16


@dataclass(frozen=True, slots=True, eq=False)
class Traffic:
    """The bytes of a job on links, with the times that follow from them if it is alone."""

    sent: LinkBytes  # in groups of steps that take as long, alone, as their steps
    totals: Reals  # bytes of an iteration. Shape (links,)
    computation: float  # s an iteration
    hosts: int
    alone: float  # s that an iteration communicates for
    least: Reals  # time of each step whatever links leave, s. Shape (steps,)
    needed: Reals  # s of each step on each link that has no others. Shape (steps, links)
    present: Reals  # messages on the link at a time while the job communicates. Shape (links,)

    @classmethod
    def of(
        cls, sent: LinkBytes, capacity: Reals, *, computation: float, hosts: int, least: Reals
    ) -> "Traffic":
        """Return the traffic of a job. O(steps * links).

        :param capacity: bytes/s by link of the network
        :param least: time of each step whatever links leave, s. Shape (steps,)
        """
        seconds = _step_times(sent, capacity, least) * sent.times
        alone = float(seconds.sum())
        grouped = sent.in_groups(MOST_STEPS)
        if grouped is not sent:
            group = np.arange(len(sent.times)) * MOST_STEPS // len(sent.times)
            least = (np.bincount(group, least * sent.times) / grouped.times).astype(np.float64)
            seconds = np.bincount(group, seconds).astype(np.float64)
            # A mean step takes no longer than the mean of the steps.
            times = seconds / _step_times(grouped, capacity, least)
            grouped = replace(grouped, times=times)
        return cls(
            grouped,
            totals=sums_over_steps(sent.times, sent.bytes),
            computation=computation,
            hosts=hosts,
            alone=alone,
            least=least,
            needed=grouped.bytes / capacity[grouped.links],
            present=sums_over_steps(seconds, grouped.messages) / max(alone, 1e-300),
        )

    def on(self, shared: Mask) -> "SharedSteps":
        """Return the steps on shared links, with what remains of the others.

        O(steps * links).

        :param shared: whether another job uses the link. Shape (links,)
        """
        sent = self.sent
        least = np.maximum(self.needed[:, ~shared].max(axis=1, initial=0.0), self.least)
        messages, sizes = sent.messages[:, shared], sent.bytes[:, shared]
        contended = messages.any(axis=1)
        rows, columns = np.nonzero(messages[contended])
        return SharedSteps(
            traffic=self,
            base=float(sent.latency @ sent.times + least[~contended] @ sent.times[~contended]),
            times=sent.times[contended],
            least=least[contended],
            rows=rows,
            columns=columns,
            sizes=sizes[contended][rows, columns],
            messages=messages[contended][rows, columns],
            links=sent.links[shared],
            totals=self.totals[shared],
            present=self.present[shared],
        )


def _step_times(sent: LinkBytes, capacity: Reals, least: Reals) -> Reals:
    """Return how long each step takes if the job is alone, s."""
    slowest = (sent.bytes / capacity[sent.links]).max(axis=1, initial=0.0)
    found: Reals = sent.latency + np.maximum(slowest, least)
    return found


@dataclass(frozen=True, slots=True, eq=False)
class SharedSteps:
    """The steps of a job on the links that it shares with others.

    An entry is a link that has messages in a step; entries are in the order of the steps.
    """

    traffic: Traffic
    base: float  # s of an iteration's communication that no other job changes
    times: Reals  # shape (steps,)
    least: Reals  # s of a step on the job's other links. Shape (steps,)
    rows: Array  # step of each entry. Shape (entries,)
    columns: Array  # link of each entry, as an index in ``links``. Shape (entries,)
    sizes: Reals  # bytes. Shape (entries,)
    messages: Reals  # shape (entries,)
    links: Array  # shape (links,)
    totals: Reals  # bytes of an iteration. Shape (links,)
    present: Reals  # messages on the link at a time while the job communicates. Shape (links,)
