"""The resource providers of hosts, read from Placement's API.

Calls: one list of all providers, one of those that share, and one for each of their aggregates;
one to three for the usage of providers; one for each kind of device of which a VM may get more
than one; three for each provider of a host that is full, and four for each that shares.
"""

from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

from hpc_sched.core.room.provider_tree import SHARES, Provider, ProviderInventory
from hpc_sched.snapshot.source.connection import Api
from hpc_sched.topology.grouping import by_key

Progress = Callable[[str], None]
Json = Mapping[str, Any]
Stocks = Mapping[str, ProviderInventory]  # by resource class

# Allocation candidates come with all resources of each provider that has room for the request.
# Nearly every host has room for one of these, requested in turn while hosts are missing.
ASKED = ("VCPU:1", "MEMORY_MB:1", "PCPU:1")
# For fewer missing hosts, calls for each of them are faster than one more list.
FEW = 32
_THREADS = 8
# Classes of which one VM gets up to the total, as nova-compute reports them.
_OF_HOSTS = frozenset({"VCPU", "PCPU", "MEMORY_MB", "DISK_GB"})


def read(
    api: Api, hosts: Mapping[str, Mapping[str, int]], progress: Progress
) -> tuple[dict[str, tuple[Provider, ...]], tuple[Provider, ...]]:
    """Return the tree of each host's uuid, and the providers that share via aggregates, by uuid.

    In a tree the root is first, then by uuid. Hosts that Placement does not have are left out.

    :param hosts: uuid to the total of a resource class, which one VM gets at most
    """
    progress("resource providers")
    every = {str(one["uuid"]): one for one in api.get("/resource_providers")["resource_providers"]}
    parents = {uuid: one.get("parent_provider_uuid") for uuid, one in every.items()}
    # NUMA nodes and physical GPUs are below the compute node.
    roots = ((one.get("root_provider_uuid") or uuid, uuid) for uuid, one in every.items())
    below = by_key((root, uuid) for root, uuid in roots if root in hosts)
    shared, members = _sharing(api, parents)
    known = _with_room(api, below, progress)
    units = _units(api, known.values())
    providers = {uuid: _bounded(one, hosts.get(uuid, {}), units) for uuid, one in known.items()}
    # Full hosts and bare metal have no room: they are read one by one.
    left = [uuid for root in sorted(below) for uuid in sorted(below[root]) if root not in known]
    with ThreadPoolExecutor(max_workers=_THREADS) as pool:
        answers = pool.map(lambda uuid: _provider(api, uuid, parents[uuid]), left)
        for number, found in enumerate(answers, 1):
            providers[found.uuid] = found
            if number % FEW == 0:
                progress(f"what full hosts have: {number}/{len(left)}")
    return {
        root: tuple(
            replace(providers[uuid], aggregates=tuple(sorted({*members.get(uuid, ())})))
            for uuid in sorted(uuids, key=lambda uuid: (uuid != root, uuid))
            if uuid in providers
        )
        for root, uuids in sorted(below.items())
    }, shared


def _sharing(
    api: Api, parents: Mapping[str, str | None]
) -> tuple[tuple[Provider, ...], dict[str, list[str]]]:
    """Return the sharing providers, and the aggregates that they have of every provider."""
    shared = []
    for found in api.get("/resource_providers", required=SHARES)["resource_providers"]:
        uuid = str(found["uuid"])
        aggregates = api.get(f"/resource_providers/{uuid}/aggregates")["aggregates"]
        provider = _provider(api, uuid, parents.get(uuid))
        shared.append(replace(provider, aggregates=tuple(sorted(map(str, aggregates)))))
    members = by_key(
        (str(found["uuid"]), aggregate)
        for aggregate in sorted({one for provider in shared for one in provider.aggregates})
        for found in api.get("/resource_providers", member_of=aggregate)["resource_providers"]
    )
    return tuple(sorted(shared, key=lambda provider: provider.uuid)), members


def _with_room(
    api: Api, below: Mapping[str, Iterable[str]], progress: Progress
) -> dict[str, Provider]:
    """Return the providers of hosts that have any room, by uuid; units are not known."""
    known: dict[str, Provider] = {}
    for asked in ASKED:
        missing = below.keys() - known.keys()
        if len(missing) <= (0 if asked == ASKED[0] else FEW):
            break
        progress(f"what is used: {len(below) - len(missing)}/{len(below)} hosts")
        summaries = api.get("/allocation_candidates", resources=asked)["provider_summaries"]
        for uuid, found in summaries.items():
            if found["root_provider_uuid"] in missing:
                known[str(uuid)] = Provider(
                    str(uuid),
                    found["parent_provider_uuid"],
                    {
                        str(name): ProviderInventory(int(stock["capacity"]), int(stock["used"]))
                        for name, stock in sorted(found["resources"].items())
                    },
                    tuple(sorted(map(str, found["traits"]))),
                )
    return known


def _kind(provider: Provider) -> tuple[object, ...]:
    """Return what providers with equal units have in common; empty if units do not matter."""
    several = [
        (name, found.capacity)
        for name, found in provider.inventories.items()
        if name not in _OF_HOSTS and found.capacity > 1
    ]
    return (tuple(several), provider.traits) if several else ()


def _units(api: Api, providers: Iterable[Provider]) -> dict[tuple[object, ...], Stocks]:
    """Return the inventories of one provider of each kind of device."""
    first = {kind: provider.uuid for provider in providers if (kind := _kind(provider))}
    with ThreadPoolExecutor(max_workers=_THREADS) as pool:
        found = pool.map(lambda uuid: _inventories(api, uuid, {}), first.values())
        return dict(zip(first, found, strict=True))


def _bounded(
    provider: Provider, totals: Mapping[str, int], units: Mapping[tuple[object, ...], Stocks]
) -> Provider:
    """Return a provider with what one VM gets of it at most.

    That is no more than the total of an overcommitted class, and of devices their units.

    :param totals: of the classes of a host, if the provider is its root
    """
    of_kind = units.get(_kind(provider), {})
    inventories = dict(provider.inventories)
    for name, found in inventories.items():
        if name in totals and totals[name] < found.capacity:
            inventories[name] = replace(found, max_unit=totals[name])
        elif name in of_kind and name not in _OF_HOSTS:
            inventories[name] = replace(of_kind[name], capacity=found.capacity, used=found.used)
    return replace(provider, inventories=inventories)


def _provider(api: Api, uuid: str, parent: str | None) -> Provider:
    usages = api.get(f"/resource_providers/{uuid}/usages")["usages"]
    traits = api.get(f"/resource_providers/{uuid}/traits")["traits"]
    return Provider(uuid, parent, _inventories(api, uuid, usages), tuple(sorted(map(str, traits))))


def _inventories(api: Api, uuid: str, usages: Json) -> Stocks:
    inventories = api.get(f"/resource_providers/{uuid}/inventories")["inventories"]
    return {
        str(name): _inventory(stock, int(usages.get(name, 0)))
        for name, stock in sorted(inventories.items())
    }


def _inventory(stock: Json, used: int) -> ProviderInventory:
    # Rounded as in Placement.
    capacity = int((stock["total"] - stock["reserved"]) * stock["allocation_ratio"])
    most = int(stock["max_unit"])
    return ProviderInventory(
        capacity,
        used,
        int(stock["min_unit"]),
        most if most < capacity else None,
        int(stock["step_size"]),
    )
