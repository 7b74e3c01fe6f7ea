"""The VMs that the hosts have already, and the room that they leave for those of one request."""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Sequence

import nova.conf
import numpy as np
from nova import context as nova_context
from nova import objects
from nova.scheduler import host_manager
from oslo_log import log as logging

from hpc_sched.core.capacity import UNBOUNDED
from hpc_sched.core.sharing.cache_interference import Application, dedicated_room, room
from hpc_sched.nova_glue.instances import host_instances, instance_applications
from hpc_sched.nova_glue.instances.host_instances import Occupancy, on_host
from hpc_sched.nova_glue.instances.placed_instance import PlacedInstance
from hpc_sched.nova_glue.io import databases, request_deadline
from hpc_sched.nova_glue.request import request_spec
from hpc_sched.nova_glue.request.claim_observer import Array, ClaimObserver
from hpc_sched.nova_glue.room import cache_limits

CONF = nova.conf.CONF
LOG = logging.getLogger(__name__)

# How many things that could not be read are told of one request.
MAX_TOLD = 5
# A VM of which only its presence is known.
_ANYBODY = Application("none")


class Neighbours:
    """What stands on the candidates of one request beside its own VMs.

    Made at first sight of a RequestSpec; what the request has placed since then shows in
    HostState.num_instances. Used by the one thread that serves the request.
    """

    def __init__(
        self,
        newcomer: Application,
        faults: Sequence[str],
        occupancy: Occupancy,
        running: dict[instance_applications.Place, list[Application]],
        states: Sequence[host_manager.HostState],
    ) -> None:
        self.newcomer = newcomer
        # A VM that runs already is not held fast by what cannot be read.
        self.faults = () if occupancy.is_move else tuple(faults)
        self.occupancy = occupancy
        self.removed: Counter[str] = Counter()  # why our filters removed how many hosts
        self._running = running
        self._first = ClaimObserver(states)
        self._dedicated: Array | None = None
        self._limited: Array | None = None
        self._bad: frozenset[str] = frozenset()

    def knows(self, states: Sequence[host_manager.HostState]) -> bool:
        """Tell whether all these HostStates are the ones of first sight."""
        return self._first.knows(states)

    @property
    def placed(self) -> int:
        """VMs that the request has placed so far."""
        return int(self._first.placed().sum())

    def dedicated_room(self, states: Sequence[host_manager.HostState]) -> Array:
        """Return how many more VMs of the request each host takes by dedication."""
        if self._dedicated is None:
            self._dedicated = np.array(
                [
                    0
                    if self._must_be_known and self._is_silent(state)
                    else dedicated_room(self.newcomer, self.on(state))
                    for state in self._first.states
                ],
                np.int64,
            )
        return self._now(self._dedicated, states)

    def limited_room(self, states: Sequence[host_manager.HostState]) -> Array:
        """Return how many more VMs of the request each host takes by scores and company."""
        if self._limited is None:
            self._bad = cache_limits.bad_company(self.newcomer.name)
            if cache_limits.is_unknown(self.newcomer.name):
                LOG.warning(
                    "Application %s is not in the interference index: kept apart from nobody",
                    self.newcomer.name,
                )
            limits = cache_limits.limits_of(self._first.states)
            self._limited = np.array(
                [
                    room(self.newcomer, self.on(state), limit, self._bad)
                    for state, limit in zip(self._first.states, limits, strict=True)
                ],
                np.int64,
            )
        return self._now(self._limited, states)

    def in_bad_company(self, states: Sequence[host_manager.HostState]) -> int:
        """Return how many hosts run an application that the newcomer's must not meet."""
        return sum(any(there.name in self._bad for there in self.on(state)) for state in states)

    def on(self, state: host_manager.HostState) -> list[Application]:
        """Return what runs on a host, not the request's own VMs."""
        if self._is_silent(state):
            # What the scheduler itself knows: how many they are.
            return [_ANYBODY] * int(state.num_instances or 0)
        return on_host(self._running, state)

    def holding(self, state: host_manager.HostState) -> list[PlacedInstance] | None:
        """Return the VMs that hold room on a host; None where they are not known."""
        if self._is_silent(state):
            return None
        return self.occupancy.on(state)

    def _is_silent(self, state: host_manager.HostState) -> bool:
        return state.cell_uuid in self.occupancy.silent_cells

    @property
    def _must_be_known(self) -> bool:
        """Tell whether a host is no good of which nobody knows who is on it, or on the way."""
        return self.newcomer.app_class == "extreme" and not self.occupancy.is_move

    @property
    def unproven(self) -> str | None:
        """Why nobody knows on which hosts the request would be alone, None where that is known."""
        return self.occupancy.in_flight_unknown if self._must_be_known else None

    def _now(self, room_at_first: Array, states: Sequence[host_manager.HostState]) -> Array:
        left = (room_at_first - self._first.placed())[self._first.positions(states)]
        now: Array = np.clip(left, 0, UNBOUNDED)
        return now


def read(spec: objects.RequestSpec, states: Sequence[host_manager.HostState]) -> Neighbours:
    """Return the neighbours that a request's VMs would have.

    Queries: as :func:`occupancy.read` and :func:`applications.read` say. Where a database does
    not answer, what HostState knows takes its place, with one WARNING.
    """
    newcomer, faults = request_spec.application_of(spec)
    context = nova_context.get_admin_context()
    running: dict[instance_applications.Place, list[Application]] = {}
    try:
        found = host_instances.read(context, spec.instance_uuid, states)
        running, problems = instance_applications.read(context, found)
        problems = found.problems + problems
    except Exception as error:
        if not isinstance(error, databases.OUTAGES):
            LOG.exception("Cannot read which VMs are on the hosts")
        cells = frozenset(state.cell_uuid for state in states)
        # A VM that has a host already moves; Nova shows it where it is.
        is_move = any(spec.instance_uuid in state.instances for state in states)
        problems = (f"{databases.API_DATABASE}: {databases.why(error)}",)
        found = Occupancy(at={}, silent_cells=cells, is_move=is_move, in_flight_unknown=problems[0])
    untold = request_deadline.untold(list(dict.fromkeys(problems)))
    if untold:
        LOG.warning(
            "Instance %s: not all VMs on the hosts are known: %s",
            spec.instance_uuid,
            _first_of(untold),
        )
    group = request_spec.server_group_of(spec) or found.reservation_id or spec.instance_uuid
    newcomer = dataclasses.replace(newcomer, group=group)
    return Neighbours(newcomer, faults, found, running, states)


def _first_of(problems: Sequence[str]) -> str:
    """Return the first few of what may be very many."""
    more = [f"and {len(problems) - MAX_TOLD} more"] if len(problems) > MAX_TOLD else []
    return "; ".join([*problems[:MAX_TOLD], *more])
