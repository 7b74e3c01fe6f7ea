"""Whether an instance fits a host's NUMA cells and PCI devices, by Nova's own code."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

from nova import exception, objects
from nova.pci.stats import PciDeviceStats
from nova.scheduler import host_manager
from nova.virt import hardware


@dataclass(frozen=True, slots=True)
class DeviceUse:
    """The NUMA cells and PCI devices of one host, once some instances are placed there."""

    numa_topology: objects.NUMATopology | None
    pci_stats: PciDeviceStats | None
    # As Nova hands it from VM to VM of a request: with the page size that the last one got.
    wanted: objects.InstanceNUMATopology | None
    limits: objects.NUMATopologyLimits | None  # of the host; None without cells


@dataclass(frozen=True, slots=True)
class NovaFitting:
    """What one VM of a request wants of NUMA cells and PCI devices."""

    numa_topology: objects.InstanceNUMATopology | None
    pci_requests: Sequence[objects.InstancePCIRequest]
    network_metadata: objects.NetworkMetadata | None

    @classmethod
    def of(cls, spec: objects.RequestSpec) -> Self | None:
        """Return what a request wants, or None if it wants neither cells nor devices."""
        numa = spec.numa_topology if "numa_topology" in spec else None
        found = spec.pci_requests if "pci_requests" in spec else None
        requests = tuple(found.requests) if found else ()
        if numa is None and not requests:
            return None
        network = spec.network_metadata if "network_metadata" in spec else None
        # Nova's fitting changes the object that it is given.
        return cls(None if numa is None else numa.obj_clone(), requests, network)

    @property
    def name(self) -> str:
        """What is wanted, for the reason of a refusal."""
        wanted = {"NUMA cells": self.numa_topology is not None, "PCI devices": self.pci_requests}
        return " and ".join(name for name in wanted if wanted[name])

    def start(self, state: host_manager.HostState) -> DeviceUse:
        """Return the present use of a host, which the request's claims have changed already."""
        limits = None
        if self.numa_topology is not None and state.numa_topology:
            limits = objects.NUMATopologyLimits(
                cpu_allocation_ratio=state.cpu_allocation_ratio,
                ram_allocation_ratio=state.ram_allocation_ratio,
            )
            if self.network_metadata is not None:
                limits.network_metadata = self.network_metadata
        return DeviceUse(state.numa_topology, state.pci_stats, self.numa_topology, limits)

    def claim(self, use: DeviceUse, mappings: Mapping[str, Any]) -> DeviceUse | None:
        """Return the use after one more VM, or None if it does not fit.

        As PciPassthroughFilter, NUMATopologyFilter and HostState.consume_from_request do.

        :param mappings: of the allocation candidate: request group to providers
        """
        requests = list(self.pci_requests) or None
        topology, stats, fitted = use.numa_topology, use.pci_stats, None
        if use.wanted is not None:
            if not topology:
                return None
            fitted = hardware.numa_fit_instance_to_host(
                topology,
                use.wanted.obj_clone(),
                limits=use.limits,
                pci_requests=requests,
                pci_stats=stats,
                provider_mapping=mappings,
            )
            if fitted is None:
                return None
            topology = hardware.numa_usage_from_instance_numa(topology, fitted)
        if requests is not None:
            if not stats:
                return None
            stats = copy.deepcopy(stats)
            try:
                stats.apply_requests(requests, mappings, fitted.cells if fitted else None)
            except exception.PciDeviceRequestFailed:
                return None
        return DeviceUse(topology, stats, fitted, use.limits)
