"""Resources of one VM of a flavor, as Nova requests them from Placement."""

import re

from hpc_sched.snapshot.model import Flavor

MB_PER_GB = 1024

_RESOURCES = re.compile(r"resources([a-zA-Z0-9_-]{1,64})?:(.+)")
_PART = re.compile(r"\s*(\^?)\s*([0-9]{1,6})\s*(?:-\s*([0-9]{1,6})\s*)?")


def demand_of(flavor: Flavor, *, boots_from_volume: bool = False) -> dict[str, int]:
    """Return resource class to amount, without zeros.

    Extra specs ``resources:CLASS`` and ``resources<N>:CLASS`` are summed; ``hw:cpu_policy`` adds
    to them; the flavor's own numbers count for classes without an extra spec. Requests of images,
    ports, accelerators, encrypted and persistent memory are not counted.
    """
    wanted: dict[str, int] = {}
    for key, value in flavor.extra_specs.items():
        found = _RESOURCES.fullmatch(key)
        if found and value.isascii() and value.isdecimal():
            wanted[found[2]] = wanted.get(found[2], 0) + int(value)
    for name, amount in _pinned(flavor).items():
        wanted[name] = wanted.get(name, 0) + amount
    if "VCPU" not in wanted and "PCPU" not in wanted:
        wanted["VCPU"] = flavor.vcpus
    wanted.setdefault("MEMORY_MB", flavor.memory_mb)
    if "DISK_GB" not in wanted:
        swap_gb = -(-flavor.swap_mb // MB_PER_GB)
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
    chosen: set[int] = set()
    dropped: set[int] = set()
    text = mask or ""
    if text.strip().startswith("^"):
        chosen.update(range(flavor.vcpus))
    for part in text.split(","):
        found = _PART.fullmatch(part)
        if found:
            low, high = int(found[2]), int(found[3] or found[2])
            numbers = range(low, min(high, flavor.vcpus - 1) + 1)
            (dropped if found[1] else chosen).update(numbers)
    return len(chosen - dropped)
