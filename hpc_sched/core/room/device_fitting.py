"""NUMA cells and PCI devices of a hypervisor, which only Nova's own code can fit."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol


@dataclass(frozen=True, slots=True)
class RecordedDevices:
    """The texts of a compute node that only Nova can read, as its cell database has them."""

    numa_topology: str | None = None  # None: nova-compute reports no cells
    pci_stats: str | None = None
    cpu_allocation_ratio: float = 1.0
    ram_allocation_ratio: float = 1.0


class DeviceFitting(Protocol):
    """Fits VMs of one flavor into the NUMA cells and PCI devices of hypervisors."""

    @property
    def name(self) -> str:
        """What is fitted, for the reason of a refusal."""

    def start(self, devices: Any) -> Any:
        """Return the present use of a hypervisor's devices.

        :param devices: a HostState, or RecordedDevices outside the scheduler
        """

    def claim(self, use: Any, mappings: Mapping[str, Any]) -> Any:
        """Return the use after one more VM, or None if it does not fit.

        :param mappings: of the allocation candidate: request group to providers
        """
