"""NUMA cells and PCI devices of a compute node, as Nova's cell database has them."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class RecordedDevices:
    """The texts of a compute node that only Nova can read."""

    numa_topology: str | None = None  # None: nova-compute reports no cells
    pci_stats: str | None = None
    cpu_allocation_ratio: float = 1.0
    ram_allocation_ratio: float = 1.0
