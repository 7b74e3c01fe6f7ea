"""A snapshot without the names that users have given."""

import hashlib
import secrets

from msgspec.structs import replace

from hpc_sched.snapshot.model import Snapshot

# Prefix of the metadata keys that name the projects of an aggregate, as Nova has it.
_OWNERS = "filter_tenant_id"


def without_names(snapshot: Snapshot) -> Snapshot:
    """Return the snapshot with the names of servers, server groups and projects replaced.

    Equal names become equal words within one snapshot. The salt is new for each snapshot, so
    that guessed names cannot be verified. Hosts, flavors, host aggregates, applications and
    uuids stay, except for the projects that own aggregates.
    """
    salt = secrets.token_bytes(16)

    def word(kind: str, name: str) -> str:
        digest = hashlib.blake2b(name.encode(), digest_size=6, key=salt, person=kind.encode())
        return f"{kind}-{digest.hexdigest()}"

    def projects(names: str) -> str:
        return ",".join(word("project", name.strip()) for name in names.split(","))

    servers = [
        replace(vm, name=word("server", vm.name), project_id=word("project", vm.project_id))
        for vm in snapshot.servers
    ]
    groups = [
        replace(group, name=word("group", group.name), project_id=word("project", group.project_id))
        for group in snapshot.groups
    ]
    aggregates = [
        replace(
            aggregate,
            metadata={
                key: projects(value) if key.startswith(_OWNERS) else value
                for key, value in aggregate.metadata.items()
            },
        )
        for aggregate in snapshot.aggregates
    ]
    return replace(
        snapshot,
        aggregates=tuple(aggregates),
        servers=tuple(sorted(servers, key=lambda server: (server.name, server.uuid))),
        groups=tuple(sorted(groups, key=lambda group: (group.name, group.uuid))),
    )
