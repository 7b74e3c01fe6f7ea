"""The base classes of the weighers: entry from Nova, handling of errors, and ranks."""

import math
import threading
from collections.abc import Sequence

import nova.conf
from nova import objects
from nova.scheduler import host_manager, weights
from nova.scheduler import utils as scheduler_utils

from hpc_sched import conf
from hpc_sched.core.arrays import Array, Mask
from hpc_sched.core.group_request import GroupRequest
from hpc_sched.nova_glue import failures, served_requests
from hpc_sched.nova_glue.answer import ranks
from hpc_sched.nova_glue.decide.group_placement import GroupPlacement
from hpc_sched.nova_glue.phases import Call
from hpc_sched.nova_glue.session import Weigher

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


class GroupWeigher(Weigher, weights.BaseHostWeigher):
    """Orders the hosts for the VMs of a group.

    Requests that the weigher does not place get no weights, and most weighers place none without a
    group. A weigher never refuses: invalid values are ignored with a WARNING, and after an error in
    hpc_sched, which is logged with its traceback, there are no weights. In shadow mode there are
    none either.

    One object serves all requests from many threads and has no state of any request.
    """

    #: name of the multiplier, as an option and in metadata of aggregates
    multiplier = ""

    def __init__(self) -> None:
        """Load what the plugin needs; raises as :func:`served_requests.start` does."""
        super().__init__()
        served_requests.start(type(self).__name__)

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
        name = type(self).__name__
        try:
            call = Call(name, weight_properties, [host.obj for host in weighed_obj_list])
            session = served_requests.session_of(weight_properties)
            answer = session.weighed(call, self, weighed_obj_list)
            _weighing.option = self.multiplier
            if answer and not self._differs(call.states):
                _weighing.multiplier = conf.number(CONF, self.multiplier)
                _weighing.hosts = call.states[::-1]
            return answer
        except Exception:
            failures.log(f"{name} failed and weighs all hosts alike", name)
            return []

    def prefer(self, state: host_manager.HostState, multiplier: float) -> None:
        """Give a host a multiplier of its own: the current VM is claimed there."""
        _weighing.claimed = state, multiplier

    def _differs(self, states: Sequence[host_manager.HostState]) -> bool:
        """True if any aggregate of these hosts has a multiplier of its own."""
        found = {id(there): there for state in states for there in state.aggregates or ()}
        return any(self.multiplier in aggregate.metadata for aggregate in found.values())

    def _order(self, group: GroupPlacement, request: GroupRequest) -> Array:
        """Return all hosts of the topology, best one for the next VM first. Shape (hosts,)."""
        answer = group.answer(request)
        return group.decisions.host_order(request, answer, group.event.slot)


class TopologyWeigher(GroupWeigher):
    """Orders the hosts by their leaves; their ranks are the weights.

    If MDOBP chooses the host inside a leaf, all hosts of a leaf have one rank. Classes that are
    not placed by topology have two: the preferred processor type comes first.
    """

    def places(self, group: GroupPlacement) -> bool:
        """True for classes that are placed by topology, and with a preferred processor type."""
        inputs = group.inputs
        return inputs.request.hpc_specs.by_topology or inputs.first.preferred is not None

    def group_weights(self, group: GroupPlacement) -> list[float]:
        """Return the dense ranks of the candidates."""
        request = group.request(group.event.candidates)
        if not group.inputs.request.hpc_specs.by_topology:
            return [float(is_open) for is_open in self._open(group, request)]
        keys = ranks.host_keys(group, self._order(group, request))
        if group.inputs.request.by_mdobp:
            # All hosts with room of a leaf that the plan does not avoid get the key of the best.
            keys = ranks.by_leaf(group, keys, self._open(group, request))
        return [float(rank) for rank in ranks.dense_ranks(keys)]

    def _open(self, group: GroupPlacement, request: GroupRequest) -> Mask:
        """Return which candidates have room that the plan does not avoid. Shape (candidates,)."""
        return ranks.open_hosts(group, self._limited(group, request))

    def _limited(self, group: GroupPlacement, request: GroupRequest) -> GroupRequest:
        """Return the request on the hosts that come before the others."""
        return (request.on_preferred() or request).spread()
