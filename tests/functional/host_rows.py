"""Compute nodes as rows: of Nova's databases, and of Placement's their resource providers."""

from collections.abc import Iterable, Mapping
from typing import Any

import sqlalchemy as sa
from nova import context as nova_context
from nova import objects
from nova.db.api import api as api_db
from nova.db.api import models as api_models
from nova.db.main import api as main_db
from nova.db.main import models as main_models

from hpc_sched.demo.nova_cloud import NovaCloud
from tests.functional import nova_objects
from tests.functional.provider_rows import Provider


def add(
    cloud: NovaCloud, hosts: Mapping[str, Mapping[str, Any]], cell: str = "cell1"
) -> dict[str, objects.ComputeNode]:
    """Write a compute node for each host, without a provider; return them by host.

    :param hosts: fields of :func:`tests.functional.nova_objects.compute_node`, by host
    """
    mapping = cloud.cell_mappings[cell]
    with nova_context.target_cell(nova_context.get_admin_context(), mapping) as in_cell:
        return {
            host: nova_objects.stored_compute_node(in_cell, mapping, host, **fields)
            for host, fields in hosts.items()
        }


def provider(node: objects.ComputeNode, traits: Iterable[str] = ()) -> Provider:
    """Return the provider of a compute node; what is in use there is left out."""
    return Provider(
        node.uuid,
        name=node.host,
        inventories=dict(nova_objects.inventories(node)),
        # Nova asks for providers of its own.
        traits=["OWNER_NOVA", *traits],
    )


def remove(cloud: NovaCloud, hosts: Iterable[str], cell: str = "cell1") -> None:
    """Remove compute nodes, their services and mappings, not their providers."""
    gone = list(hosts)
    admin = nova_context.get_admin_context()
    with (
        nova_context.target_cell(admin, cloud.cell_mappings[cell]) as in_cell,
        main_db.get_context_manager(in_cell).writer.using(in_cell) as session,
    ):
        for model in (main_models.ComputeNode, main_models.Service):
            session.execute(sa.delete(model).where(model.host.in_(gone)))
    with api_db.context_manager.writer.using(admin) as session:
        mapping = api_models.HostMapping
        session.execute(sa.delete(mapping).where(mapping.host.in_(gone)))
