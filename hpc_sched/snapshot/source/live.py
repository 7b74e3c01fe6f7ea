"""The state of a cloud as its APIs tell it now, read through openstacksdk.

Calls: the lists of hypervisors, servers and flavors a page of 1,000 each, of server groups a
page of 1,000, of aggregates and of Placement's providers one each, and one to three for what is
used; where a provider is in none of the answers two of its own.
"""

from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime
from typing import Any

from hpc_sched import exceptions
from hpc_sched.snapshot.model import Aggregate, Flavor, Group, Hypervisor, Server, Snapshot
from hpc_sched.snapshot.source import connection, placement_amounts
from hpc_sched.snapshot.source.connection import Api

Progress = Callable[[str], None]
Json = Mapping[str, Any]

_PAGE = 1000


def take(cloud: str | None = None, progress: Progress = lambda _text: None) -> Snapshot:
    """Return what a cloud's Nova and Placement tell, of all projects.

    The answers are read one after the other: what changes meanwhile may show in some of them
    only. The calls grow with hosts and VMs, not with their product.

    :param cloud: its name in clouds.yaml; by default that of OS_CLOUD, or the OS_* variables
    :param progress: gets a few words on what is being read
    :raises exceptions.SnapshotError: naming the call that failed and the right it needs, or
        what was missing in an answer
    """
    apis = connection.open_(cloud)
    try:
        return _read(apis, progress)
    except (AttributeError, LookupError, TypeError, ValueError) as failure:
        if isinstance(failure, exceptions.SnapshotError):
            raise
        raise exceptions.SnapshotError(
            f"an answer of Nova or Placement is not what was expected: {failure!r}"
        ) from failure


def _read(apis: connection.Apis, progress: Progress) -> Snapshot:
    nova = apis.nova
    taken = datetime.now(UTC).isoformat(timespec="seconds")
    nodes = list(
        _paged(nova, "/os-hypervisors/detail", "hypervisors", progress, what="hypervisors")
    )
    notes: list[str] = []
    servers = [
        _server(found, notes)
        for found in _paged(
            nova, "/servers/detail", "servers", progress, what="servers", all_tenants="True"
        )
    ]
    groups = [
        _group(found) for found in _by_offset(nova, "/os-server-groups", "server_groups", progress)
    ]
    flavors = [
        _flavor(found)
        for found in _paged(
            nova, "/flavors/detail", "flavors", progress, what="flavors", is_public="None"
        )
    ]
    progress("aggregates")
    aggregates = [_aggregate(found) for found in nova.get("/os-aggregates")["aggregates"]]
    amounts = placement_amounts.read(apis.placement, [str(node["id"]) for node in nodes], progress)
    hypervisors = [_hypervisor(node, amounts.get(str(node["id"]))) for node in nodes]
    untold = sorted(node.nodename for node in hypervisors if not node.capacity)
    if untold:
        notes.append(
            f"Placement knows no resources of {len(untold)} hypervisor(s), such as {untold[0]}"
        )
    return Snapshot(
        taken=taken,
        hypervisors=tuple(sorted(hypervisors, key=lambda node: (node.nodename, node.host))),
        servers=tuple(sorted(servers, key=lambda server: (server.name, server.uuid))),
        groups=tuple(sorted(groups, key=lambda group: (group.name, group.uuid))),
        flavors=tuple(sorted(flavors, key=lambda flavor: flavor.name)),
        aggregates=tuple(sorted(aggregates, key=lambda found: (found.name, found.hosts))),
        notes=tuple(sorted(set(notes))),
    )


def _paged(
    api: Api, path: str, key: str, progress: Progress, *, what: str, **query: str
) -> Iterable[Json]:
    """Yield the entries of a list that goes on behind the last one's id."""
    marker: dict[str, str] = {}
    count = 0
    while True:
        progress(f"{what} {count}" if count else what)
        answer = api.get(path, limit=str(_PAGE), **query, **marker)
        found = answer[key]
        yield from found
        count += len(found)
        # Nova's own limit of a page may be lower: only the link tells whether there is more.
        links = answer.get(f"{key}_links") or ()
        if not found or not any(link.get("rel") == "next" for link in links):
            return
        marker = {"marker": str(found[-1]["id"])}


def _by_offset(api: Api, path: str, key: str, progress: Progress) -> Iterable[Json]:
    """Yield the entries of the server groups, which are counted, not linked."""
    count = 0
    while True:
        progress(f"server groups {count}" if count else "server groups")
        found = api.get(path, all_projects="True", limit=str(_PAGE), offset=str(count))[key]
        yield from found
        count += len(found)
        if not found:
            return


def _hypervisor(found: Json, amounts: placement_amounts.Amounts | None) -> Hypervisor:
    amounts = amounts or placement_amounts.Amounts({}, {})
    return Hypervisor(
        host=str(found["service"]["host"]),
        nodename=str(found["hypervisor_hostname"]),
        enabled=found["status"] == "enabled",
        up=found["state"] == "up",
        capacity=amounts.capacity,
        used=amounts.used,
        cpu_info=found.get("cpu_info") or None,
    )


def _server(found: Json, notes: list[str]) -> Server:
    if "flavor" not in found:
        # A cell that is down: Nova tells little more than that the server exists.
        notes.append("a cell does not answer: where its servers are is not known")
    flavor = found.get("flavor") or {}
    attributes = {key: found.get(f"OS-EXT-SRV-ATTR:{key}") for key in _ATTRIBUTES}
    return Server(
        uuid=str(found["id"]),
        name=str(found.get("name") or ""),
        project_id=str(found.get("tenant_id") or ""),
        status=str(found.get("status") or "UNKNOWN"),
        host=attributes["host"] or None,
        nodename=attributes["hypervisor_hostname"] or None,
        flavor=_flavor({**flavor, "name": flavor.get("original_name")}),
        created=str(found.get("created") or ""),
        reservation_id=attributes["reservation_id"] or None,
        boots_from_volume=found.get("image") == "",
    )


_ATTRIBUTES = ("host", "hypervisor_hostname", "reservation_id")


def _flavor(found: Json) -> Flavor:
    return Flavor(
        name=str(found.get("name") or ""),
        vcpus=int(found.get("vcpus") or 0),
        memory_mb=int(found.get("ram") or 0),
        root_gb=int(found.get("disk") or 0),
        # The list of flavors and the flavor of a server call it differently.
        ephemeral_gb=int(found.get("OS-FLV-EXT-DATA:ephemeral", found.get("ephemeral")) or 0),
        swap_mb=int(found.get("swap") or 0),
        extra_specs={
            str(key): str(value) for key, value in sorted((found.get("extra_specs") or {}).items())
        },
    )


def _group(found: Json) -> Group:
    most = (found.get("rules") or {}).get("max_server_per_host")
    return Group(
        uuid=str(found["id"]),
        name=str(found.get("name") or ""),
        project_id=str(found.get("project_id") or ""),
        policy=str(found.get("policy") or ""),
        members=tuple(sorted(str(uuid) for uuid in found.get("members") or ())),
        max_per_host=None if most is None else int(most),
    )


def _aggregate(found: Json) -> Aggregate:
    return Aggregate(
        name=str(found["name"]),
        hosts=tuple(sorted(str(host) for host in found.get("hosts") or ())),
        metadata={
            str(key): str(value) for key, value in sorted((found.get("metadata") or {}).items())
        },
    )
