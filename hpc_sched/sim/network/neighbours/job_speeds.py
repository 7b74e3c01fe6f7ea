"""How fast jobs run on a network, by their places and by each other."""

from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache

import numpy as np

from hpc_sched.core.arrays import Array, Reals
from hpc_sched.sim.network.flows import Flows, no_flows
from hpc_sched.sim.network.link_bytes import LinkBytes
from hpc_sched.sim.network.links import Network
from hpc_sched.sim.network.messages.iteration import Iteration, iteration, most, thinned
from hpc_sched.sim.network.messages.program import programs
from hpc_sched.sim.network.neighbours.shared_links import Member, SharedLinks
from hpc_sched.sim.network.neighbours.traffic import Traffic
from hpc_sched.sim.network.placed_steps import PlacedSteps
from hpc_sched.sim.network.replay import replay

LINKS, STEPS, REPLAY = DETAILS = ("links", "steps", "replay")
# Bytes that the busiest rank sends in one iteration. Only latencies depend on it: they are small
# against it, as those of a real network are against messages that take a share of the runtime.
VOLUME = 1e8
# In an iteration that is looked at by links or steps: those of an all to all of 362 ranks. Beyond
# that, memory would grow with the square of the ranks.
_MOST_MESSAGES = 1 << 17
_MOST_KEPT = 4096  # jobs alone: seconds by pattern and places
# Change of a job's time by links, relative to it, up to which steps and replay change alike.
_ALIKE = 0.01


@dataclass(frozen=True, slots=True)
class JobNetwork:
    """The network of all jobs, and the level of detail."""

    links: Network
    detail: str = LINKS  # one of DETAILS
    ratios: Mapping[str, float] = field(default_factory=dict)  # oversubscription by level, if known

    @property
    def levels(self) -> tuple[str, ...]:
        """The levels whose switches have uplinks, bottom up."""
        having = sorted(set(self.links.uplink_levels.tolist()) - {-1})
        return tuple(self.links.topology.levels[level] for level in having)


@dataclass(frozen=True, slots=True)
class Speed:
    """How fast a job runs now."""

    factor: float  # of its stated runtime
    lost: float  # part of its time that it loses by the others
    caused: float  # host-seconds that others lose by it, a second


@dataclass(slots=True)
class _Job:
    pattern: str
    hosts: Array  # of each rank
    stated: float  # s of an iteration
    uplinks: Reals  # s of an iteration that it would take all uplinks of each level for
    use: Reals  # part of the uplinks of each level that it takes now
    # Communication of an iteration without others by the level of detail, s; None: not yet known.
    alone: float | None
    # The same by links and by the level of detail, when the latter was looked at last, s.
    looked_at: tuple[float, float] | None = None


