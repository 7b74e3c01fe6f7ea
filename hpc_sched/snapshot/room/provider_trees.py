"""The provider trees of a snapshot's hypervisors."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from hpc_sched.core.room.candidate_enumeration import candidates
from hpc_sched.core.room.provider_tree import Provider, ProviderInventory, ProviderTree
from hpc_sched.core.room.resource_request import ResourceRequest
from hpc_sched.snapshot.snapshot_model import Hypervisor, Snapshot

Place = tuple[str, str]  # service host and nodename


def of(
    snapshot: Snapshot, held: Mapping[Place, Sequence[ResourceRequest]] | None = None
) -> list[ProviderTree]:
    """Return the tree of each hypervisor, in their order.

    :param held: requests of VMs whose allocations count as free. Placement was not asked which
        providers they use: each gets the first possible ones that have this much in use.
    """
    nodes = snapshot.hypervisors
    own = [node.providers or (_flat(node),) for node in nodes]
    shared: tuple[Provider, ...] = snapshot.shared_providers
    for i, node in enumerate(nodes):
        for request in (held or {}).get((node.host, node.nodename), ()):
            tree = ProviderTree.of(own[i], shared)
            request = request if node.providers else for_flat(request, tree)
            found = candidates(tree.in_use(), replace(request, root=ResourceRequest(()).root), 1)
            if found:
                tree = tree.less(found[0].amounts)
                own[i] = tree.own
                changed = {provider.uuid: provider for provider in tree.shared}
                shared = tuple(changed.get(provider.uuid, provider) for provider in shared)
    return [ProviderTree.of(providers, shared) for providers in own]


def empty(trees: Iterable[ProviderTree]) -> list[ProviderTree]:
    """Return trees as if no VM were there."""
    return [ProviderTree(unused(tree.own), unused(tree.shared)) for tree in trees]


def unused(providers: Iterable[Provider]) -> tuple[Provider, ...]:
    """Return providers as if no VM were there."""
    return tuple(
        provider.with_used(dict.fromkeys(provider.inventories, 0)) for provider in providers
    )


def copied(node: Hypervisor, name: str) -> tuple[Provider, ...]:
    """Return a hypervisor's providers without VMs, for another one."""
    return tuple(
        replace(
            provider,
            uuid=f"{name}/{provider.uuid}",
            parent=None if provider.parent is None else f"{name}/{provider.parent}",
        )
        for provider in unused(node.providers)
    )


def for_flat(request: ResourceRequest, tree: ProviderTree) -> ResourceRequest:
    """Return what of a request a tree of one provider, made of sums, can answer.

    Traits and request groups are ignored; disk may come from a shared provider.
    """
    [group] = request.without_groups().groups
    known = tree.root.inventories
    resources = {n: v for n, v in group.resources.items() if n != "DISK_GB" or n in known}
    return ResourceRequest((replace(group, resources=resources),))


def _flat(node: Hypervisor) -> Provider:
    """Return the sums over a hypervisor's providers as one provider."""
    return Provider(
        f"{node.host}/{node.nodename}",
        inventories={
            name: ProviderInventory(math.floor(most), math.ceil(node.used.get(name, 0)))
            for name, most in node.capacity.items()
        },
    )
