"""The values of a RequestSpec that placement needs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

from nova import objects
from nova.conf import CONF
from nova.scheduler import utils as scheduler_utils
from oslo_context import context as oslo_context

from hpc_sched.core import extra_specs as core_extra_specs
from hpc_sched.core.extra_specs import Defaults, FlavorFaults
from hpc_sched.core.hpc_specs import HPCSpecs
from hpc_sched.core.sharing import mdobp_classes
from hpc_sched.core.sharing.cache_interference import Application
from hpc_sched.enabled_plugins import DEDICATED_FILTER, INTERFERENCE_FILTER
from hpc_sched.nova_glue import configured_plugins
from hpc_sched.nova_glue.read import whole_group
from hpc_sched.nova_glue.read.room.nova_fitting import NovaFitting
from hpc_sched.nova_glue.read.room.providers.nova_query import NovaQuery


@dataclass(frozen=True, slots=True)
class RequestedGroup:
    """The group of one request."""

    instance_uuid: str  # of the first VM seen
    group_uuid: str | None  # of the server group; None for an implicit group
    policy: str | None
    max_per_host: int | None  # most VMs of the group on one service host; None: unbounded
    # By the RequestSpec, and what was read of the group since.
    member_uuids: frozenset[str]
    count: int  # VMs of the request when it was made
    query: NovaQuery  # what Nova has requested of Placement for one VM
    hpc_specs: HPCSpecs
    request_id: str | None = None  # of the API request, req-...
    project_id: str | None = None
    fitting: NovaFitting | None = None  # None without NUMA cells and PCI devices
    is_move: bool = False  # the RequestSpec says so; if not, the databases may
    has_lost_group: bool = False  # as has_lost_group(): its instances may have been no group
    # Uuids of its VMs if they are proven to be all members of the server group, as
    # whole_group.vms says; else empty.
    whole: tuple[str, ...] = ()

    @property
    def demand(self) -> dict[str, int]:
        """Resource class to the amount of one VM."""
        return self.query.demand

    @property
    def is_whole(self) -> bool:
        """True if the request is proven to create all VMs of its group.

        An implicit group has the VMs of its request alone.
        """
        is_implicit = self.group_uuid is None and not self.is_move
        return bool(self.whole) or (is_implicit and self.member_uuids <= {self.instance_uuid})

    def knowing(self, members: frozenset[str]) -> Self:
        """Return the same with members of the group that were read."""
        if members <= self.member_uuids:
            return self
        return replace(self, member_uuids=self.member_uuids | members, whole=())

    @property
    def group_id(self) -> str:
        """Key of the group's tie order."""
        return self.group_uuid or self.instance_uuid

    @property
    def name(self) -> str:
        """Name of the request in log lines."""
        group = f"group {self.group_uuid}" if self.group_uuid else "implicit group"
        return f"{group}, instance {self.instance_uuid}"

    @property
    def by_mdobp(self) -> bool:
        """True if MDOBP chooses hosts: inside a leaf, or among all for class ``async``."""
        return self.hpc_specs.by_mdobp and configured_plugins.enabled().has_mdobp

    @property
    def bounded_by(self) -> frozenset[str]:
        """The filters that bound the room on hosts by the VMs of others."""
        plugins = configured_plugins.enabled()
        found = filter(plugins.has_filter, (DEDICATED_FILTER, INTERFERENCE_FILTER))
        # Class extreme means dedicated hosts, whether or not the filter is enabled.
        always = (DEDICATED_FILTER,) if self.hpc_specs.app_class == "extreme" else ()
        return frozenset((*found, *always))


