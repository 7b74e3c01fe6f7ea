"""The VMs that a host takes, by brute force over what Placement and Nova's own filters accept.

Reads nothing of the plugin: allocation candidates, inventories and usages from Placement's API,
NUMA cells and PCI devices through the filters and HostState.consume_from_request.
"""

import copy
from collections.abc import Mapping
from typing import Any

from nova import objects
from nova.scheduler import host_manager
from nova.scheduler import utils as scheduler_utils
from nova.scheduler.filters import numa_topology_filter, pci_passthrough_filter

from tests.functional.device_hosts import DeviceHosts

Free = dict[tuple[str, str], int]


class Oracle:
    """The state of a cloud for one request."""

    def __init__(self, cloud: DeviceHosts, spec: objects.RequestSpec) -> None:
        self.spec = spec
        self._cloud = cloud
        self._filters = [
            numa_topology_filter.NUMATopologyFilter(),
            pci_passthrough_filter.PciPassthroughFilter(),
        ]
        wanted = scheduler_utils.resources_from_request_spec(
            cloud.context, spec, cloud.scheduler.host_manager
        )
        answer = self._get(f"/allocation_candidates?{wanted.to_querystring()}")
        summaries = answer["provider_summaries"]
        self.root_of = {uuid: found["root_provider_uuid"] for uuid, found in summaries.items()}
        self.candidates: dict[str, list[Mapping[str, Any]]] = {}
        roots = set(cloud.provider_of.values())
        for found in answer["allocation_requests"]:
            [root] = {self.root_of[uuid] for uuid in found["allocations"]} & roots
            self.candidates.setdefault(root, []).append(found)
        self.free: Free = {}
        for uuid in {one for found in summaries for one in [found]}:
            stock = self._get(f"/resource_providers/{uuid}/inventories")["inventories"]
            used = self._get(f"/resource_providers/{uuid}/usages")["usages"]
            for name, one in stock.items():
                whole = int((one["total"] - one["reserved"]) * one["allocation_ratio"])
                self.free[uuid, name] = whole - used[name]
        self.states = {
            state.nodename: state
            for state in cloud.scheduler.host_manager.get_host_states_by_uuids(
                cloud.context, list(roots), spec
            )
        }

    def _get(self, path: str) -> Mapping[str, Any]:
        return self._cloud.cloud.placement.get(path, version="1.36").body

    def rooms(self, most: int) -> dict[str, int]:
        """Return the VMs, up to a number, that each host takes if no other host takes any."""
        return {
            host: self._deepest(
                self.candidates.get(uuid, []), self.free, self.states[host], self.spec, most
            )
            for host, uuid in self._cloud.provider_of.items()
        }

    def _deepest(
        self,
        candidates: list[Mapping[str, Any]],
        free: Free,
        state: host_manager.HostState,
        spec: objects.RequestSpec,
        most: int,
    ) -> int:
        best = 0
        for candidate in candidates:
            if best == most:
                return best
            left = dict(free)
            for uuid, found in candidate["allocations"].items():
                for name, amount in found["resources"].items():
                    left[uuid, name] -= amount
            if min(left.values()) < 0:
                continue
            taken, asked = copy.deepcopy(state), spec.obj_clone()
            taken.allocation_candidates = [candidate]
            if not all(one.host_passes(taken, asked) for one in self._filters):
                continue
            for group in asked.requested_resources:
                group.provider_uuids = candidate["mappings"][group.requester_id]
            taken.consume_from_request(asked)
            best = max(best, 1 + self._deepest(candidates, left, taken, asked, most - 1))
        return best
