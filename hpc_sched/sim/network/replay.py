"""Every message of one job or several: the level of detail replay.

Messages are fluids. A message begins when both its ends have posted it, takes the latency of its
path, and then flows at its max-min fair share, which is computed again whenever any message begins
to flow or ends.
"""

import heapq
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from hpc_sched.core.arrays import Mask, Reals
from hpc_sched.sim.network.fair_rates import fair_rates
from hpc_sched.sim.network.flows import Flows, no_flows
from hpc_sched.sim.network.links import Network, paths_between
from hpc_sched.sim.network.messages.program import Program, posts
from hpc_sched.sim.network.transfers import DONE


def replay(network: Network, ranks: Sequence[Program], others: Flows | None = None) -> Reals:
    """Return when each rank has done all that it does, s. Shape (ranks,).

    O(messages * active flows * depth).

    :param others: flows that never end
    :raises ValueError: for messages that do not fit each other, or ranks that wait for ever
    """
    return _Replay(network, ranks, others).run()


@dataclass(slots=True)
class _Rank:
    operations: tuple[float | int | None, ...]
    next: int = 0
    pending: int = 0  # messages that it has posted and that have not come
    waits: bool = False
    end: float = math.nan


class _Replay:
    """Ranks, the messages that flow, and what happens at a known time: see :func:`replay`."""

    def __init__(self, network: Network, ranks: Sequence[Program], others: Flows | None) -> None:
        matched = posts(ranks)
        self._messages = matched.messages
        self._ranks = [_Rank(operations) for operations in matched.operations]
        hosts = np.array([rank.host for rank in ranks], dtype=np.int64)
        links = paths_between(
            network,
            hosts[np.array([each.sender for each in self._messages], dtype=np.int64)],
            hosts[np.array([each.receiver for each in self._messages], dtype=np.int64)],
        )
        self._latency = network.path_latency(links).tolist()
        self._is_local = (links == network.padding).all(axis=1).tolist()
        endless = no_flows(links.shape[1]) if others is None else others
        self._every, self._capacity = Flows.on(links) + endless, network.capacity
        self._posted: set[int] = set()  # messages with one end
        self._now = 0.0
        # Ends of computation by rank, and of latencies by message.
        self._events: list[tuple[float, bool, int]] = []
        # Flows by number of the message, behind them the endless ones; bytes left, bytes/s.
        self._flows = np.arange(len(links), len(self._every.links))
        self._left = np.full(len(self._flows), np.inf)
        self._least = np.zeros(len(self._flows))  # bytes left with which a flow has ended
        self._rate = fair_rates(self._capacity, endless)

    def run(self) -> Reals:
        """Return when each rank ends, s."""
        for rank in range(len(self._ranks)):
            self._go_on(rank)
        while True:
            need = self._left / self._rate
            soonest = float(need.min(initial=np.inf))
            event = self._events[0][0] if self._events else np.inf
            time = min(self._now + soonest, event)
            if time == np.inf:
                break
            # The quotient, not the difference of two times, which is rounded more.
            passed = soonest if self._now + soonest <= event else time - self._now
            self._left -= np.minimum(self._rate * passed, self._left)
            over = (need <= passed) | (self._left <= self._least)
            self._now = time
            for number in self._flows[over].tolist():
                self._come(number)
            begun = list(self._begin())
            if begun or over.any():
                self._change(~over, begun)
        stuck = [number for number, rank in enumerate(self._ranks) if math.isnan(rank.end)]
        if stuck:
            raise ValueError(f"rank {stuck[0]} waits for ever")
        return np.array([rank.end for rank in self._ranks])

    def _begin(self) -> Iterator[int]:
        """Do what happens now; yield the messages that begin to flow."""
        while self._events and self._events[0][0] <= self._now:
            _, is_message, number = heapq.heappop(self._events)
            if not is_message:
                self._go_on(number)
            elif self._is_local[number] or self._messages[number].size == 0:
                self._come(number)
            else:
                yield number

    def _go_on(self, number: int) -> None:
        """Let a rank do what it can do now."""
        rank = self._ranks[number]
        while rank.next < len(rank.operations):
            operation = rank.operations[rank.next]
            if operation is None:
                rank.waits = rank.pending > 0
                if rank.waits:
                    return
            rank.next += 1
            if isinstance(operation, float):
                heapq.heappush(self._events, (self._now + operation, False, number))
                return
            if operation is not None:
                self._post(rank, operation)
        rank.end = self._now

    def _post(self, rank: _Rank, message: int) -> None:
        rank.pending += 1
        if message not in self._posted:
            self._posted.add(message)
            return
        self._posted.remove(message)
        heapq.heappush(self._events, (self._now + self._latency[message], True, message))

    def _come(self, number: int) -> None:
        """Let both ranks of a message that has come go on."""
        message = self._messages[number]
        for end in (message.sender, message.receiver):
            rank = self._ranks[end]
            rank.pending -= 1
            if rank.waits and not rank.pending:
                rank.waits = False
                self._go_on(end)

    def _change(self, kept: Mask, begun: Sequence[int]) -> None:
        """Share the links among the flows that are kept, and those that begin."""
        new = np.array(begun, dtype=np.int64)
        size = np.array([self._messages[number].size for number in begun])
        self._flows = np.concatenate([self._flows[kept], new])
        self._left = np.concatenate([self._left[kept], size])
        self._least = np.concatenate([self._least[kept], size * DONE])
        self._rate = fair_rates(self._capacity, self._every.rows(self._flows))
