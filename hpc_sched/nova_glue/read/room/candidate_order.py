"""The allocation candidates of hosts, put in the order in which Nova shall claim them."""

from __future__ import annotations

import nova.conf

from hpc_sched import conf
from hpc_sched.core.arrays import Array
from hpc_sched.nova_glue.read.room.allocation_candidates import ClaimedPlace
from hpc_sched.nova_glue.read.room.host_rooms import HostRooms

CONF = nova.conf.CONF


class CandidateOrder:
    """Puts first, on each host of a request, the candidate that its next VM shall claim."""

    def __init__(self, rooms: HostRooms) -> None:
        self._rooms = rooms
        # The VM whose candidates are in order, and the one that weighers have seen them for.
        self._arranged_for: str | None = None
        self._noted_for: str | None = None

    def arrange(self, instance: str | None, positions: Array, place: ClaimedPlace | None) -> None:
        """Put the candidates of some HostStates in order; in shadow mode nothing is changed.

        :param instance: uuid of the VM to place next
        :param place: where it is claimed already
        """
        if conf.is_shadow(CONF):
            return
        candidates = self._rooms.candidates
        if candidates.differ and self._arranged_for != instance:
            self._arranged_for = instance
            self._rooms.arrange(positions)
        if place is not None and candidates.offers(place):
            candidates.put_first(place.position, place.candidate)

    def note(self, instance: str | None, positions: Array, place: ClaimedPlace | None) -> None:
        """Note which candidate is first on each host, after the last filter.

        Filters behind those of hpc_sched may have removed some. Parameters as of :meth:`arrange`.
        """
        if self._noted_for == instance:
            return
        self._noted_for = instance
        if self._rooms.candidates.differ and self._arranged_for == instance:
            self._rooms.candidates.note_first(positions)
        self.arrange(instance, positions, place)
