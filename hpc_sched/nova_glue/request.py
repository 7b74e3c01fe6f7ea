"""What a RequestSpec asks for, as plain values."""

from __future__ import annotations

from dataclasses import dataclass

import nova.conf
from nova import objects
from nova.scheduler import utils as scheduler_utils
from oslo_log import log as logging

from hpc_sched import conf, exceptions

CONF = nova.conf.CONF
LOG = logging.getLogger(__name__)

APP_CLASS = "hpc:app_class"
# Classes that are placed by topology; async is consolidated, none is not HPC at all.
TOPOLOGY_CLASSES = frozenset({"extreme", "sync"})
_MAX_SHOWN = 80


@dataclass(frozen=True, slots=True)
class Request:
    """One request for VMs that belong together."""

    instance_uuid: str  # of the first VM seen
    group_uuid: str | None  # of the server group; None for an implicit group
    policy: str | None
    max_per_host: int | None  # most VMs of the group on one service host, where bounded
    member_uuids: frozenset[str]  # as the RequestSpec has them; the database knows better
    count: int  # VMs of the request when it was made
    app_class: str
    demand: dict[str, int]  # resource class to amount, one VM

    @property
    def group_id(self) -> str:
        """The name by which the group's ties are broken."""
        return self.group_uuid or self.instance_uuid


def from_spec(spec: objects.RequestSpec) -> Request | None:
    """Return what a RequestSpec asks for, or None where there is no group to place.

    None for a rebuild, a single VM without a server group, a multi-create where
    ``implicit_groups`` is off, and classes that are not placed by topology. A value that
    cannot be understood is ignored with a WARNING, for a weigher cannot refuse.
    """
    if scheduler_utils.request_is_rebuild(spec):
        return None
    group = spec.instance_group if spec.obj_attr_is_set("instance_group") else None
    count = spec.num_instances if spec.obj_attr_is_set("num_instances") else 1
    if group is None and (count < 2 or not CONF.hpc_sched.implicit_groups):
        return None
    try:
        chosen = app_class(spec)
    except exceptions.RequestError as error:
        LOG.warning("Ignored for instance %s: %s", spec.instance_uuid, error)
        chosen = CONF.hpc_sched.default_app_class
    if chosen not in TOPOLOGY_CLASSES:
        return None
    policy = group.policy if group is not None and group.obj_attr_is_set("policy") else None
    members = group.members if group is not None and group.obj_attr_is_set("members") else None
    return Request(
        instance_uuid=spec.instance_uuid,
        group_uuid=group.uuid if group is not None and group.obj_attr_is_set("uuid") else None,
        policy=policy,
        max_per_host=_max_per_host(group, policy),
        member_uuids=frozenset(members or ()),
        count=max(count, 1),
        app_class=chosen,
        demand=demand(spec),
    )


def app_class(spec: objects.RequestSpec) -> str:
    """Return the application class that a request names, or the default.

    :raises exceptions.RequestError: for a class that does not exist, or a hint with more
        than one value
    """
    wish = _wish(spec, APP_CLASS)
    if wish is None:
        return str(CONF.hpc_sched.default_app_class)
    if wish not in conf.APP_CLASSES:
        raise exceptions.RequestError(
            f"{APP_CLASS}={wish[:_MAX_SHOWN]!r}: expected one of {', '.join(conf.APP_CLASSES)}"
        )
    return wish


def _wish(spec: objects.RequestSpec, key: str) -> str | None:
    """Return what the flavor says of a key, else the hint where hints count, else None."""
    flavor = spec.flavor
    if "extra_specs" in flavor and key in flavor.extra_specs:
        return str(flavor.extra_specs[key])
    if not CONF.hpc_sched.allow_user_hints:
        return None
    hints = spec.scheduler_hints if spec.obj_attr_is_set("scheduler_hints") else None
    values = (hints or {}).get(key)
    if not values:
        return None
    if len(values) > 1:
        raise exceptions.RequestError(f"{key}: expected one value, found {len(values)}")
    return str(values[0])


def demand(spec: objects.RequestSpec) -> dict[str, int]:
    """Return what one VM takes of each resource class, as Nova asks Placement for it."""
    wanted = scheduler_utils.ResourceRequest.from_request_spec(spec)
    return {name: int(amount) for name, amount in wanted.merged_resources().items() if amount}


def _max_per_host(group: objects.InstanceGroup | None, policy: str | None) -> int | None:
    if group is None or policy != "anti-affinity":
        return None
    rules = group.rules if "_rules" in group else {}
    return int((rules or {}).get("max_server_per_host", 1))