def from_spec(spec: objects.RequestSpec, levels: Sequence[str]) -> RequestedGroup | None:
    """Return the group of a RequestSpec, or None if there is no group to plan.

    None for a rebuild, class ``none``, and without a server group for a single VM and for a
    multi-create that is no implicit group, unless its group may have been deleted.

    :param levels: the names of the fabric's levels
    """
    if scheduler_utils.request_is_rebuild(spec) or not is_or_was_group(spec):
        return None
    hpc_specs = hpc_specs_of(spec, levels)
    if hpc_specs.app_class == "none":
        return None
    group, policy, is_moved = _server_group(spec), policy_of(spec), is_move(spec)
    members, count = _value_of(group, "members") or (), count_of(spec)
    return RequestedGroup(
        instance_uuid=spec.instance_uuid,
        group_uuid=server_group_of(spec),
        policy=policy,
        max_per_host=group.rules.get("max_server_per_host", 1)
        if group is not None and policy == "anti-affinity"
        else None,
        member_uuids=frozenset(members),
        count=count,
        query=NovaQuery.of(spec),
        hpc_specs=hpc_specs,
        request_id=request_id_of(spec),
        project_id=project_of(spec),
        fitting=NovaFitting.of(spec),
        is_move=is_moved,
        has_lost_group=has_lost_group(spec),
        whole=() if is_moved else whole_group.vms(spec.instance_uuid, members, count),
    )


def is_unplanned(spec: objects.RequestSpec) -> bool:
    """True if MDOBP alone chooses hosts: for single VMs and class ``none``, if it places the class.

    :param spec: a RequestSpec of which :func:`from_spec` returns no group
    """
    if scheduler_utils.request_is_rebuild(spec) or not configured_plugins.enabled().has_mdobp:
        return False
    return mdobp_classes.places(application_of(spec)[0].app_class, CONF.hpc_sched.mdobp_classes)


def is_move(spec: objects.RequestSpec) -> bool:
    """True if the request moves an instance, as its destination says.

    Nova restricts a move to the instance's cell, or allows it to leave it; new instances have
    neither. An instance that is rescheduled while it is built may be missed.
    """
    destination = _value_of(spec, "requested_destination")
    return _value_of(destination, "cell") is not None or bool(
        _value_of(destination, "allow_cross_cell_move")
    )


def is_group(spec: objects.RequestSpec) -> bool:
    """True if the VMs of a request belong to a group."""
    return _server_group(spec) is not None or (
        count_of(spec) > 1 and is_implicit_group(extra_specs_of(spec.flavor), hints_of(spec))
    )


def has_lost_group(spec: objects.RequestSpec) -> bool:
    """True if a move may be of an instance whose server group has been deleted.

    Nova then removes the group from the RequestSpec too. The keys that only a group can have remain
    in the flavor, and the instances that were created by the same request are the group.
    Without a server group a new request with such keys is refused.
    """
    if not is_move(spec) or count_of(spec) == 1 or is_group(spec):
        return False
    # Which levels there are does not matter for the keys.
    found = core_extra_specs.read(extra_specs_of(spec.flavor), hints_of(spec), (), _defaults())
    return bool(found.group_keys)


def is_or_was_group(spec: objects.RequestSpec) -> bool:
    """True if the VMs of a request belong to a group, or may have before it was deleted."""
    return is_group(spec) or has_lost_group(spec)


def group_fault(spec: objects.RequestSpec, hpc_specs: HPCSpecs) -> str | None:
    """Return why a new request is refused if its VMs are no group, or None."""
    return hpc_specs.group_fault(
        in_server_group=_server_group(spec) is not None,
        count=count_of(spec),
        is_implicit=is_implicit_group(extra_specs_of(spec.flavor), hints_of(spec)),
    )


def is_implicit_group(extra_specs: Mapping[str, Any], hints: Mapping[str, Any]) -> bool:
    """True if a multi-create without a server group is a group, by the options of this service."""
    return core_extra_specs.is_implicit_group(extra_specs, hints, _defaults())


def request_id_of(spec: objects.RequestSpec) -> str | None:
    """Return the id of the API request of a RequestSpec, or None if it is not known.

    Nova passes it from service to service in the context of a message.
    """
    carried = getattr(spec, "_context", None) or oslo_context.get_current()
    found = getattr(carried, "request_id", None)
    return found if isinstance(found, str) else None


