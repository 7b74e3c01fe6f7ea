"""Server groups of a snapshot: their policy, and the placement of their VMs with its cost."""

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from hpc_sched.core.hopbyte import hop_bytes_of_counts
from hpc_sched.snapshot import group_fit, request_builder
from hpc_sched.snapshot.cloud import Cloud
from hpc_sched.snapshot.snapshot_model import Group, Server
from hpc_sched.topology import fabric_order


@dataclass(frozen=True, slots=True)
class GroupPlacement:
    """A server group on the fabric."""

    group: Group
    servers: tuple[Server, ...]  # its VMs that exist, see in_fabric_order()
    counts: Mapping[str, int]  # VMs per host
    leaves: Mapping[str, int]  # VMs per leaf, most first
    hop_bytes: float | None  # None for VMs on several islands
    least: float | None  # of the same VMs on free and their own resources; None: no plan is known
    notes: tuple[str, ...]


def policy_of(group: Group) -> str:
    """Return the group's policy with its rule, as text."""
    most = group.max_per_host or 1
    return f"{group.policy}, {most} a host" if most > 1 else group.policy


def most_per_host(policy: str | None, rule: int | None) -> int | None:
    """Return the most VMs of a group on one service host, None if unbounded.

    :param rule: max_server_per_host, which means something with anti-affinity alone; None: 1
    """
    return (1 if rule is None else rule) if policy == "anti-affinity" else None


def placed_of(cloud: Cloud, group: Group) -> tuple[Server, ...]:
    """Return the VMs of a group that have a host."""
    return tuple(vm for vm in cloud.members_of(group) if vm.uuid in cloud.host_of)


def in_fabric_order(cloud: Cloud, servers: Sequence[Server]) -> tuple[Server, ...]:
    """Return VMs in the order of the fabric; those without a host behind them.

    VMs on one host are in natural order of their names, then by uuid.
    """
    hosts = [cloud.host_of[vm.uuid] for vm in servers if vm.uuid in cloud.host_of]
    numbers = fabric_order.in_fabric_order(
        cloud.topology, [cloud.topology.index_of(host) for host in hosts]
    )
    rank = {cloud.topology.hosts[i]: number for number, i in enumerate(numbers)}

    def key(vm: Server) -> tuple[Any, ...]:
        """Return the sort key of a VM."""
        host = cloud.host_of.get(vm.uuid, "")
        return rank.get(host, len(numbers)), fabric_order.natural_key(vm.name), vm.uuid

    return tuple(sorted(servers, key=key))


def as_request(cloud: Cloud, group: Group) -> request_builder.GroupQuery | None:
    """Return a request to place the group's placed VMs anew with their largest flavor, or None."""
    if not (placed := placed_of(cloud, group)):
        return None
    model = max(placed, key=lambda s: (s.flavor.vcpus, s.flavor.memory_mb, s.name, s.uuid))
    return request_builder.GroupQuery(
        flavor=model.flavor,
        count=len(placed),
        group_id=group.uuid,
        policy=group.policy,
        max_per_host=most_per_host(group.policy, group.max_per_host),
        boots_from_volume=model.boots_from_volume,
        moves=placed,
    )


def placement_of(cloud: Cloud, group: Group) -> GroupPlacement:
    """Return the placement of a group. Takes as long as one plan of its VMs."""
    servers = cloud.members_of(group)
    placed = placed_of(cloud, group)
    hosts = [cloud.host_of[server.uuid] for server in placed]
    counts = Counter(hosts)
    leaves = Counter(map(cloud.topology.leaf_of, hosts))
    now = hop_bytes_of_counts(topology=cloud.topology, counts=counts)
    request = as_request(cloud, group)
    state = None if request is None else request_builder.of(cloud, request)
    found = None if state is None else group_fit.least(state)
    least = now if found is None else min(now, found)
    # Flavors that differ in size, most VMs first.
    sizes = Counter((s.flavor.vcpus, s.flavor.memory_mb, s.flavor.name) for s in placed)
    kinds = [name for (_, _, name), _ in sorted(sizes.items(), key=lambda i: (-i[1], i[0]))]
    mixed = (
        f"its VMs are of several flavors ({', '.join(kinds)}): the least possible takes all for "
        "the largest"
    )
    gone = len(group.members) - len(servers)
    return GroupPlacement(
        group=group,
        servers=in_fabric_order(cloud, servers),
        counts=dict(sorted(counts.items())),
        leaves=dict(sorted(leaves.items(), key=lambda item: (-item[1], item[0]))),
        hop_bytes=None if math.isinf(now) else now,
        least=None if math.isinf(least) else least,
        notes=(
            *(() if state is None else state.notes),
            *([mixed] if len(kinds) > 1 else []),
            *([f"{gone} of its members are no servers any more"] if gone else []),
        ),
    )
