"""The base classes of the weighers: entry from Nova, handling of errors, and ranks."""

from __future__ import annotations

import math
import threading
from collections.abc import Sequence

import nova.conf
import numpy as np
from nova import objects
from nova.scheduler import host_manager, weights
from nova.scheduler import utils as scheduler_utils

from hpc_sched import conf
from hpc_sched.core.arrays import Array, Mask
from hpc_sched.core.group_request import GroupRequest
from hpc_sched.nova_glue import served_requests, shadow
from hpc_sched.nova_glue.decide.group_state import GroupState
from hpc_sched.nova_glue.exporter import worker
from hpc_sched.nova_glue.io import loaded_topology
from hpc_sched.nova_glue.record import decision_record

CONF = nova.conf.CONF


class _Weighing(threading.local):
    """The hosts that this thread has just weighed, if they have one multiplier.

    Nova requests the multiplier next, host by host in the same order. To read option and
    metadata each time is nearly half of a weigher's time. Each host is dropped at its request,
    so that no reference outlives the weighing.
    """

    option = ""  # that holds the multiplier
    multiplier = 0.0

    def __init__(self) -> None:
        self.hosts: list[host_manager.HostState] = []  # the last one first
        self.claimed: tuple[host_manager.HostState, float] | None = None  # and its multiplier


_weighing = _Weighing()


class GroupWeigher(weights.BaseHostWeigher):
    """Orders the hosts for the VMs of a group.

    Requests that the weigher does not place get no weights, and most weighers place none without a
    group. A weigher never refuses: invalid values are ignored with a WARNING, and after an error in
    hpc_sched, which is logged with its traceback, there are no weights. In shadow mode there are
    none either.

    One object serves all requests from many threads and has no state of any request.
    """

    #: name of the multiplier, as an option and in metadata of aggregates
    multiplier = ""
    #: whether a host on which the VM is claimed already comes first, whatever others weigh
    follows_claims = False

    def __init__(self) -> None:
        """Load the topology and begin to count; raises as :func:`loaded_topology.start` does."""
        super().__init__()
        loaded_topology.start()
        worker.prepare(type(self).__name__)

    def weight_multiplier(self, host_state: host_manager.HostState) -> float:
        """Return the multiplier: the option, or metadata of the host's aggregates."""
        left, claimed = _weighing.hosts, _weighing.claimed
        is_current = _weighing.option == self.multiplier
        is_first = is_current and bool(left) and left[-1] is host_state
        if is_first:
            left.pop()
        if is_current and claimed is not None and claimed[0] is host_state:
            _weighing.claimed = None
            return claimed[1]
        if is_first:
            return _weighing.multiplier
        default = conf.number(CONF, self.multiplier)
        value = float(scheduler_utils.get_weight_multiplier(host_state, self.multiplier, default))
        # float() accepts "nan" and "inf"; one of them would break the order of all hosts.
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
        """Return one number a host, greater is better; [] if the weigher does not apply.

        For [] Nova adds nothing and requests no multiplier, which saves time on all requests
        without a group.

        Reads the databases when the request is first seen, see
        :func:`hpc_sched.nova_glue.read.instances.group_members.read`.
        """
        _weighing.hosts, _weighing.claimed = [], None
        if conf.is_shadow(CONF):
            states = [host.obj for host in weighed_obj_list]
            shadow.end(type(self).__name__, states, weight_properties)
            return []
        try:
            with served_requests.charge_waiting(weight_properties):
                states = [host.obj for host in weighed_obj_list]
                state = served_requests.get_state(weight_properties, states)
                if state is None:
                    answer = self._unplanned_weights(weight_properties, weighed_obj_list)
                else:
                    state.claims.remember(weighed_obj_list)
                    answer = self._group_weights(state, states)
                _weighing.option = self.multiplier
                if answer and not self._differs(states):
                    _weighing.multiplier = conf.number(CONF, self.multiplier)
                    _weighing.hosts = states[::-1]
                return answer
        except Exception:
            name = type(self).__name__
            served_requests.log_failure(f"{name} failed and weighs all hosts alike", name)
            return []

    def _group_weights(
        self, state: GroupState, states: Sequence[host_manager.HostState]
    ) -> list[float]:
        """Return the weights for a VM of a group, and log the decision on it."""
        state.note_candidates(states)
        answer: list[float] = []
        if self._places(state):
            state.warn_of_faults()
            answer = self._weights(state, state.positions(states))
            if self.follows_claims:
                _prefer_claimed(state, states, answer)
        if state.decisions.answer is not None:
            decision_record.log(state, state.decisions.answer)
        return answer

    def _unplanned_weights(
        self, spec: objects.RequestSpec, weighed: Sequence[weights.WeighedHost]
    ) -> list[float]:
        """Return the weights for a VM without a group, or of class ``none``; [] for none."""
        return []

    def _differs(self, states: Sequence[host_manager.HostState]) -> bool:
        """True if any aggregate of these hosts has a multiplier of its own."""
        found = {id(there): there for state in states for there in state.aggregates or ()}
        return any(self.multiplier in aggregate.metadata for aggregate in found.values())

    def _places(self, state: GroupState) -> bool:
        raise NotImplementedError

    def _weights(self, state: GroupState, positions: Array) -> list[float]:
        raise NotImplementedError

    def _order(self, state: GroupState, group: GroupRequest) -> Array:
        """Return all hosts of the topology, best one for the next VM first. Shape (hosts,)."""
        return state.host_order(group)


