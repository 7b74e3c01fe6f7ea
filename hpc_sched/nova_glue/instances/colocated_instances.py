"""The instances already on the hosts, and the room that they leave for those of one request."""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Sequence

import numpy as np
from nova import context as nova_context
from nova import objects
from nova.scheduler import host_manager
from oslo_log import log as logging

from hpc_sched.core.arrays import Array
from hpc_sched.core.capacity import UNBOUNDED
from hpc_sched.core.sharing.cache_interference import Application, dedicated_room, room
from hpc_sched.enabled_plugins import DEDICATED_FILTER
from hpc_sched.nova_glue import request_spec
from hpc_sched.nova_glue.instances import host_instances, instance_applications
from hpc_sched.nova_glue.instances.claim_observer import ClaimObserver
from hpc_sched.nova_glue.instances.host_instances import HostInstances, on_host
from hpc_sched.nova_glue.instances.placed_instance import PlacedInstance
from hpc_sched.nova_glue.io import circuit_breaker, databases
from hpc_sched.nova_glue.room import cache_limits

LOG = logging.getLogger(__name__)

# Longest list of problems in a log line.
MAX_PROBLEMS = 5
# Instance with unknown flavor.
_UNKNOWN = Application("none")


class ColocatedInstances:
    """The instances on the candidate hosts of one request, without the request's own.

    Read when a RequestSpec is first seen; what the request has placed since then shows in
    HostState.num_instances. Used only by the thread that serves the request.
    """

    def __init__(
        self,
        application: Application,
        faults: Sequence[str],
        found: HostInstances,
        running: dict[instance_applications.Place, list[Application]],
        states: Sequence[host_manager.HostState],
    ) -> None:
        self.application = application
        # Invalid extra specs do not keep a running instance from moving.
        self.faults = () if found.is_move else tuple(faults)
        self.host_instances = found
        self.removed: Counter[str] = Counter()  # reason to hosts that filters removed
        self._running = running
        self.hosts = ClaimObserver(states)
        self._rooms: dict[str, Array] = {}  # filter to the room at first, shape (states,)
        self._incompatible: frozenset[str] = frozenset()

    @property
    def placed(self) -> int:
        """Instances that the request has placed so far."""
        return int(self.hosts.placed().sum())

    def room(self, by: str, states: Sequence[host_manager.HostState]) -> Array:
        """Return how many more instances each host takes. Shape (states,).

        :param by: the filter whose rules count: HPCDedicatedHostFilter or HPCInterferenceFilter
        """
        if by not in self._rooms:
            rooms = self._dedicated_rooms() if by == DEDICATED_FILTER else self._limited_rooms()
            self._rooms[by] = np.array(rooms, np.int64)
        left = (self._rooms[by] - self.hosts.placed())[self.hosts.positions(states)]
        return left.clip(0, UNBOUNDED)

    def _dedicated_rooms(self) -> list[int]:
        return [
            0
            if self._is_exclusive and self._is_down(state)
            else dedicated_room(self.application, self.on(state))
            for state in self.hosts.states
        ]

    def _limited_rooms(self) -> list[int]:
        self._incompatible = cache_limits.incompatible(self.application.name)
        limits = cache_limits.limits_of(self.hosts.states)
        return [
            room(self.application, self.on(state), limit, self._incompatible)
            for state, limit in zip(self.hosts.states, limits, strict=True)
        ]

    def count_incompatible(self, states: Sequence[host_manager.HostState]) -> int:
        """Return how many hosts run an application that the request's is kept apart from."""
        return sum(
            any(there.name in self._incompatible for there in self.on(state)) for state in states
        )

    def on(self, state: host_manager.HostState) -> list[Application]:
        """Return the applications on a host, without those of the request."""
        if self._is_down(state):
            # Nova's scheduler has the number of instances.
            return [_UNKNOWN] * int(state.num_instances or 0)
        return on_host(self._running, state)

    def holding(self, state: host_manager.HostState) -> list[PlacedInstance] | None:
        """Return the instances that hold room on a host, or None if its cell did not answer."""
        return None if self._is_down(state) else self.host_instances.on(state)

    @property
    def unverified(self) -> str | None:
        """Reason why exclusive hosts cannot be verified, or None."""
        return self.host_instances.in_flight_unknown if self._is_exclusive else None

    @property
    def _is_exclusive(self) -> bool:
        """True if the request needs hosts on which no other instance is or may arrive."""
        return self.application.app_class == "extreme" and not self.host_instances.is_move

    def _is_down(self, state: host_manager.HostState) -> bool:
        return state.cell_uuid in self.host_instances.down_cells


def read(spec: objects.RequestSpec, states: Sequence[host_manager.HostState]) -> ColocatedInstances:
    """Return the instances that a request's instances would share hosts with.

    Queries: as :func:`host_instances.read` and :func:`instance_applications.read` say. HostState
    substitutes for a database that does not answer, with one WARNING.
    """
    application, faults = request_spec.application_of(spec)
    context = nova_context.get_admin_context()
    running: dict[instance_applications.Place, list[Application]] = {}
    try:
        found = host_instances.read(context, spec.instance_uuid, states)
        running, problems = instance_applications.read(context, found)
        problems = found.problems + problems
    except Exception as error:
        if not isinstance(error, databases.OUTAGES):
            LOG.exception("Cannot read which VMs are on the hosts")
        problem = f"{databases.API_DATABASE}: {databases.reason(error)}"
        problems = (problem,)
        down = frozenset(state.cell_uuid for state in states)
        # An instance that has a host moves; Nova's scheduler has it in its HostState.
        is_move = any(spec.instance_uuid in state.instances for state in states)
        found = HostInstances({}, is_move=is_move, down_cells=down, in_flight_unknown=problem)
    shown = circuit_breaker.not_yet_logged(problems)
    if len(shown) > MAX_PROBLEMS:
        shown[MAX_PROBLEMS:] = [f"and {len(shown) - MAX_PROBLEMS} more"]
    if shown:
        text = "Instance %s: not all VMs on the hosts are known: %s"
        LOG.warning(text, spec.instance_uuid, "; ".join(shown))
    group = request_spec.server_group_of(spec) or found.reservation_id or spec.instance_uuid
    application = dataclasses.replace(application, group=group)
    return ColocatedInstances(application, faults, found, running, states)
