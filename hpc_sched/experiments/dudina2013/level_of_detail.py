"""BT message by message, next to the steps that the tables are computed with."""

from collections.abc import Iterator

import numpy as np

from hpc_sched.experiments.dudina2013.npb_programs import RANKS, block_tridiagonal_steps
from hpc_sched.experiments.dudina2013.placements import place
from hpc_sched.experiments.shared_cluster import NetworkSetup, compute_time, drawn_runs
from hpc_sched.sim.network.messages.program import programs
from hpc_sched.sim.network.placed_steps import PlacedSteps
from hpc_sched.sim.network.replay import replay


def differences(setup: NetworkSetup, seed: int, runs: int) -> Iterator[float]:
    """Yield by which part the steps of an iteration take longer than its replay.

    Of the first iteration of each run, in each placement. In a replay a rank waits for its own
    messages only.
    """
    computation = compute_time(setup, block_tridiagonal_steps())
    steps = block_tridiagonal_steps(computation)
    for drawn in drawn_runs(setup, seed, runs, place, RANKS):
        for places in drawn.places.values():
            hosts = np.array(places, dtype=np.int64)
            placed, others = PlacedSteps.of(drawn.network, steps, hosts), drawn.others[0]
            time = computation + placed.seconds(drawn.network.capacity, others)
            ends = replay(drawn.network, programs(steps, hosts), others)
            yield time / float(ends.max()) - 1
