"""A snapshot without the names that people have given."""

import hashlib
import secrets
from collections.abc import Callable
from dataclasses import replace

from hpc_sched.snapshot.model import Snapshot

# Metadata of aggregates that belong to projects, as Nova has it; anything may follow.
_OWNERS = "filter_tenant_id"


def without_names(snapshot: Snapshot) -> Snapshot:
    """Return the snapshot with other names for servers, server groups and projects.

    The same name becomes the same word within the snapshot, and another one the next time, so
    that nobody can try out names. Hosts, flavors, host aggregates, applications and uuids stay,
    but of the projects that own aggregates.
    """
    salt = secrets.token_bytes(16)

    def word(kind: str, name: str) -> str:
        digest = hashlib.blake2b(name.encode(), digest_size=6, key=salt, person=kind.encode())
        return f"{kind}-{digest.hexdigest()}"

    servers = [
        replace(
            server,
            name=word("server", server.name),
            project_id=word("project", server.project_id),
        )
        for server in snapshot.servers
    ]
    groups = [
        replace(group, name=word("group", group.name), project_id=word("project", group.project_id))
        for group in snapshot.groups
    ]
    aggregates = [
        replace(
            found,
            metadata={
                key: _projects(value, word) if key.startswith(_OWNERS) else value
                for key, value in found.metadata.items()
            },
        )
        for found in snapshot.aggregates
    ]
    return replace(
        snapshot,
        aggregates=tuple(aggregates),
        servers=tuple(sorted(servers, key=lambda server: (server.name, server.uuid))),
        groups=tuple(sorted(groups, key=lambda group: (group.name, group.uuid))),
    )


def _projects(value: str, word: Callable[[str, str], str]) -> str:
    """Return other words for the ids of projects in a list."""
    return ",".join(word("project", name.strip()) for name in value.split(","))
