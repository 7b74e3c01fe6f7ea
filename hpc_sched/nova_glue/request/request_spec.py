"""What a RequestSpec asks for, as plain values."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import nova.conf
from nova import objects
from nova.scheduler import utils as scheduler_utils
from oslo_context import context as oslo_context

from hpc_sched.core.extra_specs import HPCSpecs
from hpc_sched.core.sharing.cache_interference import Application
from hpc_sched.enabled_plugins import DEDICATED_FILTER, INTERFERENCE_FILTER
from hpc_sched.nova_glue import configured_plugins
from hpc_sched.nova_glue.request import request_extra_specs

CONF = nova.conf.CONF


@dataclass(frozen=True, slots=True)
class Request:
    """One request for VMs that belong together."""

    instance_uuid: str  # of the first VM seen
    group_uuid: str | None  # of the server group; None for an implicit group
    policy: str | None
    max_per_host: int | None  # most VMs of the group on one service host, where bounded
    member_uuids: frozenset[str]  # as the RequestSpec has them; the database knows better
    count: int  # VMs of the request when it was made
    demand: dict[str, int]  # resource class to amount, one VM
    hpc_specs: HPCSpecs
    request_id: str | None = None  # of the API request, req-...

    @property
    def group_id(self) -> str:
        """The name by which the group's ties are broken."""
        return self.group_uuid or self.instance_uuid

    @property
    def app_class(self) -> str:
        """The application class."""
        return self.hpc_specs.app_class

    @property
    def by_mdobp(self) -> bool:
        """Tell whether hosts are chosen by MDOBP, inside a leaf where topology chooses that."""
        return self.hpc_specs.shares_hosts and configured_plugins.enabled().has_mdobp

    @property
    def pack_hosts(self) -> bool:
        """Tell whether the fewest hosts are filled inside a leaf."""
        return self.policy != "soft-anti-affinity" and not self.by_mdobp

    @property
    def reads_colocated(self) -> bool:
        """Tell whether it matters which VMs the hosts have already."""
        return bool(self.bounded_by) or self.by_mdobp

    @property
    def bounded_by(self) -> frozenset[str]:
        """The filters whose verdict on the VMs of others bounds the room on hosts."""
        plugins = configured_plugins.enabled()
        found = set(filter(plugins.has_filter, (DEDICATED_FILTER, INTERFERENCE_FILTER)))
        if self.app_class == "extreme":
            # Dedicated hosts are what the class means, whether or not the filter is enabled.
            found.add(DEDICATED_FILTER)
        return frozenset(found)


def from_spec(spec: objects.RequestSpec, levels: Sequence[str]) -> Request | None:
    """Return what a RequestSpec asks for, or None where there is no group to place.

    None for a rebuild, a single VM without a server group, a multi-create where
    ``implicit_groups`` is off, and class ``none``.

    :param levels: the names of the fabric's levels
    """
    if scheduler_utils.request_is_rebuild(spec) or not is_group(spec):
        return None
    asked = request_extra_specs.read(spec, levels)
    if asked.app_class == "none":
        return None
    group = _server_group(spec)
    policy = group.policy if group is not None and group.obj_attr_is_set("policy") else None
    members = group.members if group is not None and group.obj_attr_is_set("members") else None
    return Request(
        instance_uuid=spec.instance_uuid,
        group_uuid=server_group_of(spec),
        policy=policy,
        max_per_host=_max_per_host(group, policy),
        member_uuids=frozenset(members or ()),
        count=count_of(spec),
        demand=demand(spec),
        hpc_specs=asked,
        request_id=request_id_of(spec),
    )


def is_group(spec: objects.RequestSpec) -> bool:
    """Tell whether the VM of a request belongs with others."""
    if _server_group(spec) is not None:
        return True
    return count_of(spec) > 1 and bool(CONF.hpc_sched.implicit_groups)


def request_id_of(spec: objects.RequestSpec) -> str | None:
    """Return the id of the API request that a spec came with, None where that is not known.

    Nova hands it from service to service in the context, which the objects of a message carry.
    """
    carried = getattr(spec, "_context", None) or oslo_context.get_current()
    found = getattr(carried, "request_id", None)
    return found if isinstance(found, str) else None


def server_group_of(spec: objects.RequestSpec) -> str | None:
    """Return the uuid of the server group that a request names, None where it names none."""
    group = _server_group(spec)
    return group.uuid if group is not None and group.obj_attr_is_set("uuid") else None


def _server_group(spec: objects.RequestSpec) -> objects.InstanceGroup | None:
    return spec.instance_group if spec.obj_attr_is_set("instance_group") else None


def application_of(spec: objects.RequestSpec) -> tuple[Application, tuple[str, ...]]:
    """Return what the VMs of a request run, its group left out, and what of it is unclear."""
    return request_extra_specs.application(
        request_extra_specs.extra_specs_of(spec.flavor),
        request_extra_specs.hints_of(spec),
        in_group=is_group(spec),
    )


def demand(spec: objects.RequestSpec) -> dict[str, int]:
    """Return what one VM takes of each resource class, as Nova asks Placement for it."""
    wanted = scheduler_utils.ResourceRequest.from_request_spec(spec)
    return {name: int(amount) for name, amount in wanted.merged_resources().items() if amount}


def count_of(spec: objects.RequestSpec) -> int:
    """Return how many VMs a request was made for, at least 1."""
    count = spec.num_instances if spec.obj_attr_is_set("num_instances") else 1
    return max(count or 1, 1)


def _max_per_host(group: objects.InstanceGroup | None, policy: str | None) -> int | None:
    if group is None or policy != "anti-affinity":
        return None
    rules = group.rules if "_rules" in group else {}
    return int((rules or {}).get("max_server_per_host", 1))
