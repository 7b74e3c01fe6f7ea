"""Snapshots of clouds drawn from a seed, as the JSON document of ``hpc-sched snapshot save``."""

import json
import random
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import yaml

from tests.golden import clouds, trees, wanting
from tests.golden.clouds import Host, Vm

TAKEN = "2026-01-31T12:00:00+00:00"
# Size, and what its extra specs say.
_SPECS: tuple[dict[str, str], ...] = (
    {},
    {"hpc:app_class": "sync"},
    {"hpc:app_class": "async", "hpc:cache_score": "16.5"},
    {"hpc:app_class": "extreme"},
    {"hpc:app_class": "sync", "hpc:app_name": "wrf", "hpc:cache_score": "2.5"},
    {"hpc:app_name": "lu", "hpc:homogeneous": "true"},
    {"hpc:require": "leaf"},
    {"hpc:max_leaves": "2", "hpc:prefer": "leaf"},
    {"hpc:require": "pod", "hpc:group_size": "12"},
    {},
    {"hpc:app_class": "sync"},
    {"hpc:app_class": "web"},
    {"hpc:app_class": "none", "hpc:max_leaves": "0"},
)


@dataclass(frozen=True)
class Drawn:
    """A snapshot and what a request may name of it."""

    fabric: trees.Fabric
    hosts: Mapping[str, Host]
    document: Mapping[str, Any]
    flavors: tuple[str, ...]
    groups: tuple[str, ...]


def draw(dice: random.Random) -> Drawn:
    """Return the snapshot of a cloud with some flavors and two server groups."""
    fabric = trees.draw(dice)
    hosts = clouds.draw(dice, fabric)
    flavors = [_flavor(dice, f"flavor{i}") for i in range(1, 6)]
    servers = [
        _server(f"vm-{host.node}-{i}", host, vm)
        for host in hosts.values()
        for i, vm in enumerate(host.vms)
    ]
    groups = []
    for name in ("job", "other"):
        members = _members(dice, name, hosts, dice.choice(flavors))
        servers += members
        policy = dice.choice([known for known in wanting.POLICIES if known])
        groups.append(
            {
                "uuid": f"uuid-of-{name}",
                "name": name,
                "project_id": "project",
                "policy": policy,
                "members": sorted(member["uuid"] for member in members),
                "max_per_host": dice.choice((None, 1, 2, 3)) if policy == "anti-affinity" else None,
            }
        )
    setup = wanting.draw_setup(dice)
    known = dice.random() < 0.8
    document = {
        "format": "hpc-sched snapshot",
        "version": 1,
        "taken": TAKEN,
        "hypervisors": [_hypervisor(dice, hosts[node], servers) for node in sorted(hosts)],
        "servers": sorted(servers, key=lambda server: (server["name"], server["uuid"])),
        "groups": groups,
        "flavors": flavors,
        "aggregates": [
            {"name": f"a{i}-{host.node}", "hosts": [host.host], "metadata": said}
            for host in hosts.values()
            for i, said in enumerate(host.metadata)
        ],
        "topology": yaml.safe_dump(trees.text_of(fabric)),
        "options": {key: value for key, value in setup.options.items() if known},
        "filters": list(setup.filters) if known else None,
        "weighers": [f"hpc_sched.weighers.{name}" for name in setup.weighers] if known else None,
        "interference": _index(setup.index),
        "decisions": [],
        "notes": [],
    }
    names = tuple(flavor["name"] for flavor in flavors)
    return Drawn(fabric, hosts, document, names, ("job", "other"))


def _flavor(dice: random.Random, name: str) -> dict[str, Any]:
    vcpus, memory_mb, root_gb = dice.choice(clouds.FLAVORS)
    return {
        "name": name,
        "vcpus": vcpus,
        "memory_mb": memory_mb,
        "root_gb": root_gb,
        "ephemeral_gb": 0,
        "swap_mb": 0,
        "extra_specs": dict(dice.choice(_SPECS)),
    }


def _server(name: str, host: Host | None, vm: Vm) -> dict[str, Any]:
    """Return a VM; one that is on its way has no host yet."""
    there = None if host is None or vm.in_flight else host
    specs = {"hpc:app_class": vm.app_class, "hpc:cache_score": str(vm.score)}
    return {
        "uuid": f"uuid-of-{name}",
        "name": name,
        "project_id": "project",
        "status": "ACTIVE" if there else "BUILD",
        "host": there.host if there else None,
        "nodename": there.node if there else None,
        "flavor": {
            "name": f"flavor of {name}",
            "vcpus": vm.vcpus,
            "memory_mb": vm.memory_mb,
            "root_gb": vm.disk_gb,
            "ephemeral_gb": 0,
            "swap_mb": 0,
            "extra_specs": specs | ({"hpc:app_name": vm.name} if vm.name else {}),
        },
        "created": "2026-01-31T11:00:00Z",
        "reservation_id": f"r-{vm.group}" if vm.group else None,
        "boots_from_volume": vm.disk_gb == 0,
    }


def _members(
    dice: random.Random, name: str, hosts: Mapping[str, Host], flavor: dict[str, Any]
) -> list[dict[str, Any]]:
    """Return the VMs of a group: on a few hosts, on any, and some without a host."""
    few = dice.sample(sorted(hosts), min(len(hosts), 2))
    found = []
    for i in range(dice.choice((0, 1, 2, 3, 5, 9))):
        node = dice.choice(few if dice.random() < 0.6 else sorted(hosts))
        is_coming = dice.random() < 0.1
        size = (flavor["vcpus"], flavor["memory_mb"], flavor["root_gb"])
        member = _server(f"{name}-{i}", hosts[node], Vm(*size, "sync", in_flight=is_coming))
        found.append(member | {"flavor": flavor, "reservation_id": f"r-{name}"})
    return found


def _hypervisor(dice: random.Random, host: Host, servers: list[dict[str, Any]]) -> dict[str, Any]:
    here = [
        server["flavor"] for server in servers if (server["host"], server["nodename"]) == host.place
    ]
    capacity = {"VCPU": host.vcpus, "MEMORY_MB": host.memory_mb, "DISK_GB": host.disk_gb}
    used = {
        "VCPU": sum(flavor["vcpus"] for flavor in here),
        "MEMORY_MB": sum(flavor["memory_mb"] for flavor in here),
        "DISK_GB": sum(flavor["root_gb"] for flavor in here),
    }
    if not host.vcpus:
        capacity, used = {"CUSTOM_METAL": 1}, {"CUSTOM_METAL": min(len(here), 1)}
    return {
        "host": host.host,
        "nodename": host.node,
        "enabled": host.offered,
        "up": dice.random() < 0.97,
        "capacity": capacity,
        "used": used,
        "cpu_info": json.loads(host.cpu_info) if host.cpu_info else None,
    }


def _index(rows: tuple[tuple[str, str, float, float], ...]) -> dict[str, dict[str, float]]:
    found: dict[str, dict[str, float]] = {}
    for one, other, speed, of_other in rows:
        found.setdefault(one, {})[other] = speed
        found.setdefault(other, {})[one] = of_other
    return found
