"""Rooms that are bounds at first, and exact where they were verified."""

from collections.abc import Callable, Iterable, Mapping

import numpy as np

from hpc_sched.core.arrays import Array

# Returns how many VMs, up to a number, the host at an index takes. It is handed to each call: a
# reference that is kept would be a cycle, in which HostStates outlive their request.
Count = Callable[[int, int], int]


class VerifiedRooms:
    """The VMs that each host takes at most. Used by one thread."""

    def __init__(self, bound: Array, known: Array) -> None:
        """Start with bounds.

        :param bound: shape (hosts,)
        :param known: VMs for which each host has room without a check, shape (hosts,)
        """
        self.room = bound
        self.known = known
        # Resource class to the least that a shared provider had for each host; for refusals.
        self.shared: dict[str, Array] = {}

    def unverified(self, total: Array) -> list[int]:
        """Return the hosts that are not known to take some numbers of VMs."""
        found: list[int] = np.flatnonzero(total > self.known).tolist()
        return found

    def verify(self, hosts: Iterable[int], total: Array, count: Count) -> bool:
        """Count the VMs on hosts up to some numbers; return whether any host takes fewer."""
        is_lower = False
        for i in hosts:
            wanted = int(total[i])
            found = count(i, wanted)
            self.known[i] = found
            if found < wanted:
                is_lower = True
                self.room[i] = min(int(self.room[i]), found)
        return is_lower

    def verify_all(
        self,
        count: Count,
        is_exhausted: Callable[[], bool],
        is_exact: Callable[[int], bool] = lambda _: True,
    ) -> None:
        """Count the VMs on all hosts until the effort is exhausted; others keep their bound.

        A host that takes less than its bound is seldom the only one of its kind.

        :param is_exact: whether all is known of a host; others are verified again for a plan
        """
        for i in self.unverified(self.room):
            if is_exhausted():
                return
            known = self.known[i]
            self.verify([i], self.room, count)
            if not is_exact(i):
                self.known[i] = min(known, self.room[i])

    def limited(self, limits: Mapping[str, Array]) -> Array:
        """Return the rooms with the other VMs of a plan in place, by what shared providers have.

        The rooms themselves stay: another plan has other limits. Shape (hosts,).

        :param limits: by resource class, as ``shared_providers.shared_limits`` returns them
        """
        room = self.room
        for name, limit in limits.items():
            self.shared[name] = np.minimum(self.shared.get(name, limit), limit)
            room = np.minimum(room, limit)
        return room
