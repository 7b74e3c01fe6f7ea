"""The placement of a server group: its hosts and leaves, their cost and the least possible one."""

import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

from hpc_sched.core.hopbyte import hop_bytes_of_counts
from hpc_sched.snapshot import group_fit, request_builder, server_groups
from hpc_sched.snapshot.cloud import Cloud
from hpc_sched.snapshot.model import Group, Server


@dataclass(frozen=True, slots=True)
class GroupPlacement:
    """A server group on the fabric."""

    group: Group
    servers: tuple[Server, ...]  # its VMs that exist, by name
    counts: Mapping[str, int]  # VMs per host
    leaves: Mapping[str, int]  # VMs per leaf, most first
    hop_bytes: float | None  # None for VMs on several islands
    least: float | None  # of the same VMs on free and their own resources; None: no plan is known
    notes: tuple[str, ...]


def of(cloud: Cloud, group: Group) -> GroupPlacement:
    """Return the placement of a group. Takes as long as one plan of its VMs."""
    servers = cloud.members_of(group)
    placed = server_groups.placed_of(cloud, group)
    hosts = [cloud.host_of[server.uuid] for server in placed]
    counts = Counter(hosts)
    leaves = Counter(map(cloud.topology.leaf_of, hosts))
    now = hop_bytes_of_counts(topology=cloud.topology, counts=counts)
    least = now
    notes: list[str] = []
    if (request := server_groups.as_request(cloud, group)) is not None:
        state = request_builder.of(cloud, request)
        notes += state.notes
        found = group_fit.least(state)
        least = now if found is None else min(now, found)
    kinds = server_groups.kinds_of(placed)
    if len(kinds) > 1:
        notes.append(
            f"its VMs are of several flavors ({', '.join(kinds)}): the least possible takes all "
            "for the largest"
        )
    gone = len(group.members) - len(servers)
    if gone:
        notes.append(f"{gone} of its members are no servers any more")
    return GroupPlacement(
        group=group,
        servers=servers,
        counts=dict(sorted(counts.items())),
        leaves=dict(sorted(leaves.items(), key=lambda item: (-item[1], item[0]))),
        hop_bytes=None if math.isinf(now) else now,
        least=None if math.isinf(least) else least,
        notes=tuple(notes),
    )
