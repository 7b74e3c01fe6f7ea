"""Hosts drawn from a seed as Nova's scheduler may see them, with the VMs that they have."""

import json
import random
from collections.abc import Sequence
from dataclasses import dataclass, replace

from tests.golden.trees import Fabric

# vcpus and MB of a host.
SIZES = ((8, 32768), (16, 65536), (16, 32768), (24, 49152), (32, 131072))
# vcpus, MB and GB of a VM.
FLAVORS = ((1, 1024, 1), (2, 2048, 10), (2, 8192, 0), (4, 4096, 20), (8, 4096, 1), (8, 30000, 1))
CLASSES = ("none", "async", "sync", "extreme")
SCORES = (0.0, 2.5, 16.5, 29.3, 31.7)
APPLICATIONS = (None, None, "wrf", "lu", "ep", "unheard")
MODELS = ("Broadwell", "Icelake", "Zen4")
CELLS = ("00000000-0000-0000-0000-00000000ce11", "00000000-0000-0000-0000-00000000ce12")


@dataclass(frozen=True)
class Vm:
    """A VM of somebody on a host."""

    vcpus: int
    memory_mb: int
    disk_gb: int
    app_class: str
    name: str | None = None
    score: float = 0.0
    group: str | None = None
    in_flight: bool = False  # its host does not report it yet


@dataclass(frozen=True)
class Host:
    """A pair of service host and node."""

    host: str
    node: str
    cell: str
    vcpus: int  # 0 on bare metal
    memory_mb: int
    disk_gb: int = 1000
    cpu_info: str | None = None
    metadata: tuple[dict[str, str], ...] = ()  # of each of its aggregates
    vms: tuple[Vm, ...] = ()
    offered: bool = True  # what Placement offers is a candidate, whatever HostState says of it

    @property
    def place(self) -> tuple[str, str | None]:
        """Where its VMs are, in Nova's words."""
        return self.host, self.node

    def used(self, *, with_coming: bool) -> tuple[int, int, int]:
        """Return vcpus, MB and GB that its VMs take.

        :param with_coming: whether those count that are still on their way
        """
        there = [vm for vm in self.vms if with_coming or not vm.in_flight]
        return (
            sum(vm.vcpus for vm in there),
            sum(vm.memory_mb for vm in there),
            sum(vm.disk_gb for vm in there),
        )

    def room(self, vcpus: int, memory_mb: int, disk_gb: int) -> int:
        """Return how many VMs of a size Placement lets somebody claim here."""
        if not self.vcpus:
            return 0 if self.vms else 1
        used = self.used(with_coming=True)
        wanted = ((self.vcpus, vcpus), (self.memory_mb, memory_mb), (self.disk_gb, disk_gb))
        free = [(total - there, one) for (total, one), there in zip(wanted, used, strict=True)]
        return max(min([left // one for left, one in free if one], default=1), 0)

    def joined_by(self, *vms: Vm) -> "Host":
        """Return the host with more VMs."""
        return replace(self, vms=(*self.vms, *vms))


def cpu_info(model: str, cores: int) -> str:
    """Return what a hypervisor says of its processors."""
    return json.dumps(
        {
            "vendor": "AMD" if model == "Zen4" else "Intel",
            "model": model,
            "topology": {"sockets": 2, "cores": cores, "threads": 2, "cells": 1},
            "features": ["sse4", "avx"] if model != "Broadwell" else ["sse4"],
        }
    )


def draw(dice: random.Random, fabric: Fabric) -> dict[str, Host]:
    """Return the hosts of a cloud by node: those of the fabric, and sometimes some more."""
    alike = dice.random() < 0.3
    kinds = [(*dice.choice(SIZES), dice.choice(MODELS)) for _ in range(1 if alike else 3)]
    metal = dice.choice(("no", "no", "no", "no", "no", "no", "no", "some", "all"))
    suffix = dice.choice(("", "", "", "", "", "", "", "", ".hpc.example"))
    bare = set(fabric.hosts) if metal == "all" else set()
    if metal == "some":
        leaf = dice.choice(sorted(set(fabric.leaf_of.values())))
        bare = {host for host, there in fabric.leaf_of.items() if there == leaf}
    outside = [f"x{i}" for i in range(1, dice.choice((1, 1, 1, 1, 2, 4)))]
    services = dice.randint(1, 3)
    fullness = dice.choice(((0,), (0, 0, 0, 1, 1, 2, 3, 9), (0, 1, 2, 3), (2, 9, 9)))
    cells = CELLS if dice.random() < 0.3 else CELLS[:1]
    marked = dice.random() < 0.25
    found = {}
    for name in [*fabric.hosts, *outside]:
        vcpus, memory_mb, model = dice.choice(kinds)
        known = alike or dice.random() < 0.92
        host = Host(
            host=f"metal{dice.randint(1, services)}" if name in bare else name + suffix,
            node=name if name in bare else name + suffix,
            cell=dice.choice(cells),
            vcpus=0 if name in bare else vcpus,
            memory_mb=0 if name in bare else memory_mb - 512,
            disk_gb=0 if name in bare else 1000,
            cpu_info=cpu_info(model, vcpus // 2) if known and name not in bare else None,
            metadata=_metadata(dice) if marked and dice.random() < 0.5 else (),
            offered=dice.random() < 0.96,
        )
        found[host.node] = _with_vms(dice, host, dice.choice(fullness))
    return found


def _metadata(dice: random.Random) -> tuple[dict[str, str], ...]:
    """Return the metadata of some aggregates."""
    choices: Sequence[dict[str, str]] = (
        {"hpc:processor": "gold"},
        {"hpc:processor": "silver"},
        {"cache_score_limit": "30"},
        {"cache_score_limit": "70.5", "sync_cache_score_limit": "20"},
        {"sync_cache_score_limit": "0"},
        {"cache_score_limit": "much"},
        {"hop_byte_weight_multiplier": "1.5"},
        {"mdobp_weight_multiplier": "nan"},
        {"site": "north"},
    )
    return tuple(dict(dice.choice(choices)) for _ in range(dice.randint(1, 2)))


def _with_vms(dice: random.Random, host: Host, count: int) -> Host:
    """Return a host with up to so many VMs of others, as many as it has room for."""
    for _ in range(count):
        vcpus, memory_mb, disk_gb = dice.choice(FLAVORS)
        vm = Vm(
            vcpus,
            memory_mb,
            disk_gb,
            dice.choice((*CLASSES, "none", "async", "sync")),
            dice.choice(APPLICATIONS),
            dice.choice(SCORES),
            dice.choice((f"group of {host.node}", "group of many", None)),
            dice.random() < 0.1,
        )
        if host.room(vcpus, memory_mb, disk_gb):
            host = host.joined_by(vm)
    return host