class JobSpeeds:
    """The communicating jobs of one run.

    What jobs take from each other is found by links, at each level of detail; how long a job then
    takes, by the level of detail.
    """

    def __init__(self, network: JobNetwork) -> None:
        """Start without a job."""
        self._network, self._detail = network.links, network.detail
        self._links = SharedLinks(network.links.capacity)
        self._jobs: dict[int, _Job] = {}
        depth, levels = network.links.topology.depth, network.links.uplink_levels
        # Level of each link, the last one for those that are no uplinks. Shape (links,)
        self._level = np.full(len(network.links.capacity), depth)
        self._level[network.links.uplinks : -1] = np.where(levels < 0, depth, levels)
        finite = np.where(self._level < depth, network.links.capacity, 0.0)
        self._rates = np.bincount(self._level, finite, depth + 1)[:depth]
        # Part of the uplinks of each level that jobs take now.
        self.uplink_use: Reals = np.zeros(depth)
        self._alone: OrderedDict[tuple[str, float, tuple[int, ...]], float] = OrderedDict()

    def start(
        self,
        number: int,
        pattern: str,
        share: float,
        places: Sequence[int],
        best: Sequence[int],
        slowness: float = 1.0,
    ) -> None:
        """Add a job.

        :param share: of the stated runtime that it communicates for, above 0
        :param places: host of each rank
        :param best: the same for the placement that the stated runtime is of
        :param slowness: factor of its computation
        """
        alone = self._seconds_alone(pattern, share, tuple(best))
        computation = alone * (1 - share) / share
        hosts = np.array(places, dtype=np.int64)
        traffic = self._traffic(pattern, hosts, computation * slowness)
        uplinks = self._uplink_seconds(traffic)
        is_best = tuple(places) == tuple(best) and slowness == 1
        self._jobs[number] = _Job(
            *(pattern, hosts, alone + computation, uplinks, 0 * uplinks),
            alone=alone if is_best else None,
        )
        self._links.add(number, traffic)

    def end(self, number: int) -> None:
        """Remove a job."""
        self._links.remove(number)
        self.uplink_use -= self._jobs.pop(number).use
        if not self._jobs:
            self.uplink_use[:] = 0.0  # without what rounding has left

    def settle(self) -> list[tuple[int, Speed]]:
        """Return the speeds that may have changed since the last time, by number."""
        return [(number, self._speed(number)) for number in self._links.settle()]

    def _speed(self, number: int) -> Speed:
        job, member = self._jobs[number], self._links.members[number]
        seconds, computation = member.seconds, member.traffic.computation
        if self._detail != LINKS:
            seconds = self._by_detail(job, member)
        use = job.uplinks / (computation + seconds)
        self.uplink_use += use - job.use
        job.use = use
        return Speed((computation + seconds) / job.stated, member.lost, member.caused)

    def _uplink_seconds(self, traffic: Traffic) -> Reals:
        """Return how long the uplinks of each level would take for a job's iteration, s."""
        depth = len(self._rates)
        sums = np.bincount(self._level[traffic.sent.links], traffic.totals, depth + 1)[:depth]
        return np.divide(sums, self._rates, out=np.zeros(depth), where=self._rates > 0)

    def _by_detail(self, job: _Job, member: Member) -> float:
        """Return the communication of an iteration at the level of detail, or nearly that, s."""
        if member.seconds == member.traffic.alone:
            # Not in proportion: nothing remains of neighbours that have left.
            if job.alone is None:
                job.alone = self._closer(job, member)
            return job.alone
        if job.looked_at is None or abs(member.seconds / job.looked_at[0] - 1) > _ALIKE:
            job.looked_at = member.seconds, self._closer(job, member)
        return job.looked_at[1] * (member.seconds / job.looked_at[0])

    def _closer(self, job: _Job, member: Member) -> float:
        """Return the communication of an iteration at the level of detail, s."""
        longest, others = self._network.longest, no_flows(self._network.longest)
        if member.steps is not None and len(member.others.rate):
            links, padding = member.steps.links, self._network.padding
            others = member.others.as_flows(links, padding, longest)
        return self._seconds(job.pattern, job.hosts, member.traffic.computation, others)

    def _seconds(self, pattern: str, hosts: Array, computation: float, others: Flows) -> float:
        least = _busiest(pattern, len(hosts)) / self._network.capacity[0]
        if self._detail == REPLAY:
            steps = iteration(pattern, len(hosts), VOLUME, computation)
            end = float(replay(self._network, programs(steps, hosts), others).max())
            return max(end - computation, VOLUME / float(self._network.capacity[0]))
        placed = PlacedSteps.of(self._network, _iteration(pattern, len(hosts)), hosts)
        return placed.seconds(self._network.capacity, others, least)

    def _seconds_alone(self, pattern: str, share: float, places: tuple[int, ...]) -> float:
        # How far ranks drift apart in a replay depends on how long they compute.
        key = pattern, share if self._detail == REPLAY else 0.0, places
        found = self._alone.get(key)
        if found is None:
            hosts = np.array(places, dtype=np.int64)
            found = self._traffic(pattern, hosts, 0.0).alone
            if self._detail != LINKS:
                computation = found * (1 - share) / share
                none = no_flows(self._network.longest)
                found = self._seconds(pattern, hosts, computation, none)
            self._alone[key] = found
            if len(self._alone) > _MOST_KEPT:
                self._alone.popitem(last=False)
        return found

    def _traffic(self, pattern: str, hosts: Array, computation: float) -> Traffic:
        steps = PlacedSteps.of(self._network, _iteration(pattern, len(hosts)), hosts)
        return Traffic.of(
            LinkBytes.of(self._network, steps),
            self._network.capacity,
            computation=computation,
            hosts=len(np.unique(hosts)),
            # A rank sends at no more than the rate of a host's link, within its host too.
            least=_busiest(pattern, len(hosts)) / self._network.capacity[0],
        )


@lru_cache(maxsize=64)
def _iteration(pattern: str, ranks: int) -> Iteration:
    return thinned(iteration(pattern, ranks, VOLUME), _MOST_MESSAGES)


@lru_cache(maxsize=256)
def _busiest(pattern: str, ranks: int) -> Reals:
    """Return the bytes of the busiest rank of each step with messages."""
    steps = _iteration(pattern, ranks)
    return np.array([most(each) for each in steps if len(each.sender)])
