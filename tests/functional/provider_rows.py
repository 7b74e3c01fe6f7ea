"""Resource providers as rows of Placement's database; its API would take minutes for hundreds."""

import uuid
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import sqlalchemy as sa
from placement import db_api
from placement.db.sqlalchemy import models

# What the API adds to an inventory.
USUAL = {
    "reserved": 0,
    "min_unit": 1,
    "max_unit": 2**31 - 1,
    "step_size": 1,
    "allocation_ratio": 1.0,
}
OF_PROVIDERS = (
    models.Inventory,
    models.ResourceProviderTrait,
    models.ResourceProviderAggregate,
)


@dataclass
class Provider:
    """One provider to write."""

    uuid: str
    parent: str | None = None
    inventories: dict[str, Mapping[str, Any]] = field(default_factory=dict)
    traits: Sequence[str] = ()
    aggregates: Sequence[str] = ()
    used: dict[str, int] = field(default_factory=dict)  # by a consumer for each class
    name: str | None = None  # the uuid by default


def write(providers: Sequence[Provider]) -> list[str]:
    """Write providers, parents before their children, in one transaction.

    Return the consumers of what is used of them.

    Resource classes, traits and aggregates that Placement lacks are written too. The generation
    of a provider is then 1.
    """
    with db_api.get_placement_engine().begin() as connection:

        def ids(model: Any, key: str, names: Iterable[str]) -> dict[str, int]:
            """Return the ids of rows by name; the missing ones are written."""
            column = getattr(model, key)
            known = set(connection.execute(sa.select(column)).scalars())
            if new := [{key: name} for name in sorted(set(names) - known)]:
                connection.execute(sa.insert(model), new)
            return dict(connection.execute(sa.select(column, model.id)).all())

        classes = ids(models.ResourceClass, "name", (c for p in providers for c in p.inventories))
        traits = ids(models.Trait, "name", (t for p in providers for t in p.traits))
        aggregates = ids(
            models.PlacementAggregate, "uuid", (a for p in providers for a in p.aggregates)
        )
        last = connection.execute(sa.select(sa.func.max(models.ResourceProvider.id))).scalar()
        number = {found.uuid: i for i, found in enumerate(providers, (last or 0) + 1)}
        root: dict[str, int] = {}
        for found in providers:
            root[found.uuid] = root[found.parent] if found.parent else number[found.uuid]
        rows: dict[Any, list[dict[str, Any]]] = {
            models.ResourceProvider: [
                {
                    "id": number[found.uuid],
                    "uuid": found.uuid,
                    "name": found.name or found.uuid,
                    "generation": 1,
                    "root_provider_id": root[found.uuid],
                    "parent_provider_id": number[found.parent] if found.parent else None,
                }
                for found in providers
            ]
        }
        for found in providers:
            own = {"resource_provider_id": number[found.uuid]}
            for name, stock in found.inventories.items():
                row = own | {"resource_class_id": classes[name]}
                rows.setdefault(models.Inventory, []).append(row | USUAL | dict(stock))
                if used := found.used.get(name):
                    row |= {"used": used, "consumer_id": str(uuid.uuid4())}
                    rows.setdefault(models.Allocation, []).append(row)
            for model, key, of_name, names in (
                (models.ResourceProviderTrait, "trait_id", traits, found.traits),
                (models.ResourceProviderAggregate, "aggregate_id", aggregates, found.aggregates),
            ):
                for name in names:
                    rows.setdefault(model, []).append(own | {key: of_name[name]})
        for model, of_model in rows.items():
            if of_model:
                connection.execute(sa.insert(model), of_model)
    return [row["consumer_id"] for row in rows.get(models.Allocation, ())]


def remove(uuids: Iterable[str]) -> None:
    """Remove providers, and those below roots among them; none may hold allocations."""
    provider, allocation = models.ResourceProvider, models.Allocation
    with db_api.get_placement_engine().begin() as connection:
        named = sa.select(provider.id).where(provider.uuid.in_(list(uuids)))
        wanted = sa.select(provider.id).where(
            provider.id.in_(named) | provider.root_provider_id.in_(named)
        )
        numbers = list(connection.execute(wanted).scalars())
        held = sa.select(allocation.consumer_id).where(allocation.resource_provider_id.in_(numbers))
        holding = sorted(set(connection.execute(held).scalars()))
        assert not holding, f"providers to remove have allocations of {', '.join(holding)}"
        for model in OF_PROVIDERS:
            connection.execute(sa.delete(model).where(model.resource_provider_id.in_(numbers)))
        connection.execute(sa.delete(provider).where(provider.id.in_(numbers)))


@dataclass(frozen=True, order=True)
class Held:
    """An amount of a resource class that a consumer has of a provider."""

    consumer: str
    provider: str  # uuid
    resource_class: str
    amount: int
    project: str | None  # None: Placement has no such consumer
    user: str | None
    generation: int | None  # of the consumer


def held(consumers: Iterable[str]) -> list[Held]:
    """Return the allocations of consumers, in order. One query."""
    allocation, provider, consumer = models.Allocation, models.ResourceProvider, models.Consumer
    query = (
        sa.select(
            allocation.consumer_id,
            provider.uuid,
            models.ResourceClass.name,
            allocation.used,
            models.Project.external_id,
            models.User.external_id,
            consumer.generation,
        )
        .join(provider, provider.id == allocation.resource_provider_id)
        .join(models.ResourceClass, models.ResourceClass.id == allocation.resource_class_id)
        .outerjoin(consumer, consumer.uuid == allocation.consumer_id)
        .outerjoin(models.Project, models.Project.id == consumer.project_id)
        .outerjoin(models.User, models.User.id == consumer.user_id)
        .where(allocation.consumer_id.in_(list(consumers)))
    )
    with db_api.get_placement_engine().begin() as connection:
        return sorted(Held(*row) for row in connection.execute(query))


def release(consumers: Iterable[str]) -> None:
    """Remove the allocations of consumers; some may have none."""
    gone = list(consumers)
    with db_api.get_placement_engine().begin() as connection:
        for column in (models.Allocation.consumer_id, models.Consumer.uuid):
            connection.execute(sa.delete(column.class_).where(column.in_(gone)))
