"""The VMs of one request that the hypervisors of a snapshot take."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from hpc_sched.core.arrays import Array, Mask
from hpc_sched.core.capacity import UNBOUNDED
from hpc_sched.core.room import candidate_enumeration
from hpc_sched.core.room.candidate_enumeration import AllocationCandidate
from hpc_sched.core.room.claim_search import MAX_FITS, claim_order, fitted_order
from hpc_sched.core.room.provider_tree import ProviderTree
from hpc_sched.core.room.providers import Amounts, Inventory, most_by_class, times, without
from hpc_sched.core.room.resource_request import ResourceRequest
from hpc_sched.core.room.shared_providers import shared_limits
from hpc_sched.core.room.verified_rooms import VerifiedRooms
from hpc_sched.snapshot.room import provider_trees
from hpc_sched.snapshot.room.device_fitting import DeviceFitting
from hpc_sched.snapshot.snapshot_model import Hypervisor

_PROCESSORS = ("VCPU", "PCPU")


@dataclass(frozen=True, slots=True, eq=False)
class _Kind:
    """Hypervisors that have the same, with the same in use: they take the same VMs."""

    tree: ProviderTree  # of the first one
    candidates: Sequence[AllocationCandidate]  # in it
    most: Mapping[str, int]  # VMs by resource class, if no other class counted
    room: int  # VMs; a bound if they must be fitted too


class SnapshotRooms:
    """The room on a snapshot's hypervisors, as a ``core.room.verification.RoomCheck``.

    What Placement allocates is counted at once, for each hypervisor alone. Two things depend on
    the plan, and are verified for it: what hypervisors share, and NUMA cells and PCI devices,
    which Nova's own code fits as in the scheduler.

    Arrays are in the order of the snapshot's hypervisors.
    """

    def __init__(
        self,
        nodes: Sequence[Hypervisor],
        trees: Sequence[ProviderTree],
        request: ResourceRequest,
        *,
        among: Mask,
        least: Array,
        fitting: DeviceFitting | None = None,
    ) -> None:
        """Count the VMs. Linear in hypervisors.

        :param among: those that take new VMs
        :param least: VMs that each takes in any case
        """
        self._nodes = nodes
        self._fitting = fitting
        self._least = least
        self._fits = 0
        self._demand = request.demand
        self._trees = trees
        self._sharing = {
            (provider.uuid, name): found.capacity - found.used
            for tree in trees
            for provider in tree.shared
            for name, found in provider.inventories.items()
        }
        kinds: dict[object, _Kind] = {}
        self._kinds: list[_Kind] = []
        for node, tree, is_open in zip(nodes, trees, among.tolist(), strict=True):
            key = bool(node.providers), is_open and tree.kind()
            if key not in kinds:
                kinds[key] = self._kind(node, tree, request) if is_open else _Kind(tree, [], {}, 0)
            self._kinds.append(kinds[key])
        rooms = np.array([kind.room for kind in self._kinds], dtype=np.int64)
        self._rooms = VerifiedRooms(np.maximum(rooms, least), least.copy())

    @property
    def room(self) -> Array:
        """The VMs that each hypervisor takes at most. Shape (hypervisors,)."""
        return self._rooms.room

    @property
    def are_devices_fitted(self) -> bool:
        """True if NUMA cells and PCI devices are fitted on all hypervisors with room."""
        unread = [node.devices is None for node in self._nodes]
        return self._fitting is not None and not bool((self.room[unread] > 0).any())

    @property
    def is_exact(self) -> bool:
        """True if the rooms hold for all hypervisors together, whatever is planned."""
        return self._fitting is None and not any(
            self._sharing.keys() & one.amounts.keys()
            for kind in set(self._kinds)
            for one in kind.candidates
        )

    def verified(self, planned: Array) -> Array:
        """Return the VMs that each hypervisor takes with all others of a plan.

        Exact where some are planned.
        """
        if self._fitting is not None:
            unsure = self._rooms.unverified(planned)
            if self._rooms.verify(unsure, planned, self._fitted):
                self._rooms.verify_all(self._fitted, lambda: self._fits >= MAX_FITS)
        # What a hypervisor does not take after all is left to the others.
        planned = np.minimum(planned, self.room)
        limits = shared_limits(planned, self._shared_by, self._claims)
        return np.maximum(self._rooms.limited(limits), self._least)

    def by_resource(self) -> Mapping[str, Array]:
        """Return the VMs that each hypervisor takes if one resource alone counted."""
        found = {}
        for name in self._demand:
            numbers = [min(kind.most.get(name, UNBOUNDED), UNBOUNDED) for kind in self._kinds]
            found[name] = np.array(numbers, dtype=np.int64)
        for name, limit in self._rooms.shared.items():
            found[name] = np.minimum(found.get(name, limit), limit)
        if self._fitting is not None:
            found[self._fitting.name] = self.room
        return found

    def candidates(self, i: int) -> Sequence[AllocationCandidate]:
        """Return the allocation candidates of a hypervisor."""
        kind, own = self._kinds[i], self._trees[i].own
        uuids = {old.uuid: new.uuid for old, new in zip(kind.tree.own, own, strict=False)}
        return [
            AllocationCandidate(
                {(uuids.get(uuid, uuid), name): n for (uuid, name), n in one.amounts.items()},
                {
                    suffix: tuple(uuids.get(uuid, uuid) for uuid in found)
                    for suffix, found in one.mappings.items()
                },
            )
            for one in kind.candidates
        ]

    def _kind(self, node: Hypervisor, tree: ProviderTree, request: ResourceRequest) -> _Kind:
        if not node.providers:
            request = provider_trees.for_flat(request, tree)
        # Nova gives a host the candidates that take something of its root provider.
        found = [
            one
            for one in candidate_enumeration.candidates(tree, request)
            if any(uuid == tree.root.uuid for uuid, _ in one.amounts)
        ]
        amounts, free = [one.amounts for one in found], tree.free()
        most = most_by_class(free, amounts)
        bound = min([UNBOUNDED, *most.values()]) if found else 0
        names = {name for provider in tree.own for name in provider.inventories}
        if names.isdisjoint(_PROCESSORS):
            room = min(bound, 1)  # bare metal
        elif len(found) == 1:
            room = min(times(free, amounts[0]), bound)
        elif self._fitting is not None:
            room = bound
        else:
            room = len(claim_order(amounts, free, bound))
            if len(found) == candidate_enumeration.MOST and room < bound:
                room = max(room, _one_by_one(tree, request, bound))
        return _Kind(tree, found, most, room)

    def _fitted(self, i: int, most: int) -> int:
        fitting, found = self._fitting, self.candidates(i)
        assert fitting is not None
        amounts, free = [one.amounts for one in found], self._trees[i].free()
        devices = self._nodes[i].devices
        if devices is None:
            return max(len(claim_order(amounts, free, most)), int(self._least[i]))

        def fit(use: Any, number: int) -> Any:
            self._fits += 1
            return fitting.claim(use, found[number].mappings)

        order = fitted_order(amounts, free, most, fitting.start(devices), fit)
        return max(len(order), int(self._least[i]))

    def _shared_by(self, i: int) -> frozenset[Inventory]:
        found = self._kinds[i].candidates
        return frozenset(key for one in found for key in one.amounts if key in self._sharing)

    def _claims(self, i: int, number: int, taken: Amounts) -> list[Amounts]:
        amounts = [one.amounts for one in self.candidates(i)]
        free = without(self._trees[i].free(), taken)
        return [amounts[j] for j in claim_order(amounts, free, number)]


def _one_by_one(tree: ProviderTree, request: ResourceRequest, most: int) -> int:
    """Return the VMs that a tree takes if each one gets the first candidate that is left."""
    for number in range(most):
        found = candidate_enumeration.candidates(tree, request, 1)
        if not found:
            return number
        tree = tree.less({key: -amount for key, amount in found[0].amounts.items()})
    return most
