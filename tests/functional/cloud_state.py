"""What a cloud in this process holds: rows, allocations and options, to compare and to draw."""

import json
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, fields
from typing import Any

import nova.conf
import sqlalchemy as sa
from nova import context as nova_context
from nova.db.api import api as api_db
from nova.db.api import models as api_models
from nova.db.main import api as main_db
from nova.db.main import models as main_models
from placement import context as placement_context
from placement import db_api as placement_db
from placement.db.sqlalchemy import models as placement_models

from hpc_sched.demo.nova_cloud import NovaCloud

CONF = nova.conf.CONF

#: Sections of nova.conf that tests set; each gets its value at the start back.
SECTIONS = ("hpc_sched", "filter_scheduler", "scheduler", "quota", "workarounds", "compute", "pci")
# Of a compute node what filters and weighers see in its HostState.
COLUMNS = (
    "vcpus",
    "vcpus_used",
    "memory_mb",
    "memory_mb_used",
    "local_gb",
    "local_gb_used",
    "running_vms",
    "current_workload",
    "numa_topology",
    "pci_stats",
    "stats",
    "cpu_info",
)
GROUP_MODELS = (api_models.InstanceGroupMember, api_models.InstanceGroupPolicy)


@dataclass(frozen=True)
class CloudState:
    """What tests that share a cloud must leave as they found it."""

    instances: Mapping[str, tuple[str, str]]  # uuid to node and name, of all cells, cell0 too
    allocations: Mapping[str, tuple[str, ...]]  # consumer to providers by name
    providers: frozenset[str]  # by name
    build_requests: frozenset[str]  # uuids of instances
    nodes: Mapping[str, Mapping[str, Any]]  # nodename to columns
    aggregates: Mapping[str, tuple[Any, ...]]  # name to hosts and metadata
    services: Mapping[str, tuple[Any, ...]]  # host to whether it is disabled or forced down
    server_groups: frozenset[str]
    options: Mapping[str, Any]


def read(cloud: NovaCloud) -> CloudState:
    """Return what a cloud holds now. Some 10 queries."""
    instances, nodes, services = {}, {}, {}
    for session in _cells(cloud):
        found = sa.select(main_models.Instance).where(main_models.Instance.deleted == 0)
        instances.update(
            {one.uuid: (one.node or "", one.display_name) for one in session.scalars(found)}
        )
        found = sa.select(main_models.ComputeNode).where(main_models.ComputeNode.deleted == 0)
        for node in session.scalars(found):
            values = {name: getattr(node, name) for name in COLUMNS}
            nodes[node.hypervisor_hostname] = values | {"stats": _counts(node.stats)}
        found = sa.select(main_models.Service).where(main_models.Service.deleted == 0)
        for one in session.scalars(found):
            services[f"{one.binary} {one.host}"] = one.disabled, one.forced_down
    with api_db.context_manager.reader.using(nova_context.get_admin_context()) as session:
        aggregates = {
            one.name: (sorted(one.hosts), sorted(one.metadetails.items()))
            for one in session.scalars(sa.select(api_models.Aggregate))
        }
        groups = frozenset(session.scalars(sa.select(api_models.InstanceGroup.uuid)))
        requests = session.scalars(sa.select(api_models.BuildRequest.instance_uuid))
        return CloudState(
            instances=instances,
            allocations=allocations(cloud),
            providers=_providers(cloud),
            build_requests=frozenset(requests),
            nodes=nodes,
            aggregates=aggregates,
            services=services,
            server_groups=groups,
            options=_options(),
        )


