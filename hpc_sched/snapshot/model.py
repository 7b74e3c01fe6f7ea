"""The state of a cloud at one moment, in the fields of the saved file.

The classes are msgspec's Structs, which refuse keys that they do not know: a file of a newer
release is an error, not a loss. Change copies with ``msgspec.structs.replace``.
"""

import re
from collections import Counter
from collections.abc import Mapping
from typing import Annotated, Any

from msgspec import Meta, Struct, field

# A finite number; whole ones stay whole, also on the screen.
Amount = Annotated[int, Meta(le=(1 << 63) - 1)] | float

_RESOURCES = re.compile(r"resources([a-zA-Z0-9_-]{1,64})?:(.+)")
_PART = re.compile(r"\s*(\^?)\s*([0-9]{1,6})\s*(?:-\s*([0-9]{1,6})\s*)?")


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
    options: Mapping[str, Any] = field(default_factory=dict)  # [hpc_sched], if readable
    # [filter_scheduler] enabled_filters and weight_classes; None without a readable nova.conf.
    filters: tuple[str, ...] | None = None
    weighers: tuple[str, ...] | None = None
    # The interference index: application to co-located application to performance.
    interference: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    decisions: tuple[Mapping[str, Any], ...] = ()  # the newest records of the decision log
    notes: tuple[str, ...] = ()  # sentences on data that could not be read


def demand_of(flavor: Flavor, *, boots_from_volume: bool = False) -> dict[str, int]:
    """Return resource class to amount, without zeros.

    Extra specs ``resources:CLASS`` and ``resources<N>:CLASS`` are summed; ``hw:cpu_policy`` adds
    to them; the flavor's own numbers count for classes without an extra spec. Requests of images,
    ports, accelerators, encrypted and persistent memory are not counted.
    """
    wanted = Counter(_pinned(flavor))
    for key, value in flavor.extra_specs.items():
        found = _RESOURCES.fullmatch(key)
        if found and value.isascii() and value.isdecimal():
            wanted[found[2]] += int(value)
    if "VCPU" not in wanted and "PCPU" not in wanted:
        wanted["VCPU"] = flavor.vcpus
    wanted.setdefault("MEMORY_MB", flavor.memory_mb)
    if "DISK_GB" not in wanted:
        swap_gb = -(-flavor.swap_mb // 1024)
        root_gb = 0 if boots_from_volume else flavor.root_gb
        wanted["DISK_GB"] = root_gb + flavor.ephemeral_gb + swap_gb
    return {name: amount for name, amount in sorted(wanted.items()) if amount > 0}


def _pinned(flavor: Flavor) -> dict[str, int]:
    """Return the processors that ``hw:cpu_policy`` requests; empty for shared ones only."""
    specs = flavor.extra_specs
    policy = specs.get("hw:cpu_policy")
    emulator = 1 if specs.get("hw:emulator_threads_policy") == "isolate" else 0
    if policy == "dedicated":
        return {"PCPU": flavor.vcpus + emulator}
    if policy == "mixed":
        mask = specs.get("hw:cpu_dedicated_mask") or specs.get("hw:cpu_realtime_mask")
        own = _masked(mask, flavor)
        return {"VCPU": flavor.vcpus - own, "PCPU": own + emulator}
    return {}


def _masked(mask: str | None, flavor: Flavor) -> int:
    """Return the number of processors in a mask such as ``0-3,^2``; ``^0`` is all others."""
    text = mask or ""
    dropped: set[int] = set()
    chosen = set(range(flavor.vcpus if text.strip().startswith("^") else 0))
    for part in text.split(","):
        found = _PART.fullmatch(part)
        if found:
            low, high = int(found[2]), int(found[3] or found[2])
            numbers = range(low, min(high, flavor.vcpus - 1) + 1)
            (dropped if found[1] else chosen).update(numbers)
    return len(chosen - dropped)
