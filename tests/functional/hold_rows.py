"""The rows of holds in Placement's database."""

import sqlalchemy as sa
from placement import db_api
from placement.db.sqlalchemy import models

from hpc_sched.nova_glue.claim.holds import hold_ends, hold_provider
from tests.functional import provider_rows


def remove() -> None:
    """Remove all holds and their provider, as if nothing had ever been held. Its classes stay."""
    hold_ends._is_held = False
    provider_rows.release(sorted(rows()))
    provider_rows.remove([hold_provider.UUID])


def rows() -> dict[str, dict[str, int]]:
    """Return the amounts of each consumer by resource class, those without a record too."""
    allocation, name = models.Allocation, models.ResourceClass.name
    query = (
        sa.select(allocation.consumer_id, name, allocation.used)
        .join(
            models.ResourceProvider, models.ResourceProvider.id == allocation.resource_provider_id
        )
        .join(models.ResourceClass, models.ResourceClass.id == allocation.resource_class_id)
        .where(models.ResourceProvider.uuid == hold_provider.UUID)
    )
    found: dict[str, dict[str, int]] = {}
    with db_api.get_placement_engine().connect() as connection:
        for consumer, resource_class, used in connection.execute(query):
            found.setdefault(consumer, {})[resource_class] = used
    return found


def records() -> set[str]:
    """Return the uuids of all consumers of which there are records."""
    with db_api.get_placement_engine().connect() as connection:
        return set(connection.execute(sa.select(models.Consumer.uuid)).scalars())


def count() -> tuple[int, int]:
    """Return how many consumers but the turn have rows, and of how many there are records."""
    of_turn = {hold_provider.TURN}
    return len(rows().keys() - of_turn), len(records() - of_turn)
