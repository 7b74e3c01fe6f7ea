"""The live state of a cloud, read from its APIs.

Calls: lists of hypervisors, servers, flavors and server groups in pages of 1,000, one list of
aggregates, and those of :mod:`placement_providers`.
"""

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Any

from hpc_sched import exceptions
from hpc_sched.core.room.provider_tree import Provider
from hpc_sched.snapshot.snapshot_model import Aggregate, Flavor, Group, Hypervisor, Server, Snapshot
from hpc_sched.snapshot.source import connection, placement_providers
from hpc_sched.topology.grouping import by_key

Json = Mapping[str, Any]

PAGE = 1000
# Resource classes to what Nova calls them.
_SIZES = {"VCPU": "vcpus", "MEMORY_MB": "memory_mb", "DISK_GB": "local_gb"}


def take(
    cloud: str | connection.Connect | None = None,
    progress: placement_providers.Progress = lambda _text: None,
) -> Snapshot:
    """Return the state that Nova and Placement report, of all projects.

    The answers are read one after the other: a change in between may show in only some of them.

    :param cloud: see :func:`connection.connect`
    :param progress: is called with a few words on the current call
    :raises exceptions.SnapshotError: with the call that failed, or the part that an answer lacks
    """
    return read(connection.connect(cloud), progress)


def read(
    apis: tuple[connection.Api, connection.Api],
    progress: placement_providers.Progress = lambda _text: None,
) -> Snapshot:
    """Return the state of a cloud whose APIs are connected; see :func:`take`.

    :raises exceptions.ReadingError: for what may be over with the next call
    """
    try:
        return _read(*apis, progress)
    except exceptions.SnapshotError:
        raise
    except (AttributeError, LookupError, TypeError, ValueError) as failure:
        raise exceptions.ReadingError(
            f"an answer of Nova or Placement is not what was expected: {failure!r}"
        ) from failure


def _read(
    nova: connection.Api, placement: connection.Api, progress: placement_providers.Progress
) -> Snapshot:
    taken = datetime.now(UTC).isoformat(timespec="seconds")
    nodes = list(_paged(nova, "/os-hypervisors/detail", "hypervisors", progress))
    notes: list[str] = []
    servers = [
        _server(found, notes)
        for found in _paged(nova, "/servers/detail", "servers", progress, all_tenants="True")
    ]
    groups = [
        _group(found)
        for found in _paged(
            nova, "/os-server-groups", "server_groups", progress, all_projects="True"
        )
    ]
    flavors = [
        _flavor(found)
        for found in _paged(nova, "/flavors/detail", "flavors", progress, is_public="None")
    ]
    progress("aggregates")
    aggregates = [*map(_aggregate, nova.get("/os-aggregates")["aggregates"])]
    totals = {
        str(node["id"]): {name: int(node[size]) for name, size in _SIZES.items() if node.get(size)}
        for node in nodes
    }
    trees, shared = placement_providers.read(placement, totals, progress)
    hypervisors = [_hypervisor(n, trees.get(str(n["id"]), ())) for n in nodes]
    if unknown := sorted(node.nodename for node in hypervisors if not node.capacity):
        notes.append(
            f"Placement knows no resources of {len(unknown)} hypervisor(s), such as {unknown[0]}"
        )
    return Snapshot(
        taken=taken,
        hypervisors=tuple(sorted(hypervisors, key=lambda node: (node.nodename, node.host))),
        servers=tuple(sorted(servers, key=lambda server: (server.name, server.uuid))),
        groups=tuple(sorted(groups, key=lambda group: (group.name, group.uuid))),
        flavors=tuple(sorted(flavors, key=lambda flavor: flavor.name)),
        aggregates=tuple(sorted(aggregates, key=lambda found: (found.name, found.hosts))),
        notes=tuple(sorted(set(notes))),
        shared_providers=shared,
    )


def _paged(
    api: connection.Api, path: str, key: str, progress: placement_providers.Progress, **query: str
) -> Iterable[Json]:
    # Pages of server groups are counted; others begin after the id of an entry and are linked.
    is_counted = key == "server_groups"
    what = key.replace("_", " ")
    count = 0
    place = {"offset": "0"} if is_counted else {}
    while True:
        progress(f"{what} {count}" if count else what)
        answer = api.get(path, limit=str(PAGE), **query, **place)
        yield from (found := answer[key])
        count += len(found)
        # A page may be shorter by a limit in Nova: only the link shows whether there is another.
        links = answer.get(f"{key}_links") or ()
        is_last = not is_counted and not any(link.get("rel") == "next" for link in links)
        if not found or is_last:
            return
        place = {"offset": str(count)} if is_counted else {"marker": str(found[-1]["id"])}


def _hypervisor(found: Json, providers: tuple[Provider, ...]) -> Hypervisor:
    stocks = by_key(item for provider in providers for item in provider.inventories.items())
    return Hypervisor(
        host=str(found["service"]["host"]),
        nodename=str(found["hypervisor_hostname"]),
        enabled=found["status"] == "enabled",
        up=found["state"] == "up",
        capacity={name: sum(one.capacity for one in stocks[name]) for name in sorted(stocks)},
        used={name: sum(one.used for one in stocks[name]) for name in sorted(stocks)},
        cpu_info=found.get("cpu_info") or None,
        providers=providers,
    )


def _server(found: Json, notes: list[str]) -> Server:
    if "flavor" not in found:
        # In a cell that is down: Nova reports little more than the uuid.
        notes.append("a cell does not answer: where its servers are is not known")
    flavor = found.get("flavor") or {}
    attribute = "OS-EXT-SRV-ATTR:"
    return Server(
        uuid=str(found["id"]),
        name=str(found.get("name") or ""),
        project_id=str(found.get("tenant_id") or ""),
        status=str(found.get("status") or "UNKNOWN"),
        host=found.get(f"{attribute}host") or None,
        nodename=found.get(f"{attribute}hypervisor_hostname") or None,
        flavor=_flavor({**flavor, "name": flavor.get("original_name")}),
        created=str(found.get("created") or ""),
        reservation_id=found.get(f"{attribute}reservation_id") or None,
        boots_from_volume=found.get("image") == "",
    )


def _flavor(found: Json) -> Flavor:
    return Flavor(
        name=str(found.get("name") or ""),
        vcpus=int(found.get("vcpus") or 0),
        memory_mb=int(found.get("ram") or 0),
        root_gb=int(found.get("disk") or 0),
        # Under another name in the list of flavors than in a server.
        ephemeral_gb=int(found.get("OS-FLV-EXT-DATA:ephemeral", found.get("ephemeral")) or 0),
        swap_mb=int(found.get("swap") or 0),
        extra_specs=_texts(found.get("extra_specs")),
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
        metadata=_texts(found.get("metadata")),
    )


def _texts(found: Json | None) -> dict[str, str]:
    return {str(key): str(value) for key, value in sorted((found or {}).items())}