class TopologyWeigher(GroupWeigher):
    """Orders the hosts by their leaves; their ranks are the weights.

    If MDOBP chooses the host inside a leaf, all hosts of a leaf have one rank. Classes that are
    not placed by topology have two: the preferred processor type comes first.
    """

    def _places(self, state: GroupState) -> bool:
        return state.request.hpc_specs.by_topology or state.group_request().preferred is not None

    def _weights(self, state: GroupState, positions: Array) -> list[float]:
        group = state.group_request(positions)
        if not state.request.hpc_specs.by_topology:
            return [float(is_open) for is_open in self._open(state, positions)]
        keys = host_keys(state, positions, self._order(state, group))
        if state.request.by_mdobp:
            # All hosts with room of a leaf that the plan does not avoid get the key of the best.
            leaf = state.topology.leaf_index[state.host_index[positions]]
            least = np.full(len(state.topology.switches), keys.max(initial=0))
            np.minimum.at(least, leaf, keys)
            behind = np.maximum(keys // len(state.topology.hosts), ~self._open(state, positions))
            keys = np.where(behind == 0, least[leaf], behind * len(state.topology.hosts))
        return [float(rank) for rank in dense_ranks(keys)]

    def _open(self, state: GroupState, positions: Array) -> Mask:
        """Return which candidates have room that the plan does not avoid. Shape (positions,)."""
        group = self._limited(state, state.group_request(positions))
        has_room = group.capacity[positions] > 0
        return np.logical_and(has_room, group.problem().capacity[state.host_index[positions]] > 0)

    def _limited(self, state: GroupState, group: GroupRequest) -> GroupRequest:
        """Return the request on the hosts that come before the others."""
        return (group.on_preferred() or group).spread()


def _prefer_claimed(
    state: GroupState, states: Sequence[host_manager.HostState], answer: list[float]
) -> None:
    """Give the host on which the current VM is claimed the greatest weight and multiplier."""
    place = state.claimed_place
    if place is None or state.gang is None or not answer:
        return
    claimed = state.candidates[place.position]
    for i, host in enumerate(states):
        if host is claimed:
            answer[i] = max(answer) + 1
            _weighing.claimed = claimed, state.gang.multiplier


def host_keys(state: GroupState, positions: Array, order: Array) -> Array:
    """Return sort keys of candidates by an order of hosts, smallest first. Shape (positions,).

    A key is the place in the order. Hosts that are full, or whose room is held for other VMs of the
    request, come after all others, hosts that lost a claim after these: their keys are greater by
    the number of hosts once and twice. With soft-anti-affinity any VM that is held fills a host.

    :param order: indices in ``topology.hosts``, best one first; shape (hosts,)
    """
    place = np.empty(len(order), dtype=np.int64)
    place[order] = np.arange(len(order))
    held = state.held(for_others=True)
    takes_more = (state.group_request().capacity > held)[positions]
    if state.request.policy == "soft-anti-affinity":
        takes_more &= held[positions] == 0
    behind = np.where(np.isin(positions, state.lost), 2, np.where(takes_more, 0, 1))
    keys: Array = place[state.host_index[positions]] + len(order) * behind
    return keys


def dense_ranks(keys: Array) -> Array:
    """Return the dense rank of each key, 0 for the greatest. Shape (keys,)."""
    ranks: Array = np.unique(-keys, return_inverse=True)[1]
    return ranks
