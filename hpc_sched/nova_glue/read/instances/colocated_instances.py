"""The instances already on the hosts, and the room that they leave for those of one request."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Sequence

import numpy as np
from nova import context as nova_context
from nova import objects
from nova.conf import CONF
from nova.scheduler import host_manager
from oslo_log import log as logging

from hpc_sched.core.arrays import Array
from hpc_sched.core.capacity import UNBOUNDED
from hpc_sched.core.logged.decision_summary import READS
from hpc_sched.core.sharing.cache_interference import Application
from hpc_sched.core.sharing.host_applications import HostApplications, dedicated_rooms, rooms
from hpc_sched.enabled_plugins import DEDICATED_FILTER
from hpc_sched.nova_glue.io import databases, request_deadline
from hpc_sched.nova_glue.read import request_spec
from hpc_sched.nova_glue.read.instances import host_instances
from hpc_sched.nova_glue.read.instances.kept.host_vms import HostVMs
from hpc_sched.nova_glue.read.instances.shared_read import SharedRead
from hpc_sched.nova_glue.read.nova_claims import ClaimObserver
from hpc_sched.nova_glue.read.room import cache_limits

LOG = logging.getLogger(__name__)

# Longest list of problems in a log line.
MAX_PROBLEMS = 5
# Instance whose application is not known.
_UNKNOWN = Application("none")
_SOURCE = "VMs on all hosts"

Asked = tuple[str, Sequence[host_manager.HostState]]  # instance of a request, its HostStates


class ColocatedInstances:
    """The instances on the candidate hosts of one request, without the request's own.

    Read when a RequestSpec is first seen; what the request has placed since then shows in
    HostState.num_instances. Used only by the thread that serves the request.
    """

    def __init__(
        self,
        application: Application,
        faults: Sequence[str],
        found: host_instances.HostInstances,
        states: Sequence[host_manager.HostState],
        own: str = "",
    ) -> None:
        """Count what is not known.

        :param own: uuid of the instance that is scheduled
        """
        self.application = application
        # Invalid extra specs do not keep a running instance from moving.
        self.faults = () if found.is_move else tuple(faults)
        self.host_instances = found
        # Reason to the hosts that filters removed.
        self.removed_hosts: dict[str, list[host_manager.HostState]] = {}
        self.hosts = ClaimObserver(states)
        self._there = found.on_each(self.hosts.states)  # by position
        self._rooms: dict[str, Array] = {}  # filter to the room at first, shape (states,)
        self._incompatible: frozenset[str] = frozenset()
        # By position of a HostState: of instances that were read elsewhere before, and the number
        # of those that are not known.
        self._moved: dict[int, list[Application]] = {}
        self._unknown: dict[int, int] = {}
        self._complete(own)

    def note_removed(self, why: str, states: Iterable[host_manager.HostState]) -> None:
        """Note hosts that a filter removed."""
        self.removed_hosts.setdefault(why, []).extend(states)

    @property
    def placed(self) -> int:
        """Instances that the request has placed so far."""
        return int(self.hosts.placed().sum())

    def room(self, by: str, states: Sequence[host_manager.HostState]) -> Array:
        """Return how many more instances each host takes. Shape (states,).

        :param by: the filter whose rules count: HPCDedicatedHostFilter or HPCInterferenceFilter
        """
        if by not in self._rooms:
            rooms = self._first_rooms(by)
            if self.host_instances.is_move and self._unknown and not any(rooms):
                # No move is refused because of what could not be read.
                rooms = self._first_rooms(by, known=True)
            self._rooms[by] = np.array(rooms, np.int64)
        left = self._rooms[by] - self.hosts.placed()
        return left[self.hosts.positions(states)].clip(0, UNBOUNDED)

    def _first_rooms(self, by: str, *, known: bool = False) -> list[int]:
        """Return the room of each HostState before the first claim.

        :param known: whether unknown instances are left out
        """
        new, is_dedicated = self.application, by == DEDICATED_FILTER
        there = [vms.applications for vms in self._there]
        # All others have known instances alone.
        for i in {*self._moved, *self._unknown}:
            there[i] = HostApplications.of(self._on(i, known=known))
        if is_dedicated:
            found = dedicated_rooms(new, there)
        else:
            self._incompatible = cache_limits.incompatible(new.name)
            limits = cache_limits.limits_of(self.hosts.states)
            found = rooms(new, there, limits, self._incompatible)
        if is_dedicated or new.app_class != "extreme":
            for i in self._closed():
                found[i] = 0
        return found

    def _closed(self) -> Iterable[int]:
        """Return the hosts that take no new instance because of instances that are not known."""
        setting = CONF.hpc_sched.unknown_instances
        if self.host_instances.is_move or setting == "open":
            return ()
        hidden = list[int]()
        if self._is_exclusive and self.host_instances.down_cells:
            hidden += [i for i, state in enumerate(self.hosts.states) if self._is_down(state)]
        return (*hidden, *self._unknown) if setting == "closed" else hidden

    def count_incompatible(self, states: Sequence[host_manager.HostState]) -> int:
        """Return how many hosts run an application that the request's is kept apart from."""
        return sum(
            any(there.name in self._incompatible for there in self.on(state)) for state in states
        )

    def on(self, state: host_manager.HostState) -> list[Application]:
        """Return the applications on a host, without those of the request."""
        return self._on(self.hosts.index[id(state)])

    def _on(self, position: int, *, known: bool = False) -> list[Application]:
        found = [*self._there[position].applications.each, *self._moved.get(position, ())]
        return found if known else found + [_UNKNOWN] * self._unknown.get(position, 0)

    def _complete(self, own: str) -> None:
        """Note what Nova's scheduler knows of instances beyond what was read. O(instances)."""
        if self.host_instances.down_cells:
            self._complete_down(own)
            return
        self._unknown = {i: vms.unknown for i, vms in enumerate(self._there) if vms.unknown}

    def _complete_down(self, own: str) -> None:
        known = self.host_instances.at.values()
        everywhere = {vm.uuid: vm.application for here in known for vm in here}
        for i, (state, there) in enumerate(zip(self.hosts.states, self._there, strict=True)):
            unknown = there.unknown
            if self._is_down(state):
                # It has the number of instances, and mostly their uuids.
                seen = set(state.instances or ())
                new = seen - {vm.uuid for vm in there} - {own}
                read = [one for uuid in sorted(new) if (one := everywhere.get(uuid)) is not None]
                number = int(state.num_instances or 0) - len({own} & seen) - len(there)
                unknown += max(len(new), number) - len(read)
                self._moved[i] = read
            if unknown > 0:
                self._unknown[i] = unknown

    def holding(self, state: host_manager.HostState) -> HostVMs | None:
        """Return the instances that hold room on a host, or None if its cell did not answer."""
        if self._is_down(state):
            return None
        position = self.hosts.index.get(id(state))
        return self.host_instances.on(state) if position is None else self._there[position]

    @property
    def unverified(self) -> str | None:
        """Reason why exclusive hosts cannot be verified, or None."""
        matters = self._is_exclusive and CONF.hpc_sched.unknown_instances != "open"
        return self.host_instances.in_flight_unknown if matters else None

    @property
    def _is_exclusive(self) -> bool:
        """True if the request needs hosts on which no other instance is or may arrive."""
        return self.application.app_class == "extreme" and not self.host_instances.is_move

    def _is_down(self, state: host_manager.HostState) -> bool:
        return state.cell_uuid in self.host_instances.down_cells


