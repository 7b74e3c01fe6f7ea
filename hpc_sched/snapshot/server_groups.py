"""Server groups of a snapshot: their policy, their placed VMs, and these as a request."""

from collections import Counter

from hpc_sched.snapshot.cloud import Cloud
from hpc_sched.snapshot.model import Group, Server
from hpc_sched.snapshot.request_builder import GroupQuery


def policy_of(group: Group) -> str:
    """Return the group's policy with its rule, as text."""
    if group.max_per_host is not None and group.max_per_host > 1:
        return f"{group.policy}, {group.max_per_host} a host"
    return group.policy


def most_per_host(group: Group) -> int | None:
    """Return the most VMs of the group on one service host, None if unbounded."""
    if group.policy != "anti-affinity":
        return None
    return 1 if group.max_per_host is None else group.max_per_host


def placed_of(cloud: Cloud, group: Group) -> tuple[Server, ...]:
    """Return the VMs of a group that have a host."""
    return tuple(vm for vm in cloud.members_of(group) if vm.uuid in cloud.host_of)


def kinds_of(servers: tuple[Server, ...]) -> list[str]:
    """Return the names of the VMs' flavors that differ in size, most VMs first."""
    sizes = Counter((s.flavor.vcpus, s.flavor.memory_mb, s.flavor.name) for s in servers)
    return [name for (_, _, name), _ in sorted(sizes.items(), key=lambda i: (-i[1], i[0]))]


def as_request(cloud: Cloud, group: Group) -> GroupQuery | None:
    """Return a request to place the group's placed VMs anew with their largest flavor, or None."""
    placed = placed_of(cloud, group)
    if not placed:
        return None
    model = max(placed, key=lambda s: (s.flavor.vcpus, s.flavor.memory_mb, s.name, s.uuid))
    return GroupQuery(
        flavor=model.flavor,
        count=len(placed),
        group_id=group.uuid,
        policy=group.policy,
        max_per_host=most_per_host(group),
        boots_from_volume=model.boots_from_volume,
        moves=placed,
    )
