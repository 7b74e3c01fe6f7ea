"""The state of a cloud at one moment, in the fields of the saved file.

The classes are msgspec's Structs, which refuse keys that they do not know: a file of a newer
release is an error, not a loss. Change copies with ``msgspec.structs.replace``. Resource providers
and recorded devices are values of core, whose unknown keys are ignored.
"""

from collections.abc import Mapping
from typing import Annotated, Any

from msgspec import Meta, Struct, field

from hpc_sched.core.room.device_fitting import RecordedDevices
from hpc_sched.core.room.provider_tree import Provider

# A finite number; whole ones stay whole, also on the screen.
Amount = Annotated[int, Meta(le=(1 << 63) - 1)] | float


class Flavor(Struct, frozen=True, forbid_unknown_fields=True):
    """A flavor: size and extra specs of a VM."""

    name: str
    vcpus: int
    memory_mb: int
    root_gb: int = 0
    ephemeral_gb: int = 0
    swap_mb: int = 0
    extra_specs: Mapping[str, str] = field(default_factory=dict)


class Hypervisor(Struct, frozen=True, forbid_unknown_fields=True):
    """One schedulable host, Nova's pair of service host and nodename."""

    host: str
    nodename: str
    enabled: bool  # its compute service takes new VMs
    up: bool
    # Resource class to amount, in the units of Placement.
    capacity: Mapping[str, Amount]  # (total - reserved) * allocation ratio
    used: Mapping[str, Amount]  # by VMs
    cpu_info: Mapping[str, Any] | None = None  # vendor, model, topology, features, if reported
    # The tree in Placement, the root first; empty if it was not read.
    providers: tuple[Provider, ...] = ()
    devices: RecordedDevices | None = None  # None: not read

    @property
    def place(self) -> tuple[str, str]:
        """Service host and nodename."""
        return self.host, self.nodename


class Server(Struct, frozen=True, forbid_unknown_fields=True):
    """One VM."""

    uuid: str
    name: str
    project_id: str
    status: str
    host: str | None  # None without a host
    nodename: str | None
    flavor: Flavor  # copied when the VM was created or last resized
    created: str  # ISO 8601
    reservation_id: str | None = None  # of the API request that created it
    boots_from_volume: bool = False

    @property
    def place(self) -> tuple[str, str] | None:
        """Service host and nodename, or None without a host."""
        return (self.host, self.nodename or self.host) if self.host else None


class Group(Struct, frozen=True, forbid_unknown_fields=True):
    """One server group."""

    uuid: str
    name: str
    project_id: str
    policy: str
    members: tuple[str, ...]  # uuids of servers
    max_per_host: int | None = None  # rule max_server_per_host


class Aggregate(Struct, frozen=True, forbid_unknown_fields=True):
    """One host aggregate."""

    name: str
    hosts: tuple[str, ...]  # service hosts
    metadata: Mapping[str, str]


class Snapshot(Struct, frozen=True, forbid_unknown_fields=True):
    """A cloud at one moment; tuples are sorted by name, then uuid."""

    taken: str  # ISO 8601, UTC
    hypervisors: tuple[Hypervisor, ...]
    servers: tuple[Server, ...]
    groups: tuple[Group, ...]
    flavors: tuple[Flavor, ...]
    aggregates: tuple[Aggregate, ...] = ()
    topology: str | None = None  # the fabric as a file of driver yaml
    # [hpc_sched], if readable, and the limits of Nova's filters that count VMs.
    options: Mapping[str, Any] = field(default_factory=dict)
    # [filter_scheduler] enabled_filters and weight_classes; None without a readable nova.conf.
    filters: tuple[str, ...] | None = None
    weighers: tuple[str, ...] | None = None
    # The interference index: application to co-located application to performance.
    interference: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    decisions: tuple[Mapping[str, Any], ...] = ()  # the newest records of the decision log
    notes: tuple[str, ...] = ()  # sentences on data that could not be read
    shared_providers: tuple[Provider, ...] = ()  # those that share via aggregates, by uuid
    # [pci] alias, each a JSON object; None without a readable nova.conf.
    pci_aliases: tuple[str, ...] | None = None
    pci_in_placement: bool = False  # [filter_scheduler] pci_in_placement
