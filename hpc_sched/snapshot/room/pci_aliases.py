"""The devices that a flavor requests: by alias, with those of ``[pci] alias``, and NUMA cells."""

import json
import uuid
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any

from hpc_sched.core.room.resource_request import RequestGroup
from hpc_sched.snapshot.room.flavor_request import CUSTOM, STANDARD_CLASSES, custom_name
from hpc_sched.snapshot.snapshot_model import Flavor, Snapshot

EXTRA_SPEC = "pci_passthrough:alias"


def requested(flavor: Flavor) -> list[tuple[str, int]]:
    """Return the aliases of a flavor and their numbers of devices; invalid ones are left out."""
    parts = (part.partition(":") for part in flavor.extra_specs.get(EXTRA_SPEC, "").split(","))
    return [
        (name.strip(), min(int(number[:6]), 64))
        for name, _, number in parts
        if name.strip() and number.strip().isascii() and number.strip().isdecimal()
    ]


def request_id(number: int) -> str:
    """Return the id of the request for the devices of a flavor's alias, by its position."""
    return str(uuid.uuid5(uuid.NAMESPACE_OID, f"{EXTRA_SPEC}/{number}"))


def groups_of(flavor: Flavor, snapshot: Snapshot) -> list[RequestGroup]:
    """Return a request group for each device; none if Placement does not have the devices."""
    if not snapshot.pci_in_placement:
        return []
    aliases = {name: alias for alias in _aliases(snapshot) if (name := alias.get("name"))}
    groups = [
        (
            count,
            RequestGroup(request_id(number), {_resource_class(alias): 1}, _traits(alias, snapshot)),
        )
        for number, (name, count) in enumerate(requested(flavor))
        if (alias := aliases.get(name))
    ]
    return [
        replace(group, suffix=f"{group.suffix}-{device}")
        for count, group in groups
        for device in range(count)
    ]


def notes(flavor: Flavor, snapshot: Snapshot) -> list[str]:
    """Return sentences on the aliases of a flavor that cannot be counted."""
    wanted = requested(flavor)
    if wanted and snapshot.pci_aliases is None:
        return [f"{EXTRA_SPEC} is not counted: no nova.conf says what the aliases are"]
    known = {alias.get("name") for alias in _aliases(snapshot)}
    missing = sorted({name for name, _ in wanted} - known)
    return [f"PCI alias {name} is not counted: [pci] alias does not have it" for name in missing]


def only_nova_fits(flavor: Flavor, snapshot: Snapshot) -> list[str]:
    """Return what of a flavor only Nova can fit: NUMA cells, PCI devices or neither."""
    specs = flavor.extra_specs
    pinned = specs.get("hw:cpu_policy") in ("dedicated", "mixed")
    by_class = any(key.startswith("resources") and key.endswith(":PCPU") for key in specs)
    in_cells = any(specs.get(key) for key in ("hw:numa_nodes", "hw:mem_page_size", "hw:pmem"))
    is_known = snapshot.pci_aliases is not None and requested(flavor)
    return [
        *(["NUMA cells"] if pinned or by_class or in_cells else []),
        *(["PCI devices"] if is_known else []),
    ]


def _aliases(snapshot: Snapshot) -> Sequence[Mapping[str, Any]]:
    found = []
    for text in snapshot.pci_aliases or ():
        try:
            alias = json.loads(text)
        except (RecursionError, ValueError):
            continue  # nova-api refuses all flavors with aliases
        if isinstance(alias, dict):
            texts = {key: str(value) for key, value in alias.items()}
            found.append(texts | {"name": texts.get("name", "").strip()})
    return found


def _resource_class(alias: Mapping[str, str]) -> str:
    """Return the resource class of an alias (``nova/compute/pci_placement_translator.py``)."""
    if not (name := alias.get("resource_class", "").upper()):
        return f"{CUSTOM}PCI_{alias.get('vendor_id')}_{alias.get('product_id')}".upper()
    return name if name in STANDARD_CLASSES else _custom(name)


def _traits(alias: Mapping[str, str], snapshot: Snapshot) -> tuple[frozenset[str], ...]:
    """Return the required traits: a name that is no trait of any provider is a custom one."""
    known = known_traits(snapshot)
    names = filter(None, alias.get("traits", "").split(","))
    found = {name if name in known else _custom(name) for name in names}
    return tuple(frozenset({trait}) for trait in sorted(found))


def _custom(name: str) -> str:
    return name.upper() if name.upper().startswith(CUSTOM) else custom_name(name)


def known_traits(snapshot: Snapshot) -> Collection[str]:
    """Return the traits of the hosts' providers."""
    return {
        trait
        for node in snapshot.hypervisors
        for provider in node.providers
        for trait in provider.traits
    }
