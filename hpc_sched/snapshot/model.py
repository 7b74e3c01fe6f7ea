"""What is known of a cloud at one moment."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class Flavor:
    """What one VM takes and asks for."""

    name: str
    vcpus: int
    memory_mb: int
    root_gb: int = 0
    ephemeral_gb: int = 0
    swap_mb: int = 0
    extra_specs: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Hypervisor:
    """One schedulable host, Nova's pair of service host and nodename."""

    host: str
    nodename: str
    enabled: bool  # its compute service takes new VMs
    up: bool
    # Resource class to amount, in the units of Placement: what VMs may take altogether, that is
    # (total - reserved) * allocation ratio, and what they have taken.
    capacity: Mapping[str, float]
    used: Mapping[str, float]
    cpu_info: Mapping[str, Any] | None = None  # vendor, model, topology, features, where told


@dataclass(frozen=True, slots=True)
class Server:
    """One VM."""

    uuid: str
    name: str
    project_id: str
    status: str
    host: str | None  # None where it has none (yet)
    nodename: str | None
    flavor: Flavor  # as it was when the VM was made or resized last
    created: str  # ISO 8601
    reservation_id: str | None = None  # of the request that made it
    boots_from_volume: bool = False


@dataclass(frozen=True, slots=True)
class Group:
    """One server group."""

    uuid: str
    name: str
    project_id: str
    policy: str
    members: tuple[str, ...]  # uuids of servers
    max_per_host: int | None = None  # rule max_server_per_host of anti-affinity


@dataclass(frozen=True, slots=True)
class Aggregate:
    """One host aggregate."""

    name: str
    hosts: tuple[str, ...]  # service hosts
    metadata: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A cloud at one moment; tuples are sorted by name, then uuid."""

    taken: str  # ISO 8601, UTC
    hypervisors: tuple[Hypervisor, ...]
    servers: tuple[Server, ...]
    groups: tuple[Group, ...]
    flavors: tuple[Flavor, ...]
    aggregates: tuple[Aggregate, ...] = ()
    topology: str | None = None  # the fabric as a file of driver yaml
    options: Mapping[str, Any] = field(default_factory=dict)  # [hpc_sched], where it was readable
    # [filter_scheduler] enabled_filters and weight_classes; None where nova.conf was not readable.
    filters: tuple[str, ...] | None = None
    weighers: tuple[str, ...] | None = None
    # The interference index: application to neighbour to its performance beside it.
    interference: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    decisions: tuple[Mapping[str, Any], ...] = ()  # the newest records of the decision log
    notes: tuple[str, ...] = ()  # what could not be read, a sentence each
