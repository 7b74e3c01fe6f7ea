"""Nova's own fitting of NUMA cells and PCI devices, where Nova can be imported."""

from collections.abc import Mapping
from typing import Any, Protocol

from hpc_sched.core.room.recorded_devices import RecordedDevices
from hpc_sched.snapshot.room import pci_aliases
from hpc_sched.snapshot.snapshot_model import Flavor, Snapshot


class DeviceFitting(Protocol):
    """Fits VMs of one flavor into the NUMA cells and PCI devices of hypervisors."""

    @property
    def name(self) -> str:
        """What is fitted, for the reason of a refusal."""

    def start(self, devices: RecordedDevices) -> Any:
        """Return the present use of a hypervisor's devices."""

    def claim(self, use: Any, mappings: Mapping[str, tuple[str, ...]]) -> Any:
        """Return the use after one more VM, or None if it does not fit."""


class FittingMaker(Protocol):
    """Makes the fitting of a flavor's VMs."""

    def __call__(self, flavor: Flavor, snapshot: Snapshot) -> DeviceFitting | None:
        """Return the fitting of a flavor, or None if none is needed, or Nova is not installed.

        :raises exceptions.SnapshotError: for a flavor that Nova refuses
        """


def requested(flavor: Flavor, snapshot: Snapshot) -> list[str]:
    """Return what of a flavor only Nova can fit: NUMA cells, PCI devices or neither."""
    specs = flavor.extra_specs
    pinned = specs.get("hw:cpu_policy") in ("dedicated", "mixed")
    by_class = any(key.startswith("resources") and key.endswith(":PCPU") for key in specs)
    in_cells = any(specs.get(key) for key in ("hw:numa_nodes", "hw:mem_page_size", "hw:pmem"))
    is_known = snapshot.pci_aliases is not None and pci_aliases.requested(flavor)
    return [
        *(["NUMA cells"] if pinned or by_class or in_cells else []),
        *(["PCI devices"] if is_known else []),
    ]
