"""A stated model of the effect of a placement on a job's runtime.

::

    factor = mean over pairs of VMs of hop_factors[level of their lowest common switch]
             * 1 / speed of the slowest processor type among the job's hosts
             * the factor of the neighbours on the worst of its hosts:
               interference ** (cache score of those that the interference index does not have)
               / performance with the worst of those that it has

All three are 1 by default: a placement then changes no runtime. A pair of the index was measured,
cache score included: such a neighbour's score does not count once more. The index has nothing on
three applications together; the worst pair counts.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate, chain, pairwise, repeat
from operator import mul

import numpy as np

from hpc_sched import exceptions
from hpc_sched.core.arrays import Array
from hpc_sched.core.processors.processor_ranking import entries_of, speeds_of
from hpc_sched.core.processors.processor_speeds import FORM
from hpc_sched.core.sharing.cache_interference import Application, InterferenceIndex
from hpc_sched.sim import named_values
from hpc_sched.sim.cluster.cluster import VCPUS, Cluster
from hpc_sched.sim.cluster.cluster_state import ClusterState
from hpc_sched.sim.cluster.interference_rules import NO_INDEX
from hpc_sched.sim.cluster.placed_job import PlacedJob
from hpc_sched.topology.model import Topology

HOST = "host"  # below the leaf, which is level 1
# No placement slows a job down as much; anything beyond is a typing error.
MAX_FACTOR = 1e6
MIN_FACTOR = 1 / MAX_FACTOR
# No processor type is as many times as fast as another one: such numbers are in a unit.
MAX_RELATIVE_SPEED = 100.0


@dataclass(frozen=True, slots=True)
class RuntimeModel:
    """Factors on the runtime of a job.

    :raises exceptions.ConfigError: for a factor out of bounds
    """

    # By level, 0 is one host and 1 one leaf. Pairs on a level beyond the last, as between islands,
    # have the highest factor.
    hop_factors: tuple[float, ...] = (1.0,)
    # By processor type; 1 if not stated, which leaves the trace's runtime as it is. The job waits
    # for its slowest VM.
    speeds: Mapping[str, float] = field(default_factory=dict)
    interference: float = 1.0  # factor per unit of the neighbours' cache score
    index: InterferenceIndex = NO_INDEX  # the performance of applications with others

    def __post_init__(self) -> None:
        for what, number in (
            *(("hop factors", each) for each in self.hop_factors),
            *(("speeds", each) for each in self.speeds.values()),
            ("interference", self.interference),
        ):
            if not MIN_FACTOR <= number <= MAX_FACTOR:
                raise exceptions.ConfigError(
                    f"{what}: expected {MIN_FACTOR:g} to {MAX_FACTOR:g}, found {number}"
                )

    def factor(
        self,
        pairs: Sequence[int],
        processors: Iterable[str | None] = (),
        score: float = 0.0,
        performance: float = 1.0,
    ) -> float:
        """Return the factor on a job's runtime.

        :param pairs: number of pairs of VMs per level of their lowest common switch; see
            :func:`pairs_by_level`
        :param score: cache score of other jobs' VMs on the worst of the job's hosts
        :param performance: with other jobs' applications there, by the index
        """
        factors = chain(self.hop_factors, repeat(max(self.hop_factors)))
        slowed = sum(map(mul, pairs, factors))
        speeds = (1.0 if name is None else self.speeds.get(name, 1.0) for name in processors)
        mean = slowed / sum(pairs) if sum(pairs) else 1.0
        return mean / min(speeds, default=1.0) * self._slowdown(score, performance)

    def _slowdown(self, score: float, performance: float) -> float:
        try:
            return min(math.pow(self.interference, score) / performance, MAX_FACTOR)
        except OverflowError:
            return MAX_FACTOR

    def effect_of(
        self, name: str | None, neighbours: Iterable[tuple[Application, int]]
    ) -> tuple[float, float]:
        """Return the cache score of neighbours, and the performance of an application with them.

        Neighbours that the index has with the application count for the performance, the worst
        one; the others count for the score.

        :param neighbours: applications of others on a host, with their numbers of VMs
        """
        score = 0.0
        speeds = []
        for there, count in neighbours:
            pair = name or "", there.name or ""  # no application of the index has no name
            if pair in self.index.performance:
                speeds.append(self.index.performance[pair])
            else:
                score += there.score * count
        return score, min(speeds, default=1.0)

    def factor_of(self, cluster: Cluster, state: ClusterState, placed: PlacedJob) -> float:
        """Return the factor at a job's start; later jobs do not change it.

        O(its hosts * (depth + neighbours there)).
        """
        name = placed.job.application.name
        effects = (
            self.effect_of(name, there) for there in state.applications.neighbours_of(placed)
        )
        score, performance = max(
            effects, key=lambda found: self._slowdown(*found), default=(0.0, 1.0)
        )
        return self.factor(
            pairs=pairs_by_level(cluster.topology, placed.hosts, placed.counts),
            processors=[cluster.processors[host] for host in placed.hosts.tolist()],
            score=score,
            performance=performance,
        )


def pairs_by_level(topology: Topology, hosts: Array, counts: Array) -> tuple[int, ...]:
    """Return the number of pairs of VMs per level of their lowest common switch.

    Level 0 is one host, 1 one leaf; the last, depth + 1, is for pairs on two islands.
    O((hosts + switches) * depth).

    :param hosts: indices in ``topology.hosts``, ``counts``: VMs on each of them
    """
    # VMs per host, per switch of each level, and of all islands. bincount with weights returns
    # floats, exact for any number of VMs.
    of_switches = (np.bincount(row[hosts], counts).astype(np.int64) for row in topology.groups)
    numbers = (counts, *of_switches, counts.sum(keepdims=True))
    # Pairs whose lowest common switch is on a level or below it, bottom up.
    within = [0, *(int(np.dot(each, each - 1)) // 2 for each in numbers)]
    return tuple(higher - lower for lower, higher in pairwise(within))


def hop_factors(text: str, what: str, levels: Sequence[str]) -> tuple[float, ...]:
    """Return the factors stated by a text: ``host=1,leaf=1,pod=1.1,core=1.25``.

    :raises exceptions.ConfigError: for other levels, or factors out of bounds
    """
    form, names = "LEVEL=FACTOR,...", (HOST, *levels)
    return filled(named_values.numbers(text, what, names, form, MIN_FACTOR, MAX_FACTOR), levels)


def filled(stated: Mapping[str, float], levels: Sequence[str]) -> tuple[float, ...]:
    """Return the factors of ``host`` and each level.

    A level that is not stated has the factor of the next lower one that is, or 1.
    """
    names = (HOST, *levels)
    return tuple(accumulate(names, lambda below, name: stated.get(name, below), initial=1.0))[1:]


def relative_speeds(stated: Mapping[str, float], what: str, cluster: Cluster) -> dict[str, float]:
    """Return the speed of each processor type of a cluster, for :class:`RuntimeModel`.

    If every host has a speed, only their ratios count: the fastest has 1, so any unit will do. Else
    the speeds are relative to the hosts without one, which have 1. Hosts that take no VM do not
    count.

    :param stated: entries as of ``processor_speeds`` in nova.conf
    :raises exceptions.ConfigError: for an entry that holds for no type, or numbers in a unit if a
        host has none
    """
    types = sorted({name for name in cluster.processors if name is not None})
    holding = entries_of(types, stated, cluster.features).values()
    if unknown := sorted(stated.keys() - {name for entries in holding for name in entries}):
        expected = f"{FORM} with names of {', '.join(types) or 'nothing'}"
        raise named_values.error(what, expected, unknown[0])
    speeds = speeds_of(types, stated, cluster.features)
    at = {
        cluster.processors[i] or ""
        for i in np.flatnonzero(cluster.total[:, VCPUS]).tolist()
        if i not in cluster.down
    }
    bare = sorted(at - speeds.keys())
    if not bare:
        fastest = max((speeds[name] for name in at), default=1.0)
        return {name: speed / fastest for name, speed in speeds.items()}
    for name, speed in speeds.items():
        if not 1 / MAX_RELATIVE_SPEED <= speed <= MAX_RELATIVE_SPEED:
            raise exceptions.ConfigError(
                f"{what}: expected a speed of the processors of every host, or speeds relative to "
                f"1, that of hosts without: found {name} with {speed:g}, and hosts of "
                f"{bare[0] or 'unknown type'} without"
            )
    return speeds
