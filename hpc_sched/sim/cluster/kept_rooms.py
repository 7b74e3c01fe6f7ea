"""Room for VMs of each size: kept, and corrected on the hosts that have changed."""

from dataclasses import dataclass

import numpy as np

from hpc_sched.core.arrays import Array, Mask
from hpc_sched.core.capacity import UNBOUNDED, capacities
from hpc_sched.sim.cluster.changed_hosts import ChangedHosts
from hpc_sched.topology.model import Topology

_MOST = 128  # sizes that are kept
_FEW = 12  # hosts that are corrected sooner one by one than as arrays

Size = tuple[int, int]  # vcpus and MB of one VM


@dataclass(slots=True, eq=False)
class Room:
    """VMs of one size that hosts take; valid until something is taken or released."""

    per_host: Array  # read-only. Shape (hosts,)
    by_leaf: Array  # 0 for switches above leaves, read-only. Shape (switches,)
    total: int


class _Kept:
    """The room of one size, and the moment at which it was right."""

    def __init__(self, rooms: "KeptRooms", size: Size) -> None:
        self._rooms, self._size = rooms, size
        # False for hosts that are too small for a VM, if empty. Shape (hosts,)
        self._fits = rooms.fits(size)
        self._moment = rooms.changes.now
        self._up_changes = rooms.up_changes
        self._compute()

    def corrected(self) -> Room:
        """Return the room now. O(hosts that have changed)."""
        changes = self._rooms.changes
        if self._moment != changes.now:
            hosts = changes.since(self._moment)
            if hosts is None or self._up_changes != self._rooms.up_changes:
                self._up_changes = self._rooms.up_changes
                self._compute()
            elif len(hosts) <= _FEW:
                for host in hosts.tolist():
                    self._correct_one(host)
            else:
                self._correct(hosts)
            self._moment = changes.now
        return self._room

    def _compute(self) -> None:
        rooms = self._rooms
        self._per_host = capacities(rooms.free, self._size)
        self._accepts = rooms.up & self._fits
        self._per_host[~self._accepts] = 0
        self._by_leaf = np.zeros(rooms.switches, dtype=np.int64)
        np.add.at(self._by_leaf, rooms.leaf, self._per_host)
        per_host, by_leaf = self._per_host.view(), self._by_leaf.view()
        per_host.setflags(write=False)  # shared by all policies
        by_leaf.setflags(write=False)
        self._room = Room(per_host, by_leaf, int(by_leaf.sum()))

    def _correct(self, hosts: Array) -> None:
        rooms = self._rooms
        now = capacities(rooms.free[hosts], self._size)
        now *= self._accepts[hosts]
        change = now - self._per_host[hosts]
        self._per_host[hosts] = now
        np.add.at(self._by_leaf, rooms.leaf[hosts], change)
        self._room.total += int(change.sum())

    def _correct_one(self, host: int) -> None:
        rooms, now = self._rooms, 0
        if self._accepts.item(host):
            now = host_room(rooms.free, host, self._size)
        change = now - self._per_host.item(host)
        self._per_host[host] = now
        self._by_leaf[rooms.leaf.item(host)] += change
        self._room.total += change


def host_room(free: Array, host: int, size: Size) -> int:
    """Return how many VMs fit on one host, as ``core.capacity`` does for many."""
    room = UNBOUNDED
    for resource, amount in enumerate(size):
        if amount > 0:
            room = min(room, free.item(host, resource) // amount)
    return max(room, 0)


class KeptRooms:
    """Rooms of the latest sizes of VMs."""

    def __init__(
        self,
        free: Array,
        up: Mask,
        most_of_vm: Array | None,
        topology: Topology,
        changes: ChangedHosts,
    ) -> None:
        """Start without any size.

        :param free: vcpus and MB; changed by the owner, and noted in ``changes``
        :param up: False for hosts that take no VM; changed, and counted in ``up_changes``
        :param most_of_vm: vcpus and MB that one VM gets of each host at most; None: all
        """
        self.free, self.up, self.changes = free, up, changes
        self.up_changes = 0  # times that ``up`` has changed
        self.leaf, self.switches = topology.leaf_index, len(topology.switches)
        self._most_of_vm = most_of_vm
        self._by_size: dict[Size, _Kept] = {}

    def fits(self, size: Size) -> Mask:
        """True for hosts that are not too small for a VM, if empty. Shape (hosts,)."""
        if self._most_of_vm is None:
            return np.ones(len(self.free), dtype=np.bool_)
        fits: Mask = np.all(self._most_of_vm >= size, axis=1)
        return fits

    def of(self, size: Size) -> Room:
        """Return the room for VMs of a size. O(hosts changed since it was read, or hosts)."""
        kept = self._by_size.get(size)
        if kept is None:
            if len(self._by_size) >= _MOST:
                # The one that was read first: any will do, and a trace has few sizes.
                del self._by_size[next(iter(self._by_size))]
            kept = self._by_size[size] = _Kept(self, size)
        return kept.corrected()