def tidy(found: CloudState) -> None:
    """Delete server groups and undo options that a test has set since a state was read."""
    now = _options()
    for name in now.keys() | found.options.keys():
        if now.get(name) != found.options.get(name):
            section, _, option = name.partition(".")
            CONF.set_override(
                option, found.options[name], None if section == "DEFAULT" else section
            )
    with api_db.context_manager.writer.using(nova_context.get_admin_context()) as session:
        group = api_models.InstanceGroup
        new = session.execute(sa.select(group.id, group.uuid)).all()
        ids = [row.id for row in new if row.uuid not in found.server_groups]
        if ids:
            for model in GROUP_MODELS:
                session.execute(sa.delete(model).where(model.group_id.in_(ids)))
            session.execute(sa.delete(group).where(group.id.in_(ids)))


def difference(before: CloudState, after: CloudState) -> list[str]:
    """Return a line for each thing that differs; none if the states are equal."""
    lines = []
    for field in fields(CloudState):
        old, new = (_items(getattr(state, field.name)) for state in (before, after))
        lines += [
            f"{field.name}: {name}: {old.get(name, 'not there')} -> {new.get(name, 'not there')}"
            for name in sorted(old.keys() | new.keys())
            if old.get(name) != new.get(name)
        ]
    return lines


def _items(found: Any) -> Mapping[str, Any]:
    return found if isinstance(found, Mapping) else dict.fromkeys(found, "there")


def _counts(stats: Any) -> dict[str, Any]:
    """Return statistics of a node without zeros, which it has after its first VM."""
    read_ = json.loads(stats) if isinstance(stats, str) else dict(stats or {})
    return {name: value for name, value in read_.items() if str(value) != "0"}


def _cells(cloud: NovaCloud) -> Iterator[Any]:
    for mapping in cloud.cell_mappings.values():
        with (
            nova_context.target_cell(nova_context.get_admin_context(), mapping) as in_cell,
            main_db.get_context_manager(in_cell).reader.using(in_cell) as session,
        ):
            yield session


def allocations(cloud: NovaCloud) -> dict[str, tuple[str, ...]]:
    """Return the providers by name on which each consumer holds something. One query."""
    allocation, provider = placement_models.Allocation, placement_models.ResourceProvider
    query = sa.select(allocation.consumer_id, provider.name).join(
        provider, provider.id == allocation.resource_provider_id
    )
    with _placement(cloud) as session:
        found: dict[str, set[str]] = {}
        for consumer, name in session.execute(query):
            found.setdefault(consumer, set()).add(name)
    return {consumer: tuple(sorted(names)) for consumer, names in found.items()}


def _providers(cloud: NovaCloud) -> frozenset[str]:
    with _placement(cloud) as session:
        return frozenset(session.scalars(sa.select(placement_models.ResourceProvider.name)))


def _placement(cloud: NovaCloud) -> AbstractContextManager[Any]:
    context = placement_context.RequestContext(config=cloud.placement_fixture.conf_fixture.conf)
    reader: AbstractContextManager[Any] = placement_db.placement_context_manager.reader.using(
        context
    )
    return reader


def _options() -> dict[str, Any]:
    return {
        f"{section}.{name}": value
        for section in SECTIONS
        for name, value in _section(section).items()
    }


def _section(section: str) -> dict[str, Any]:
    group = getattr(CONF, section)
    return {name: group[name] for name in group}


def drawing(tree: Mapping[str, Any], state: CloudState) -> str:
    """Return the tree with the VMs and the number of consumers in Placement of each host."""
    on: dict[str, list[str]] = {}
    for uuid, (node, name) in state.instances.items():
        on.setdefault(node, []).append(f"{name} {uuid[:8]}")
    held = Counter(host for hosts in state.allocations.values() for host in hosts)

    def lines(below: Any, indent: str) -> Iterator[str]:
        if isinstance(below, Mapping):
            for name, inner in below.items():
                yield f"{indent}{name}"
                yield from lines(inner, indent + "  ")
        else:
            for host in below:
                there = ", ".join(sorted(on.get(host, []))) or "-"
                yield f"{indent}{host:<8} {held[host]} in Placement; VMs: {there}"

    refused = ", ".join(sorted(on.get("", []))) or "-"
    return "\n".join([*lines(tree, ""), f"without a host: {refused}"])
