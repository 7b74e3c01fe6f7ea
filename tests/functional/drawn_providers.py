"""Small clouds of mixed devices, drawn from a seed, as providers for Placement.

::

    host: VCPU MEMORY_MB [DISK_GB] [CUSTOM_GPU]        pool: DISK_GB, shared by the hosts of a
     |-- pgpu0: VGPU  CUSTOM_RED                             cloud that have no disk of their own
     |-- pgpu1: VGPU  CUSTOM_BLUE
     |-- device0: CUSTOM_PCI_10DE_2331
     |-- device1: CUSTOM_PCI_10DE_2331
     `-- nics
          |-- pf0: SRIOV_NET_VF
          `-- pf1: SRIOV_NET_VF  CUSTOM_FAST
"""

import random
import uuid

from tests.functional.provider_rows import Provider

DEVICE = "CUSTOM_PCI_10DE_2331"
ALIAS = '{"name": "gpu", "vendor_id": "10de", "product_id": "2331"}'
TRAITS = ("CUSTOM_RED", "CUSTOM_BLUE", "CUSTOM_FAST")
SHARES = "MISC_SHARES_VIA_AGGREGATE"

# Extra specs of the flavors; each is asked of every cloud.
FLAVORS: tuple[dict[str, str], ...] = (
    {},
    {"trait:CUSTOM_FAST": "required"},
    {"trait:CUSTOM_FAST": "forbidden"},
    {"resources:CUSTOM_GPU": "2"},
    {"resources:CUSTOM_GPU": "3", "trait:CUSTOM_RED": "forbidden"},
    {"resources:VGPU": "1"},
    {"resources:VGPU": "2", "trait:CUSTOM_RED": "required"},
    {"resources:VGPU": "1", "resources:SRIOV_NET_VF": "1", "trait:CUSTOM_FAST": "required"},
    {"resources1:VGPU": "2"},
    {"resources1:VGPU": "1", "trait1:CUSTOM_RED": "required"},
    {"resources1:VGPU": "1", "trait1:CUSTOM_RED": "forbidden"},
    {"resources1:VGPU": "1", "resources2:VGPU": "1", "group_policy": "none"},
    {"resources1:VGPU": "1", "resources2:VGPU": "1", "group_policy": "isolate"},
    {"resources1:VGPU": "1", "resources2:VGPU": "2", "group_policy": "none"},
    {
        "resources1:VGPU": "1",
        "trait1:CUSTOM_RED": "required",
        "resources2:VGPU": "1",
        "resources3:SRIOV_NET_VF": "2",
        "group_policy": "isolate",
    },
    {"resources1:VGPU": "1", "resources2:VGPU": "1"},
    {f"resources:{DEVICE}": "1"},
    {"pci_passthrough:alias": "gpu:1"},
    {"pci_passthrough:alias": "gpu:2"},
    {"pci_passthrough:alias": "gpu:3", "resources1:VGPU": "1"},
    {"pci_passthrough:alias": "gpu:2", "group_policy": "isolate"},
    {"resources:DISK_GB": "0"},
    {"resources:DISK_GB": "30", "trait:CUSTOM_RED": "required"},
    {"resources1:DISK_GB": "30"},
    {"resources1:DISK_GB": "20", "trait1:CUSTOM_FAST": "forbidden"},
    {"resources:VCPU": "3", "resources:MEMORY_MB": "3000", "resources:FOO": "9"},
)


class DrawnCloud:
    """Some hosts with devices, and a pool of disk that some of them share."""

    def __init__(self, seed: int, hosts: int = 3) -> None:
        self.numbers = random.Random(seed)
        self.providers: list[Provider] = []
        self.hosts: list[str] = []  # uuids of the roots
        self._aggregate = self._uuid()
        self._has_pool = self.numbers.random() < 0.4
        for _ in range(hosts):
            self._add_host()
        if self._has_pool:
            pool = self._add(None, "DISK_GB", self.numbers.randint(20, 200))
            pool.traits = [SHARES, *self._traits(0.2)]
            pool.aggregates = [self._aggregate]

    def _uuid(self) -> str:
        return str(uuid.UUID(int=self.numbers.getrandbits(128), version=4))

    def _traits(self, part: float) -> list[str]:
        return [trait for trait in TRAITS if self.numbers.random() < part]

    def _add_host(self) -> None:
        numbers = self.numbers
        root = Provider(self._uuid(), traits=self._traits(0.3))
        self.providers.append(root)
        self.hosts.append(root.uuid)
        ratio = numbers.choice([1.0, 1.0, 1.5, 4.0])
        vcpus = numbers.randint(4, 16)
        self._stock(root, "VCPU", vcpus, ratio=ratio, reserved=numbers.choice([0, 0, 2]))
        self._stock(root, "MEMORY_MB", numbers.randint(8, 64) * 1000, reserved=512)
        shares = self._has_pool and numbers.random() < 0.7
        if shares:
            root.aggregates = [self._aggregate]
        if not shares or numbers.random() < 0.2:
            self._stock(root, "DISK_GB", numbers.randint(10, 100))
        if numbers.random() < 0.5:
            self._stock(root, "CUSTOM_GPU", numbers.randint(1, 8))
        for _ in range(numbers.choice([0, 0, 1, 2, 3])):
            pgpu = self._add(root, "VGPU", numbers.randint(1, 6))
            pgpu.traits = self._traits(0.4)
        for _ in range(numbers.choice([0, 0, 2, 4])):
            self._add(root, DEVICE, 1)
        if numbers.random() < 0.4:
            nics = Provider(self._uuid(), root.uuid)
            self.providers.append(nics)
            for _ in range(numbers.randint(1, 2)):
                pf = self._add(nics, "SRIOV_NET_VF", numbers.randint(2, 8))
                pf.traits = self._traits(0.3)

    def _add(self, parent: Provider | None, name: str, total: int) -> Provider:
        found = Provider(self._uuid(), parent and parent.uuid)
        self.providers.append(found)
        self._stock(found, name, total)
        return found

    def _stock(
        self, provider: Provider, name: str, total: int, *, ratio: float = 1.0, reserved: int = 0
    ) -> None:
        # Equal devices have equal units.
        of_kind = random.Random(f"{name} {total}")
        step = of_kind.choice([1, 1, 1, 2]) if name in ("VGPU", "SRIOV_NET_VF") else 1
        most = total
        if name == "CUSTOM_GPU" and of_kind.random() < 0.3:
            most = max(total // 2, 1)
        provider.inventories[name] = {
            "total": total,
            "reserved": reserved,
            "allocation_ratio": ratio,
            "min_unit": min(step, total),
            "max_unit": most,
            "step_size": step if total >= step else 1,
        }
        capacity = int((total - reserved) * ratio)
        if self.numbers.random() < 0.5:
            used = min(self.numbers.randint(0, capacity), most)
            unit = provider.inventories[name]["step_size"]
            if used := used // unit * unit:
                provider.used[name] = used
