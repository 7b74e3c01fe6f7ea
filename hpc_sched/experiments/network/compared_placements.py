"""The placements that the network study compares: policies of the simulator, on free hosts."""

import random
from collections.abc import Mapping

import numpy as np

from hpc_sched import exceptions
from hpc_sched.core.arrays import Array
from hpc_sched.core.constraints import NO_CONSTRAINTS
from hpc_sched.core.group_request import GroupRequest
from hpc_sched.core.plan.result import Rejection
from hpc_sched.core.plan.tie_order import TieOrder
from hpc_sched.core.sharing.cache_interference import Application
from hpc_sched.core.sharing.mdobp import MDOBPInput
from hpc_sched.experiments.network.drawn_cluster import DrawnCluster
from hpc_sched.sim.installed import POLICIES
from hpc_sched.sim.policies.placement_policy import NO_RANDOMNESS, PlacementRequest, Policy

RANDOM, ALONG = "random", "random, ranks in fabric order"
PLAN, STOCK = "exact plan", "stock Nova"
# Placements by the name of their policy, in the order of the tables.
_POLICIES = {
    RANDOM: "random",
    STOCK: "nova-default",
    "Listing 1": "dudina2013",
    PLAN: "exact-plan",
    "Slurm tree": "slurm-tree",
    "Kueue best fit": "kueue-best-fit",
}
PLACEMENTS = (RANDOM, ALONG, *(name for name in _POLICIES if name != RANDOM))


def placements(drawn: DrawnCluster, ranks: int) -> Mapping[str, Array]:
    """Return the host of each rank, one a host, by placement.

    :raises exceptions.SimulationError: if a policy does not place the job
    """
    found = {name: _places(POLICIES.load(name_), drawn, ranks) for name, name_ in _POLICIES.items()}
    by_leaf = np.lexsort((drawn.topology.name_rank, drawn.topology.leaf_index))
    along = np.empty_like(by_leaf)
    along[by_leaf] = np.arange(len(by_leaf))
    found[ALONG] = found[RANDOM][np.argsort(along[found[RANDOM]])]
    return {name: found[name] for name in PLACEMENTS}


def _places(policy: Policy, drawn: DrawnCluster, ranks: int) -> Array:
    answer = policy.places(_request(policy, drawn, ranks))
    if isinstance(answer, Rejection):
        raise exceptions.SimulationError(f"{ranks} ranks, but {int(drawn.free.sum())} free hosts")
    return np.array(answer, dtype=np.int64)


def _request(policy: Policy, drawn: DrawnCluster, ranks: int) -> PlacementRequest:
    """Return the request of a job whose VM takes a whole host."""
    free = drawn.free
    units = np.ones((len(free), 2))
    group = GroupRequest(
        topology=drawn.topology,
        tie=TieOrder(drawn.topology, f"job{drawn.seed}"),
        host_index=None,
        room=free,
        members=np.zeros_like(free),
        left=ranks,
        awaiting=ranks,
        constraints=NO_CONSTRAINTS,
        packing=MDOBPInput(np.ones(2), units * free[:, None], units) if policy.packs else None,
        homogeneous="prefer",
        processors=None,
    )
    draw = random.Random(f"job {drawn.seed} {ranks}") if policy.draws else NO_RANDOMNESS
    return PlacementRequest(group, Application("sync"), draw)
