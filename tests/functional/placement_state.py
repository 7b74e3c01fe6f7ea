"""What Placement's database holds: inventories, traits, aggregates and allocations."""

from contextlib import AbstractContextManager
from typing import Any

import sqlalchemy as sa
from placement import context as placement_context
from placement import db_api as placement_db
from placement.db.sqlalchemy import models as placement_models

from hpc_sched.demo.nova_cloud import NovaCloud
from hpc_sched.nova_glue.claim.holds import hold_provider

# Of an inventory, beside its resource class.
STOCK = ("total", "reserved", "min_unit", "max_unit", "step_size", "allocation_ratio")


def held(cloud: NovaCloud) -> dict[str, list[str]]:
    """Return the providers by name on which each consumer holds something. One query."""
    return {
        consumer: sorted({name for name, _, _ in amounts})
        for consumer, amounts in allocations(cloud).items()
    }


def allocations(cloud: NovaCloud) -> dict[str, tuple[tuple[str, str, int], ...]]:
    """Return provider, resource class and amount of what each consumer holds. One query.

    Without the turn that schedulers take to write holds: it stays.
    """
    allocation, provider = placement_models.Allocation, placement_models.ResourceProvider
    resource_class = placement_models.ResourceClass
    query = (
        sa.select(allocation.consumer_id, provider.name, resource_class.name, allocation.used)
        .join(provider, provider.id == allocation.resource_provider_id)
        .join(resource_class, resource_class.id == allocation.resource_class_id)
        .where(allocation.consumer_id != hold_provider.TURN)
    )
    found: dict[str, list[tuple[str, str, int]]] = {}
    with _placement(cloud) as session:
        for consumer, *amount in session.execute(query):
            found.setdefault(consumer, []).append(tuple(amount))
    return {consumer: tuple(sorted(amounts)) for consumer, amounts in found.items()}


def providers(cloud: NovaCloud) -> dict[str, tuple[Any, ...]]:
    """Return the inventories, traits and aggregates of each provider by name. Four queries.

    Without the provider of the holds, which is made with the first one and stays.
    """
    provider, inventory = placement_models.ResourceProvider, placement_models.Inventory
    resource_class, trait = placement_models.ResourceClass, placement_models.Trait
    aggregate = placement_models.PlacementAggregate
    of_trait = placement_models.ResourceProviderTrait
    of_aggregate = placement_models.ResourceProviderAggregate
    queries = (
        sa.select(
            inventory.resource_provider_id,
            resource_class.name,
            *(getattr(inventory, name) for name in STOCK),
        ).join(resource_class, resource_class.id == inventory.resource_class_id),
        sa.select(of_trait.resource_provider_id, trait.name).join(
            trait, trait.id == of_trait.trait_id
        ),
        sa.select(of_aggregate.resource_provider_id, aggregate.uuid).join(
            aggregate, aggregate.id == of_aggregate.aggregate_id
        ),
    )
    with _placement(cloud) as session:
        name_of = dict(session.execute(sa.select(provider.id, provider.name)).all())
        found: dict[str, list[tuple[Any, ...]]] = {name: [] for name in name_of.values()}
        for query in queries:
            for number, *has in session.execute(query):
                name = name_of.get(number, f"provider {number}, which is gone")
                found.setdefault(name, []).append(tuple(has))
    found.pop(hold_provider.NAME, None)
    return {name: tuple(sorted(has, key=repr)) for name, has in found.items()}


def _placement(cloud: NovaCloud) -> AbstractContextManager[Any]:
    context = placement_context.RequestContext(config=cloud.placement_fixture.conf_fixture.conf)
    reader: AbstractContextManager[Any] = placement_db.placement_context_manager.reader.using(
        context
    )
    return reader
