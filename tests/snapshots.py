"""A small cloud as a snapshot, for the commands that ask one."""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from hpc_sched.snapshot.snapshot_model import Aggregate, Flavor, Group, Hypervisor, Server, Snapshot
from hpc_sched.snapshot.source import snapshot_file

#                         core1
#              /                      \
#            pod1                    pod2
#        /         \              /        \
#     leaf01      leaf02       leaf03     leaf04
#     n01-n04     n05-n08      n09-n12    n13-n16
#
# Every host has 16 processors and 64 GB.
FABRIC = """\
levels: [leaf, pod, core]
switches:
- name: core1
  switches:
  - name: pod1
    switches:
    - {name: leaf01, hosts: "n[01-04]"}
    - {name: leaf02, hosts: "n[05-08]"}
  - name: pod2
    switches:
    - {name: leaf03, hosts: "n[09-12]"}
    - {name: leaf04, hosts: "n[13-16]"}
"""
HOSTS = tuple(f"n{number:02}" for number in range(1, 17))


def flavor(name: str = "half", vcpus: int = 8, **specs: str) -> Flavor:
    """Return a flavor, half a host by default; ``specs`` are of the namespace hpc:."""
    extra_specs = {f"hpc:{key}": value for key, value in specs.items()}
    return Flavor(name, vcpus, 1024, root_gb=1, extra_specs=extra_specs)


def server(name: str, host: str | None, kind: Flavor | None = None, **fields: Any) -> Server:
    """Return a VM whose uuid begins with its name; without a host it is being built."""
    found = Server(
        uuid=uuid_of(name),
        name=name,
        project_id="project",
        status="ACTIVE" if host else "BUILD",
        host=host,
        nodename=host,
        flavor=kind or flavor(),
        created="2026-01-31T12:00:00Z",
    )
    return replace(found, **fields)


def uuid_of(name: str) -> str:
    """Return the uuid of a server or group of the tests."""
    return f"{name}-uuid"


def group(name: str, servers: Iterable[Server], policy: str = "soft-affinity", **f: Any) -> Group:
    """Return a server group of some VMs."""
    members = tuple(sorted(member.uuid for member in servers))
    return Group(uuid_of(name), name, "project", policy, members, **f)


def snapshot(
    servers: Iterable[Server] = (),
    groups: Iterable[Group] = (),
    flavors: Iterable[Flavor] = (),
    *,
    hosts: Iterable[str] = HOSTS,
    disabled: Iterable[str] = (),
    down: Iterable[str] = (),
    aggregates: Iterable[Aggregate] = (),
    capacity: Mapping[str, float] | None = None,
    **fields: Any,
) -> Snapshot:
    """Return a cloud in which VMs take what their flavors say."""
    servers = tuple(sorted(servers, key=lambda vm: (vm.name, vm.uuid)))
    disabled, down = set(disabled), set(down)

    def hypervisor(host: str) -> Hypervisor:
        here = [vm.flavor for vm in servers if vm.host == host]
        return Hypervisor(
            host=host,
            nodename=host,
            enabled=host not in disabled,
            up=host not in down,
            capacity=capacity or {"VCPU": 16, "MEMORY_MB": 65536, "DISK_GB": 1000},
            used={
                "VCPU": sum(kind.vcpus for kind in here),
                "MEMORY_MB": sum(kind.memory_mb for kind in here),
                "DISK_GB": sum(kind.root_gb for kind in here),
            },
        )

    fields.setdefault("topology", FABRIC)
    return Snapshot(
        taken="2026-01-31T12:00:00+00:00",
        hypervisors=tuple(hypervisor(host) for host in sorted(hosts)),
        servers=servers,
        groups=tuple(groups),
        flavors=tuple(flavors) or (flavor(),),
        aggregates=tuple(aggregates),
        **fields,
    )


def saved(folder: Path, *args: Any, **kwargs: Any) -> str:
    """Write a snapshot and return its path."""
    path = folder / "state.json"
    snapshot_file.write(path, snapshot(*args, **kwargs))
    return str(path)
