"""A snapshot without the names that people have given."""

import hashlib
import secrets
from dataclasses import replace

from hpc_sched.snapshot.model import Snapshot


def without_names(snapshot: Snapshot) -> Snapshot:
    """Return the snapshot with other names for servers, server groups and projects.

    The same name becomes the same word within the snapshot, and another one the next time, so
    that nobody can try out names. Hosts, flavors, applications and uuids stay.
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
    return replace(
        snapshot,
        servers=tuple(sorted(servers, key=lambda server: (server.name, server.uuid))),
        groups=tuple(sorted(groups, key=lambda group: (group.name, group.uuid))),
    )