def project_of(spec: objects.RequestSpec) -> str | None:
    """Return the id of the project that makes a request, or None if it is not known."""
    found = _value_of(spec, "project_id")
    return found if isinstance(found, str) else None


def server_group_of(spec: objects.RequestSpec) -> str | None:
    """Return the uuid of a request's server group, or None without one."""
    uuid: str | None = _value_of(_server_group(spec), "uuid")
    return uuid


def policy_of(spec: objects.RequestSpec) -> str | None:
    """Return the policy of a request's server group, or None without one."""
    policy: str | None = _value_of(_server_group(spec), "policy")
    return policy


def members_of(spec: objects.RequestSpec) -> frozenset[str]:
    """Return the uuids of the server group's instances, as the RequestSpec has them."""
    return frozenset(_value_of(_server_group(spec), "members") or ())


def _server_group(spec: objects.RequestSpec) -> objects.InstanceGroup | None:
    return _value_of(spec, "instance_group")


def _value_of(found: Any, name: str) -> Any:
    """Return a field of one of Nova's objects; None if it is not set, or there is no object."""
    return getattr(found, name) if found is not None and name in found else None


def count_of(spec: objects.RequestSpec) -> int:
    """Return the number of VMs that a request was made for, at least 1."""
    return max(_value_of(spec, "num_instances") or 1, 1)


def number_of(spec: objects.RequestSpec) -> int:
    """Return the number of VMs that a request places."""
    return 1 if is_move(spec) else count_of(spec)


def hpc_specs_of(spec: objects.RequestSpec, levels: Sequence[str]) -> HPCSpecs:
    """Return the ``hpc:`` values of a request; never raises for invalid ones.

    The guarantees of a move are preferences where ``relax_moves`` says so.

    :param levels: the names of the fabric's levels
    """
    found = core_extra_specs.read(extra_specs_of(spec.flavor), hints_of(spec), levels, _defaults())
    named = _value_of(_value_of(spec, "requested_destination"), "host")
    relaxes = {"never": False, "named_host": bool(named), "always": True}
    return found.relaxed() if relaxes[CONF.hpc_sched.relax_moves] and is_move(spec) else found


def application_of(spec: objects.RequestSpec) -> tuple[Application, tuple[str, ...]]:
    """Return the application of a request's VMs without its group, and the faults in it."""
    in_group = is_or_was_group(spec)
    return application_in(extra_specs_of(spec.flavor), hints_of(spec), in_group=in_group)


def application_in(
    extra_specs: Mapping[str, Any], hints: Mapping[str, Any], *, in_group: bool
) -> tuple[Application, tuple[str, ...]]:
    """Return the application of a VM, as in core, by the options of this service."""
    return core_extra_specs.application(extra_specs, hints, _defaults(), in_group=in_group)


def check_flavor(extra_specs: Mapping[str, Any], levels: Sequence[str]) -> FlavorFaults:
    """Return the faults of a flavor, as in core, by the options of this service."""
    return core_extra_specs.check_flavor(extra_specs, levels, _defaults())


def has_class(extra_specs: Mapping[str, Any], hints: Mapping[str, Any]) -> bool:
    """True if a flavor or hints name a valid application class."""
    return core_extra_specs.named_class(extra_specs, hints, _defaults()) is not None


def extra_specs_of(flavor: objects.Flavor) -> Mapping[str, Any]:
    """Return a flavor's extra specs; empty if they are not loaded."""
    return _value_of(flavor, "extra_specs") or {}


def hints_of(spec: objects.RequestSpec) -> Mapping[str, Any]:
    """Return a request's scheduler hints."""
    return _value_of(spec, "scheduler_hints") or {}


def _defaults() -> Defaults:
    options = CONF.hpc_sched
    return Defaults(
        options.default_app_class,
        options.default_homogeneous,
        options.allow_user_hints,
        options.implicit_groups,
        frozenset(options.mdobp_classes),
    )
