"""What a job sends in an iteration, on its hosts."""

from dataclasses import dataclass

import numpy as np

from hpc_sched.core.arrays import Array, Mask, Reals
from hpc_sched.sim.network.link_bytes import LinkBytes


@dataclass(frozen=True, slots=True, eq=False)
class Traffic:
    """The bytes of a job on links, with the times that follow from them if it is alone."""

    sent: LinkBytes
    computation: float  # s an iteration
    hosts: int
    least: Reals  # time of each step whatever links leave, s. Shape (steps,)
    needed: Reals  # s of each step on each link that has no others. Shape (steps, links)
    step_times: Reals  # s, alone. Shape (steps,)

    @classmethod
    def of(
        cls, sent: LinkBytes, capacity: Reals, *, computation: float, hosts: int, least: Reals
    ) -> "Traffic":
        """Return the traffic of a job. O(steps * links).

        :param capacity: bytes/s by link of the network
        """
        needed = sent.bytes / capacity[sent.links]
        slowest = np.maximum(needed.max(axis=1, initial=0.0), least)
        return cls(sent, computation, hosts, least, needed, sent.latency + slowest)

    @property
    def alone(self) -> float:
        """How long an iteration communicates if the job is alone, s."""
        return float(self.step_times @ self.sent.times)

    def on(self, shared: Mask) -> "SharedSteps":
        """Return the steps on shared links, with what remains of the others.

        O(steps * links).

        :param shared: whether another job uses the link. Shape (links,)
        """
        sent, weight = self.sent, self.step_times * self.sent.times
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
            totals=sent.times @ sizes,
            present=weight @ messages / max(float(weight.sum()), 1e-300),
        )


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
