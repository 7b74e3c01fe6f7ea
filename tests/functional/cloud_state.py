"""What a cloud in this process holds: rows, allocations and options, to compare and to draw."""

import json
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields
from typing import Any

import nova.conf
import sqlalchemy as sa
from nova import context as nova_context
from nova.db.api import api as api_db
from nova.db.api import models as api_models
from nova.db.main import api as main_db
from nova.db.main import models as main_models

from hpc_sched.demo.nova_cloud import NovaCloud
from hpc_sched.nova_glue.io import loaded_topology
from tests.functional import hold_rows, placement_state

CONF = nova.conf.CONF

#: Sections of nova.conf that tests set; each gets its value at the start back.
SECTIONS = (
    "DEFAULT",
    "hpc_sched",
    "filter_scheduler",
    "scheduler",
    "quota",
    "workarounds",
    "compute",
    "pci",
)
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
    "cpu_allocation_ratio",
    "ram_allocation_ratio",
    "disk_allocation_ratio",
    "hypervisor_type",
    "host_ip",
    "metrics",
)
GROUP_MODELS = (api_models.InstanceGroupMember, api_models.InstanceGroupPolicy)


@dataclass(frozen=True)
class CloudState:
    """What tests that share a cloud must leave as they found it.

    Flavors stay: a test names those that it means, and gets them as it describes them.
    """

    # uuid to node, name, states and flavor, of all cells, cell0 too
    instances: Mapping[str, tuple[Any, ...]]
    # consumer to name of the provider, resource class and amount
    allocations: Mapping[str, tuple[tuple[str, str, int], ...]]
    # name to inventories, traits and aggregates
    providers: Mapping[str, tuple[Any, ...]]
    build_requests: frozenset[str]  # uuids of instances
    nodes: Mapping[str, Mapping[str, Any]]  # nodename to columns
    aggregates: Mapping[str, tuple[Any, ...]]  # name to hosts and metadata
    services: Mapping[str, tuple[Any, ...]]  # host to whether it is disabled or forced down
    host_mappings: Mapping[str, int]  # host to the id of its cell
    server_groups: Mapping[str, tuple[str, ...]]  # uuid to members
    topology: Mapping[str, str]  # digest of the one in use, where the kind of cloud has one
    options: Mapping[str, Any]


def read(cloud: NovaCloud) -> CloudState:
    """Return what a cloud holds now. Some 15 queries."""
    instances, nodes, services = {}, {}, {}
    for session in _cells(cloud):
        found = sa.select(main_models.Instance).where(main_models.Instance.deleted == 0)
        instances.update(
            {
                one.uuid: (
                    one.node or "",
                    one.display_name,
                    one.vm_state,
                    one.task_state,
                    one.instance_type_id,
                )
                for one in session.scalars(found)
            }
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
        groups = {
            one.uuid: tuple(sorted(member.instance_uuid for member in one._members))
            for one in session.scalars(sa.select(api_models.InstanceGroup))
        }
        requests = session.scalars(sa.select(api_models.BuildRequest.instance_uuid))
        mapping = api_models.HostMapping
        mappings = session.execute(sa.select(mapping.host, mapping.cell_id)).all()
        return CloudState(
            instances=instances,
            allocations=placement_state.allocations(cloud),
            providers=placement_state.providers(cloud),
            build_requests=frozenset(requests),
            nodes=nodes,
            aggregates=aggregates,
            services=services,
            host_mappings={row.host: row.cell_id for row in mappings},
            server_groups=groups,
            topology=_topology(cloud),
            options=_options(),
        )


def tidy(found: CloudState) -> None:
    """Delete server groups and undo options that a test has set since a state was read.

    Holds end by themselves, some minutes later.
    """
    hold_rows.remove()
    for name, value in found.options.items():
        section, _, option = name.partition(".")
        if _section(section)[option] != value:
            group = None if section == "DEFAULT" else section
            CONF.clear_override(option, group)
            if _section(section)[option] != value:
                CONF.set_override(option, value, group)
    with api_db.context_manager.writer.using(nova_context.get_admin_context()) as session:
        groups = api_models.InstanceGroup
        new = session.execute(sa.select(groups.id, groups.uuid)).all()
        ids = [row.id for row in new if row.uuid not in found.server_groups]
        if ids:
            for model in GROUP_MODELS:
                session.execute(sa.delete(model).where(model.group_id.in_(ids)))
            session.execute(sa.delete(groups).where(groups.id.in_(ids)))


def difference(before: CloudState, after: CloudState) -> list[str]:
    """Return a line for each thing that differs; none if the states are equal."""
    lines = []
    for field in fields(CloudState):
        old, new = (_items(getattr(state, field.name)) for state in (before, after))
        if field.name == "options":
            # Libraries register some of theirs when they use them first.
            new = {name: value for name, value in new.items() if name in old}
        lines += [
            f"{field.name}: {name}: {_change(old.get(name), new.get(name))}"
            for name in sorted(old.keys() | new.keys())
            if old.get(name) != new.get(name)
        ]
    return lines


def _change(old: Any, new: Any) -> str:
    """Return what one thing has become; None: it is not there."""
    if isinstance(old, Mapping) and isinstance(new, Mapping):
        old, new = (
            {k: v for k, v in old.items() if v != new.get(k)},
            {k: v for k, v in new.items() if v != old.get(k)},
        )
    elif _is_collection(old) and _is_collection(new):
        old, new = [one for one in old if one not in new], [one for one in new if one not in old]
    return f"{old} -> {new}"


def _is_collection(found: Any) -> bool:
    return isinstance(found, tuple) and all(isinstance(one, tuple) for one in found)


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


def _topology(cloud: NovaCloud) -> dict[str, str]:
    loaded = loaded_topology._loaded
    return {"digest": loaded.fabric.digest} if loaded and cloud.options else {}


def _options() -> dict[str, Any]:
    return {
        f"{section}.{name}": _section(section)[name]
        for section in SECTIONS
        for name in _section(section)
        if section != "DEFAULT" or name not in CONF._groups
    }


def _section(section: str) -> Mapping[str, Any]:
    found: Mapping[str, Any] = CONF if section == "DEFAULT" else CONF[section]
    return found


def drawing(tree: Mapping[str, Any], state: CloudState) -> str:
    """Return the tree with the VMs and the number of consumers in Placement of each host."""
    on: dict[str, list[str]] = {}
    for uuid, (node, name, *_) in state.instances.items():
        on.setdefault(node, []).append(f"{name} {uuid[:8]}")
    held = Counter(
        host for has in state.allocations.values() for host in {name for name, _, _ in has}
    )

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
