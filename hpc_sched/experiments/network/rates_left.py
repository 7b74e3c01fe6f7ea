"""What a job that sends leaves to flows of other jobs that never end."""

from collections.abc import Hashable, Mapping
from typing import TypeVar

import numpy as np

from hpc_sched.core.arrays import Reals
from hpc_sched.experiments.network.drawn_cluster import DrawnCluster, endless_flows
from hpc_sched.sim.network.fair_rates import FairRates, fair_rates
from hpc_sched.sim.network.flows import Flows
from hpc_sched.sim.network.links import Network
from hpc_sched.sim.network.placed_steps import PlacedSteps
from hpc_sched.sim.network.transfers import DONE

_Key = TypeVar("_Key", bound=Hashable)


def rates_left(
    drawn: DrawnCluster, network: Network, jobs: Mapping[_Key, PlacedSteps]
) -> dict[_Key, float]:
    """Return the rate of a flow of the other jobs while a job sends, over its rate without it.

    The mean over the flows, and over the time that the job's messages take.

    :param jobs: with full paths; each is there without the others of these
    """
    flows = endless_flows(network, drawn.rings)
    alone = fair_rates(network.capacity, flows)
    return {name: _left(network.capacity, placed, flows, alone) for name, placed in jobs.items()}


def _left(capacity: Reals, placed: PlacedSteps, flows: Flows, alone: Reals) -> float:
    seconds = total = 0.0
    for step, times in enumerate(placed.times):
        sent = placed.step == step
        size, count = placed.size[sent], int(sent.sum())
        rates = FairRates(capacity, Flows.on(placed.links[sent]) + flows)
        active, left = np.ones(count + len(alone), dtype=np.bool_), size.copy()
        while (sending := active[:count]).any():
            rate = rates.of(active)
            passed = float((left[sending] / rate[:count][sending]).min())
            left -= rate[:count] * passed
            sending &= left > DONE * size
            seconds += times * passed
            total += times * passed * float((rate[count:] / alone).mean())
    return float(total / seconds) if seconds else 1.0
