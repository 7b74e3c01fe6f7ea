"""What hosts have and what is taken of it, in bulk from Placement."""

from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

from hpc_sched.snapshot.source.connection import Api

# A list of candidates tells all resources of all providers that have room for what is asked.
# Nearly every host has room for one of these; asked in turn while hosts are missing.
_ASKED = ("VCPU:1", "MEMORY_MB:1", "PCPU:1")
# With fewer missing than this their own calls are faster than one more list.
_FEW = 32
_THREADS = 8


@dataclass(frozen=True, slots=True)
class Amounts:
    """Resource class to amount, with all providers of the host added up."""

    capacity: Mapping[str, float]  # (total - reserved) * allocation ratio
    used: Mapping[str, float]


def read(api: Api, hosts: Sequence[str], progress: Any) -> dict[str, Amounts]:
    """Return the amounts of each host by its uuid; those unknown to Placement are left out.

    The parts of a host (NUMA nodes with PCPU, physical GPUs with VGPU) are providers below it.
    One call for the list of providers, one to three for those with room, two for each provider
    of a host that has none: full in every respect, or bare metal.

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
    told: dict[str, list[Mapping[str, tuple[float, float]]]] = {}
    for asked in _ASKED:
        missing = below.keys() - told.keys()
        if len(missing) <= (0 if asked == _ASKED[0] else _FEW):
            break
        progress(f"what is used: {len(told)}/{len(below)} hosts")
        summaries = api.get("/allocation_candidates", resources=asked)["provider_summaries"]
        fresh: dict[str, list[Mapping[str, tuple[float, float]]]] = {}
        for summary in summaries.values():
            if summary["root_provider_uuid"] in missing:
                fresh.setdefault(summary["root_provider_uuid"], []).append(
                    {
                        name: (amount["capacity"], amount["used"])
                        for name, amount in summary["resources"].items()
                    }
                )
        told |= fresh
    left = sorted(below.keys() - told.keys())
    providers = [(root, uuid) for root in left for uuid in sorted(below[root])]
    with ThreadPoolExecutor(max_workers=_THREADS) as pool:
        answers = pool.map(lambda found: (found[0], _of_provider(api, found[1])), providers)
        for number, (root, amounts) in enumerate(answers, 1):
            told.setdefault(root, []).append(amounts)
            if number % _FEW == 0:
                progress(f"what full hosts have: {number}/{len(providers)}")
    return {root: _sum(parts) for root, parts in sorted(told.items())}


def _of_provider(api: Api, uuid: str) -> Mapping[str, tuple[float, float]]:
    inventories = api.get(f"/resource_providers/{uuid}/inventories")["inventories"]
    usages = api.get(f"/resource_providers/{uuid}/usages")["usages"]
    return {
        name: (
            # As Placement rounds it.
            int((found["total"] - found["reserved"]) * found["allocation_ratio"]),
            usages.get(name, 0),
        )
        for name, found in inventories.items()
    }


def _sum(parts: Iterable[Mapping[str, tuple[float, float]]]) -> Amounts:
    capacity: dict[str, float] = {}
    used: dict[str, float] = {}
    for part in parts:
        for name, (most, taken) in part.items():
            capacity[name] = capacity.get(name, 0) + most
            used[name] = used.get(name, 0) + taken
    return Amounts(dict(sorted(capacity.items())), dict(sorted(used.items())))
