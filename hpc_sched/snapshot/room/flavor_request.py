"""The allocation candidates that Nova requests for a VM of a flavor (``scheduler/utils.py``)."""

import re
from collections.abc import Iterable, Mapping

import os_resource_classes

from hpc_sched.core.room.resource_request import RequestGroup, ResourceRequest
from hpc_sched.snapshot.snapshot_model import Flavor

CUSTOM = "CUSTOM_"
# Nova ignores any other class that is not custom.
STANDARD_CLASSES = frozenset(os_resource_classes.STANDARDS)
# Extra spec and value to the trait that is required of the VM's providers.
_TRAITS = {
    ("os:secure_boot", "required"): "COMPUTE_SECURITY_UEFI_SECURE_BOOT",
    ("hw:maxphysaddr_mode", "passthrough"): "COMPUTE_ADDRESS_SPACE_PASSTHROUGH",
    ("hw:maxphysaddr_mode", "emulate"): "COMPUTE_ADDRESS_SPACE_EMULATED",
    ("hw:tpm_version", "1.2"): "COMPUTE_SECURITY_TPM_1_2",
    ("hw:tpm_version", "2.0"): "COMPUTE_SECURITY_TPM_2_0",
    ("hw:pci_numa_affinity_policy", "socket"): "COMPUTE_SOCKET_PCI_NUMA_AFFINITY",
    ("hw:cpu_thread_policy", "require"): "HW_CPU_HYPERTHREADING",
}
_ENCRYPTION_TRAITS = {
    "amd-sev": "HW_CPU_X86_AMD_SEV",
    "amd-sev-es": "HW_CPU_X86_AMD_SEV_ES",
    "amd-sev-snp": "HW_CPU_X86_AMD_SEV_SNP",
    "intel-tdx": "HW_CPU_X86_INTEL_TDX",
}
# Of a vTPM's host one of these traits is required from Nova 33 on; nova-compute of older releases
# reports none.
TPM_SECRETS = "COMPUTE_SECURITY_TPM_SECRET_SECURITY_"
_KEY = re.compile(r"(resources|trait)([a-zA-Z0-9_-]{1,64})?:(.*)")
_PART = re.compile(r"\s*(\^?)\s*([0-9]{1,6})\s*(?:-\s*([0-9]{1,6})\s*)?")
_TRUE = ("1", "t", "true", "on", "y", "yes")


