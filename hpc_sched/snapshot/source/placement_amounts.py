"""Capacity and usage of hosts, read in bulk from Placement."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from hpc_sched.snapshot.source.connection import Api

# Allocation candidates come with all resources of each provider that has room for the request.
# Nearly every host has room for one of these, requested in turn while hosts are missing.
ASKED = ("VCPU:1", "MEMORY_MB:1", "PCPU:1")
# For fewer missing hosts, calls for each of them are faster than one more list.
FEW = 32
_THREADS = 8

# Resource class to capacity and usage.
_Resources = Mapping[str, tuple[float, float]]


@dataclass(frozen=True, slots=True)
class Amounts:
    """Resource class to amount, summed over all providers of a host."""

    capacity: Mapping[str, float]  # (total - reserved) * allocation ratio
    used: Mapping[str, float]


def read(api: Api, hosts: Sequence[str], progress: Callable[[str], None]) -> dict[str, Amounts]:
    """Return the amounts of each host by its uuid, without hosts that Placement does not have.

    Parts of a host, such as NUMA nodes with PCPU and physical GPUs with VGPU, are providers below
    it. One call for the list of providers, one to three for those with room, two for each
    provider of a host without room: a full one, or bare metal.

    :param hosts: uuids of the root providers, which are those of the compute nodes
    :raises exceptions.SnapshotError: naming the call that failed
    """
    progress("resource providers")
    wanted = set(hosts)
    below: dict[str, list[str]] = {}
    for provider in api.get("/resource_providers")["resource_providers"]:
        root = provider.get("root_provider_uuid") or provider["uuid"]
        if root in wanted:
            below.setdefault(root, []).append(provider["uuid"])
    found: dict[str, list[_Resources]] = {}
    for asked in ASKED:
        missing = below.keys() - found.keys()
        if len(missing) <= (0 if asked == ASKED[0] else FEW):
            break
        progress(f"what is used: {len(found)}/{len(below)} hosts")
        summaries = api.get("/allocation_candidates", resources=asked)["provider_summaries"]
        for summary in summaries.values():
            root = summary["root_provider_uuid"]
            if root in missing:
                resources = summary["resources"].items()
                found.setdefault(root, []).append(
                    {name: (amount["capacity"], amount["used"]) for name, amount in resources}
                )
    left = sorted(below.keys() - found.keys())
    providers = [(root, uuid) for root in left for uuid in sorted(below[root])]
    with ThreadPoolExecutor(max_workers=_THREADS) as pool:
        answers = pool.map(lambda provider: _of_provider(api, provider[1]), providers)
        for number, ((root, _), resources) in enumerate(zip(providers, answers, strict=True), 1):
            found.setdefault(root, []).append(resources)
            if number % FEW == 0:
                progress(f"what full hosts have: {number}/{len(providers)}")
    return {root: _sum(parts) for root, parts in sorted(found.items())}


def _of_provider(api: Api, uuid: str) -> _Resources:
    inventories = api.get(f"/resource_providers/{uuid}/inventories")["inventories"]
    usages = api.get(f"/resource_providers/{uuid}/usages")["usages"]
    return {
        name: (
            # Rounded as in Placement.
            int((found["total"] - found["reserved"]) * found["allocation_ratio"]),
            usages.get(name, 0),
        )
        for name, found in inventories.items()
    }


def _sum(parts: Iterable[_Resources]) -> Amounts:
    capacity: dict[str, float] = {}
    used: dict[str, float] = {}
    for part in parts:
        for name, (most, taken) in part.items():
            capacity[name] = capacity.get(name, 0) + most
            used[name] = used.get(name, 0) + taken
    return Amounts(dict(sorted(capacity.items())), dict(sorted(used.items())))