def read(spec: objects.RequestSpec, states: Sequence[host_manager.HostState]) -> ColocatedInstances:
    """Return the instances that a request's instances would share hosts with.

    Queries: as :func:`host_instances.read` says, for all requests that wait at the same time
    together. An earlier read and HostState substitute for
    a database that does not answer, with one WARNING.
    """
    own, (application, faults) = spec.instance_uuid, request_spec.application_of(spec)
    found = read_hosts(own, states)
    found = dataclasses.replace(found, is_move=found.is_move or request_spec.is_move(spec))
    shown = request_deadline.not_yet_logged(found.problems)
    if len(shown) > MAX_PROBLEMS:
        shown[MAX_PROBLEMS:] = [f"and {len(shown) - MAX_PROBLEMS} more"]
    if shown:
        LOG.warning("Instance %s: not all VMs on the hosts are known: %s", own, "; ".join(shown))
    group = request_spec.server_group_of(spec) or found.reservation_id or own
    application = dataclasses.replace(application, group=group)
    return ColocatedInstances(application, faults, found, states, own)


def read_hosts(own: str, states: Sequence[host_manager.HostState]) -> host_instances.HostInstances:
    """Return the instances on hosts, with their applications, as a request sees them.

    What could not be read is among the problems; VMs that were read last remain known.

    :param own: uuid of the instance that is scheduled
    """
    # Without a read since the start no VM is known. The read ends by itself.
    limit = request_deadline.remaining_in_all if reads.last else request_deadline.most_for_rows
    seconds = limit()
    try:
        # The read of others, for which a request may wait first, leaves it time for its own reads.
        with request_deadline.charged(READS, CONF.hpc_sched.cell_timeout):
            found = reads.ask((own, states), seconds)
        problem = f"{_SOURCE}: not read within {seconds:.0f} s"
    except Exception as error:
        source = databases.API_DATABASE  # cells that do not answer raise nothing
        if not isinstance(error, databases.OUTAGES):
            LOG.exception("Cannot read which VMs are on the hosts")
            source = _SOURCE
        found, problem = None, f"{source}: {databases.reason(error)}"
    if found is not None:
        return found.seen_by(own, states)
    known = reads.last.seen_by(own, states) if reads.last else host_instances.HostInstances({})
    return dataclasses.replace(
        known,
        # An instance that has a host moves; Nova's scheduler has it in its HostState.
        is_move=known.is_move or any(own in state.instances for state in states),
        down_cells=frozenset(state.cell_uuid for state in states),
        problems=(problem,),
        in_flight_unknown=problem,
    )


def _read_all(
    asked: Sequence[Asked], before: host_instances.AllInstances | None
) -> host_instances.AllInstances:
    """Return all instances for some requests at once, in a thread of its own."""
    with request_deadline.active(request_deadline.shared()):
        context = nova_context.get_admin_context()
        return host_instances.read(context, [own for own, _ in asked], asked[0][1], before)


reads: SharedRead[Asked, host_instances.AllInstances] = SharedRead(_read_all)
