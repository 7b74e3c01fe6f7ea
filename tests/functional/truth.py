"""What the plugin believes of a group, beside what Nova's API and Placement say."""

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from hpc_sched.demo.nova_cloud import NovaCloud
from hpc_sched.nova_glue.read import request_spec
from hpc_sched.nova_glue.read.instances import group_members


@contextmanager
def believed(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[group_members.GroupMembership]]:
    """Collect the groups that the plugin reads while the block runs, unchanged.

    Not those of requests whose RequestSpec alone does not show that they move a VM.
    """
    seen: list[group_members.GroupMembership] = []
    real = group_members.read

    def read(
        request: request_spec.RequestedGroup, *args: Any, **kwargs: Any
    ) -> group_members.GroupMembership:
        found = real(request, *args, **kwargs)
        if request.is_move == found.is_move:
            seen.append(found)
        return found

    with monkeypatch.context() as patch:
        patch.setattr(group_members, "read", read)
        yield seen


def true_members(cloud: NovaCloud, group: str, without: str | None = None) -> Counter[str]:
    """Return the VMs per node of a server group: by the API's host, else by the allocation.

    :param without: a VM left out, the one that moves
    """
    members: Counter[str] = Counter()
    providers = {rp["uuid"]: rp["name"] for rp in cloud._get_all_providers()}
    for uuid in cloud.api.get_server_group(group)["members"]:
        if uuid == without:
            continue
        server = cloud.api.get_server(uuid)
        node = server["OS-EXT-SRV-ATTR:hypervisor_hostname"]
        if node is None:
            for provider in cloud._get_allocations_by_server_uuid(uuid):
                node = providers[provider]
        if node is not None:
            members[node] += 1
    return members


def nodes(group: group_members.GroupMembership) -> Counter[str]:
    """Return the believed members per node."""
    counts: Counter[str] = Counter()
    for (host, node), count in group.members.items():
        counts[node or host] += count
    return counts