def resource_request(
    flavor: Flavor,
    *,
    boots_from_volume: bool = False,
    devices: Iterable[RequestGroup] = (),
    has_tpm_secrets: bool = True,
) -> ResourceRequest:
    """Return the request for one VM of a flavor.

    What images, ports, device profiles, aggregates and availability zones add is not known here.

    :param devices: groups for PCI devices in Placement
    :param has_tpm_secrets: whether the cloud has traits of :data:`TPM_SECRETS`
    """
    specs = flavor.extra_specs
    resources: dict[str, dict[str, int]] = {"": {}}
    traits: dict[str, dict[str, set[str]]] = {}
    keys = [
        (found.groups(""), value) for key, value in specs.items() if (found := _KEY.fullmatch(key))
    ]
    for (kind, suffix, name), value in keys:
        if kind == "trait":
            traits.setdefault(suffix, {}).setdefault(value, set()).add(name)
        elif name in STANDARD_CLASSES or name.startswith(CUSTOM):
            amount = _amount(value)
            if amount is not None:
                resources.setdefault(suffix, {})[name] = amount
    own, own_traits = resources[""], traits.setdefault("", {})
    own |= _pinned(flavor)
    named = {name for group in resources.values() for name in group}
    if not named & {"VCPU", "PCPU"}:
        own["VCPU"] = flavor.vcpus
    own |= {} if "MEMORY_MB" in named else {"MEMORY_MB": flavor.memory_mb}
    if "DISK_GB" not in named:
        root_gb = 0 if boots_from_volume else flavor.root_gb
        own["DISK_GB"] = root_gb + flavor.ephemeral_gb - (-flavor.swap_mb // 1024)
    required, forbidden, memory = _features(specs)
    own |= memory
    own_traits.setdefault("required", set()).update(required)
    own_traits.setdefault("forbidden", set()).update(forbidden)
    groups = [
        _group(suffix, resources.get(suffix, {}), traits.get(suffix, {}))
        for suffix in sorted(resources.keys() | traits.keys())
    ]
    groups = [g for g in groups if g.resources or g.required or g.forbidden]
    if (policy := specs.get("group_policy")) not in ("none", "isolate"):
        # As Nova has it for groups that are not the flavor's.
        policy = "none" if sum(bool(group.suffix) for group in groups) <= 1 else None
    return ResourceRequest(
        (*groups, *devices), policy, root=_root(specs, has_tpm_secrets=has_tpm_secrets)
    )


def demand_of(flavor: Flavor, *, boots_from_volume: bool = False) -> dict[str, int]:
    """Return resource class to amount, over all groups and without zeros."""
    return resource_request(flavor, boots_from_volume=boots_from_volume).demand


def _group(
    suffix: str, resources: Mapping[str, int], traits: Mapping[str, set[str]]
) -> RequestGroup:
    return RequestGroup(
        suffix,
        {name: amount for name, amount in sorted(resources.items()) if amount},
        tuple(frozenset({trait}) for trait in sorted(traits.get("required", ()))),
        frozenset(traits.get("forbidden", ())),
    )


def _amount(text: str) -> int | None:
    """Return an amount as Nova reads it, or None if Nova ignores it."""
    try:
        amount = int(text)
    except ValueError:
        return None
    return amount if amount >= 0 else None


def is_true(text: str | None) -> bool:
    """Return a boolean extra spec as Nova reads it."""
    return text is not None and text.strip().lower() in _TRUE


def _features(specs: Mapping[str, str]) -> tuple[set[str], set[str], dict[str, int]]:
    """Return the required and forbidden traits of features, and the resources of memory."""
    required = {trait for (key, value), trait in _TRAITS.items() if specs.get(key) == value}
    is_alone = specs.get("hw:cpu_thread_policy") == "isolate"
    forbidden = {"HW_CPU_HYPERTHREADING"} if is_alone else set[str]()
    if specs.get("hw:tpm_version"):
        is_crb = specs.get("hw:tpm_model") == "tpm-crb"
        required.add(f"COMPUTE_SECURITY_TPM_{'CRB' if is_crb else 'TIS'}")
    memory: dict[str, int] = {}
    if is_true(specs.get("hw:mem_encryption")):
        memory["MEM_ENCRYPTION_CONTEXT"] = 1
        model = specs.get("hw:mem_encryption_model") or "amd-sev"
        required |= {_ENCRYPTION_TRAITS[model]} if model in _ENCRYPTION_TRAITS else set()
    for label in filter(None, map(str.strip, specs.get("hw:pmem", "").split(","))):
        name = custom_name(f"PMEM_NAMESPACE_{label}")
        memory[name] = memory.get(name, 0) + 1
    return required, forbidden, memory


def custom_name(text: str) -> str:
    """Return the custom resource class, or trait, of a name."""
    return CUSTOM + re.sub("[^0-9A-Za-z]+", "_", text).upper()


def _root(specs: Mapping[str, str], *, has_tpm_secrets: bool) -> RequestGroup:
    """Return the traits of the root provider, as Nova's request filters set them."""
    is_encrypted = is_true(specs.get("hw:ephemeral_encryption"))
    kind = specs.get("hw:ephemeral_encryption_format")
    security = specs.get("hw:tpm_secret_security") or "user"
    requires = {
        "COMPUTE_NET_VIRTIO_PACKED": is_true(specs.get("hw:virtio_packed_ring")),
        "COMPUTE_EPHEMERAL_ENCRYPTION": is_encrypted,
        f"COMPUTE_EPHEMERAL_ENCRYPTION_{(kind or '').upper()}": is_encrypted and kind,
        "COMPUTE_SOUND_MODEL_VIRTIO": specs.get("hw:sound_model") == "virtio",
        f"{TPM_SECRETS}{security.upper()}": has_tpm_secrets and specs.get("hw:tpm_version"),
        "COMPUTE_ACCELERATORS": specs.get("accel:device_profile"),
    }
    # A disabled host is left out by the state of its service.
    return _group("", {}, {"required": {trait for trait, is_set in requires.items() if is_set}})


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
