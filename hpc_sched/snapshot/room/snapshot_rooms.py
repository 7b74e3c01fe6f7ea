"""The VMs of one request that the hypervisors of a snapshot take."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from hpc_sched.core.arrays import Array, Mask
from hpc_sched.core.capacity import UNBOUNDED
from hpc_sched.core.room import tree_candidates
from hpc_sched.core.room.candidate_enumeration import AllocationCandidate
from hpc_sched.core.room.claim_search import claim_order
from hpc_sched.core.room.device_fitting import DeviceFitting
from hpc_sched.core.room.host_caps import RequestCaps
from hpc_sched.core.room.hypervisor_rooms import HypervisorRooms
from hpc_sched.core.room.provider_tree import ProviderTree
from hpc_sched.core.room.providers import Amounts, Inventory, most_by_class, times
from hpc_sched.core.room.resource_request import ResourceRequest
from hpc_sched.snapshot.cloud import Cloud
from hpc_sched.snapshot.room import filter_caps, flavor_request, pci_aliases, provider_trees
from hpc_sched.snapshot.snapshot_model import Flavor, Hypervisor, Server, Snapshot
from hpc_sched.topology.grouping import by_key

_PROCESSORS = ("VCPU", "PCPU")


@dataclass(frozen=True, slots=True, eq=False)
class _Kind:
    """Hypervisors that have the same, with the same in use: they take the same VMs."""

    tree: ProviderTree  # of the first one
    candidates: Sequence[AllocationCandidate]  # in it
    most: Mapping[str, int]  # VMs by resource class, if no other class counted
    room: int  # VMs; a bound if they must be fitted too


class SnapshotRooms(HypervisorRooms):
    """The room on a snapshot's hypervisors.

    What Placement allocates is counted at once, for each hypervisor alone. What hypervisors share,
    and NUMA cells and PCI devices, which Nova's own code fits, are verified for a plan.
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
        caps: RequestCaps | None = None,
    ) -> None:
        """Count the VMs. Linear in hypervisors.

        :param among: those that take new VMs
        :param least: VMs that each takes in any case
        """
        self._demand = request.demand
        self._trees = trees
        sharing = {
            (provider.uuid, name)
            for tree in trees
            for provider in tree.shared
            for name in provider.inventories
        }
        kinds: dict[object, _Kind] = {}
        self._kinds: list[_Kind] = []
        for node, tree, is_open in zip(nodes, trees, among.tolist(), strict=True):
            key = bool(node.providers), is_open and tree.kind()
            if key not in kinds:
                kinds[key] = _Kind(tree, [], {}, 0)
                if is_open:
                    kinds[key] = _kind(node, tree, request, is_fitted=fitting is not None)
            self._kinds.append(kinds[key])
        rooms = np.array([kind.room for kind in self._kinds], dtype=np.int64)
        known = np.full(len(rooms), UNBOUNDED) if fitting is None else least.copy()
        super().__init__(
            np.maximum(rooms, least),
            known,
            least,
            sharing=sharing,
            fitting=fitting,
            devices=[node.devices for node in nodes],
            caps=caps,
        )

    @property
    def are_devices_fitted(self) -> bool:
        """True if NUMA cells and PCI devices are fitted on all hypervisors with room."""
        unread = [devices is None for devices in self._devices]
        return self._fitting is not None and not bool((self.room[unread] > 0).any())

    @property
    def is_exact(self) -> bool:
        """True if the rooms hold for all hypervisors together, whatever is planned."""
        return self._fitting is None and not any(
            self._sharing & one.amounts.keys()
            for kind in set(self._kinds)
            for one in kind.candidates
        )

    def candidates(self, i: int) -> Sequence[AllocationCandidate]:
        """Return the allocation candidates of a hypervisor."""
        kind, own = self._kinds[i], self._trees[i].own
        uuids = {old.uuid: new.uuid for old, new in zip(kind.tree.own, own, strict=False)}
        return [tree_candidates.renamed(one, uuids) for one in kind.candidates]

    def _by_class(self) -> dict[str, Array]:
        return {
            name: np.array(
                [min(kind.most.get(name, UNBOUNDED), UNBOUNDED) for kind in self._kinds],
                dtype=np.int64,
            )
            for name in self._demand
        }

    def _amounts(self, i: int) -> list[Amounts]:
        return [one.amounts for one in self.candidates(i)]

    def _mappings(self, i: int) -> list[Mapping[str, tuple[str, ...]]]:
        return [one.mappings for one in self.candidates(i)]

    def _free(self, i: int, _candidates: Sequence[Amounts]) -> dict[Inventory, int]:
        return self._trees[i].free()

    def _shared_by(self, i: int) -> frozenset[Inventory]:
        return frozenset(
            key for one in self._kinds[i].candidates for key in one.amounts if key in self._sharing
        )


