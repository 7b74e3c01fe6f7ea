"""What Placement has stored, read from its database."""

from __future__ import annotations

import sqlalchemy as sa


def allocations(engine: sa.Engine) -> dict[str, dict[str, int]]:
    """Return what is held of hosts' VCPUs: consumer to host to VCPUs."""
    text = (
        "SELECT consumer_id, name, used FROM allocations JOIN resource_providers "
        "ON resource_providers.id = resource_provider_id WHERE resource_class_id = 0"
    )
    found: dict[str, dict[str, int]] = {}
    with engine.connect() as connection:
        for consumer, host, used in connection.execute(sa.text(text)):
            found.setdefault(consumer, {})[host] = used
    return found


def providers(engine: sa.Engine) -> dict[str, str]:
    """Return the host of each provider."""
    with engine.connect() as connection:
        return dict(connection.execute(sa.text("SELECT uuid, name FROM resource_providers")).all())
