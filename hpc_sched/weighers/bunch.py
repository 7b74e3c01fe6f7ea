"""BunchWeigher: Dudina et al. 2013 as published."""

from __future__ import annotations

import math
from collections.abc import Sequence

import nova.conf
import numpy as np
from nova import objects
from nova.scheduler import host_manager, weights
from nova.scheduler import utils as scheduler_utils
from oslo_log import log as logging

from hpc_sched import conf
from hpc_sched.core import bunch
from hpc_sched.nova_glue import fabric
from hpc_sched.nova_glue import group as group_

CONF = nova.conf.CONF
LOG = logging.getLogger(__name__)


class BunchWeigher(weights.BaseHostWeigher):
    """Packs a group under as few leaf switches as possible (Dudina2013, Listing 1).

    Requests without a group, and classes that are not placed by topology, get equal weights.
    A weigher prefers and never refuses: what cannot be read is left out with a WARNING, and an
    error of our own makes the weights equal and is logged with its traceback.

    One object serves all requests from many threads; it keeps nothing of any of them.
    """

    def __init__(self) -> None:
        """Load the fabric, so that a scheduler that lacks it does not start.

        :raises exceptions.TopologyError: where the topology is missing or wrong
        :raises ValueError: where an option of [hpc_sched] has a value that cannot be used
        """
        super().__init__()
        conf.register_opts(CONF)
        conf.check(CONF)
        fabric.load()

    def weight_multiplier(self, host_state: host_manager.HostState) -> float:
        """Return the multiplier: the option, or metadata of the host's aggregates."""
        default = float(CONF.hpc_sched.bunch_weight_multiplier)
        value = float(
            scheduler_utils.get_weight_multiplier(host_state, "bunch_weight_multiplier", default)
        )
        # float() reads "nan" and "inf" too; one of them would spoil the order of all hosts.
        return value if math.isfinite(value) else default

    def _weigh_object(
        self, host_state: host_manager.HostState, weight_properties: objects.RequestSpec
    ) -> float:
        """Return 0: one host alone says nothing about a group."""
        return 0.0

    def weigh_objects(
        self,
        weighed_obj_list: Sequence[weights.WeighedHost],
        weight_properties: objects.RequestSpec,
    ) -> list[float]:
        """Return one number a host: its rank, or its leaf's number by Listing 1.

        Reads the databases when the request is first seen, see
        :func:`hpc_sched.nova_glue.members.read`.
        """
        try:
            return _weigh(weighed_obj_list, weight_properties)
        except Exception:
            LOG.exception("BunchWeigher failed and weighs all hosts alike")
            return [0.0] * len(weighed_obj_list)


def _weigh(weighed: Sequence[weights.WeighedHost], spec: objects.RequestSpec) -> list[float]:
    states = [host.obj for host in weighed]
    state = group_.state_of(spec, states)
    if state is None:
        return [0.0] * len(states)
    positions = state.positions(states)
    state.remember(weighed)
    problem = state.problem()
    at_host = state.host_index[positions]
    takes_more = state.capacity[positions] > 0
    lost = np.isin(positions, state.lost)
    if CONF.hpc_sched.bunch_weight_scale == "listing1":
        numbers = bunch.leaf_weights(problem)[problem.topology.leaf_index[at_host]]
        return [float(number) for number in np.where(takes_more & ~lost, numbers, 0)]
    order = bunch.host_order(
        problem, slot=state.slot, spread=state.request.policy == "soft-anti-affinity"
    )
    place = np.empty(len(order), dtype=np.int64)
    place[order] = np.arange(len(order))
    # Hosts that are full go behind all others, those that lost a claim behind these.
    key = place[at_host] + len(order) * np.where(lost, 2, np.where(takes_more, 0, 1))
    _, dense = np.unique(-key, return_inverse=True)
    return [float(rank) for rank in dense]
