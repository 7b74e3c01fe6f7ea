"""The server groups of all projects, and which of their VMs say what class they are."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

import sqlalchemy as sa
from nova import context as nova_context
from nova.db.api import models as api_models

from hpc_sched.core.extra_specs import APP_CLASS
from hpc_sched.nova_glue.io import databases, serialized_objects
from hpc_sched.nova_glue.request import request_extra_specs


@dataclass(frozen=True, slots=True)
class ServerGroup:
    """One server group."""

    uuid: str
    name: str
    project_id: str
    policy: str
    members: int  # VMs that are not deleted
    classed: int  # of these, the VMs whose flavor or hints name an application class

    @property
    def takes_default(self) -> bool:
        """Tell whether ``default_app_class`` decides for VMs of the group."""
        return self.classed < self.members or not self.members


def read(context: nova_context.RequestContext) -> list[ServerGroup]:
    """Return the server groups by policy, name and uuid. Two queries, whatever the size.

    What the VMs say is read from their requests in the API database, which Nova keeps up to
    date when a VM is resized; only the requests that name a class at all are fetched.
    """
    group, policy = api_models.InstanceGroup, api_models.InstanceGroupPolicy
    member, mapping = api_models.InstanceGroupMember, api_models.InstanceMapping
    # Deleted VMs stay members until they are archived.
    exists = sa.and_(
        mapping.instance_uuid == member.instance_uuid,
        mapping.queued_for_delete.is_not(sa.true()),
    )
    query = (
        sa.select(
            group.id,
            group.uuid,
            group.name,
            group.project_id,
            sa.func.min(policy.policy),
            sa.func.count(sa.distinct(mapping.instance_uuid)),
        )
        .outerjoin(policy, policy.group_id == group.id)
        .outerjoin(member, member.group_id == group.id)
        .outerjoin(mapping, exists)
        .group_by(group.id, group.uuid, group.name, group.project_id)
    )
    rows = databases.api_rows(context, query)
    spec = api_models.RequestSpec
    said = (
        sa.select(member.group_id, member.instance_uuid, spec.spec)
        .join(mapping, exists)
        .join(spec, spec.instance_uuid == member.instance_uuid)
        .where(spec.spec.contains(APP_CLASS, autoescape=True))
    )
    classed: Counter[int] = Counter()
    for group_id, _uuid, text in databases.iter_api_rows(context, said):
        classed[group_id] += _names_class(text)
    groups = [
        ServerGroup(uuid, name or "", project or "", chosen or "", members, classed[group_id])
        for group_id, uuid, name, project, chosen, members in rows
    ]
    return sorted(groups, key=lambda found: (found.policy, found.name, found.uuid))


def _names_class(text: str) -> bool:
    """Tell whether a request names an application class; one that cannot be read does not."""
    try:
        spec = serialized_objects.fields_in(text)
        flavor = serialized_objects.fields(spec.get("flavor"))
        extra_specs = serialized_objects.mapping(flavor.get("extra_specs"))
        hints = serialized_objects.mapping(spec.get("scheduler_hints"))
    except serialized_objects.Unreadable:
        return False
    return request_extra_specs.names_class(extra_specs, hints)