def of(
    cloud: Cloud,
    flavor: Flavor,
    least: Array,
    *,
    boots_from_volume: bool = False,
    moves: Iterable[Server] = (),
    is_whole: bool = True,
) -> SnapshotRooms:
    """Return the VMs of a flavor that fit into each hypervisor's free resources.

    :param least: VMs that each hypervisor takes in any case
    :param moves: VMs whose resources count as free
    :param is_whole: whether all VMs that are planned are created at once
    """
    snapshot, moves = cloud.snapshot, tuple(moves)
    held = by_key(
        (vm.place, _requested(snapshot, vm.flavor, vm.boots_from_volume))
        for vm in moves
        if vm.place is not None
    )
    return SnapshotRooms(
        snapshot.hypervisors,
        provider_trees.of(snapshot, held),
        _requested(snapshot, flavor, boots_from_volume),
        among=np.array([cloud.takes_vms(node) for node in snapshot.hypervisors], dtype=np.bool_),
        least=least,
        fitting=None if cloud.fittings is None else cloud.fittings(flavor, snapshot),
        caps=filter_caps.of(cloud, moves, is_whole=is_whole),
    )


def empty_room(snapshot: Snapshot, flavor: Flavor, boots_from_volume: bool) -> Array:
    """Return the VMs that each hypervisor would take without any VM. Shape (hypervisors,)."""
    nodes = snapshot.hypervisors
    return SnapshotRooms(
        nodes,
        provider_trees.empty(provider_trees.of(snapshot)),
        _requested(snapshot, flavor, boots_from_volume),
        among=np.ones(len(nodes), dtype=np.bool_),
        least=np.zeros(len(nodes), dtype=np.int64),
    ).room


def _requested(snapshot: Snapshot, flavor: Flavor, boots_from_volume: bool) -> ResourceRequest:
    return flavor_request.resource_request(
        flavor,
        boots_from_volume=boots_from_volume,
        devices=pci_aliases.groups_of(flavor, snapshot),
        has_tpm_secrets="hw:tpm_version" in flavor.extra_specs
        and any(
            trait.startswith(flavor_request.TPM_SECRETS)
            for trait in pci_aliases.known_traits(snapshot)
        ),
    )


def _kind(
    node: Hypervisor, tree: ProviderTree, request: ResourceRequest, *, is_fitted: bool
) -> _Kind:
    """Return the kind of a hypervisor; its room is a bound if claims must be fitted too."""
    if not node.providers:
        request = provider_trees.for_flat(request, tree)
    # Nova gives a host the candidates that take something of its root provider.
    found = [
        one
        for one in tree_candidates.candidates(tree, request)
        if any(uuid == tree.root.uuid for uuid, _ in one.amounts)
    ]
    amounts, free = [one.amounts for one in found], tree.free()
    most = most_by_class(free, amounts)
    room = bound = min([UNBOUNDED, *most.values()]) if found else 0
    names = {name for provider in tree.own for name in provider.inventories}
    if names.isdisjoint(_PROCESSORS):
        room = min(bound, 1)  # bare metal
    elif len(found) == 1:
        room = min(times(free, amounts[0]), bound)
    elif not is_fitted:
        room = len(claim_order(amounts, free, bound))
    return _Kind(tree, found, most, room)
