"""Bare-metal nodes and their ports, in the forms in which Ironic and its client return them."""

import json
import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

# Of Ironic 39.0.0 at microversion 1.53, which tests/test_ironic_service.py compares with the
# installed Ironic: GET /v1/nodes/detail and /v1/ports/detail.
NODE_KEYS = frozenset(
    [
        "allocation_uuid",
        "automated_clean",
        "bios_interface",
        "boot_interface",
        "chassis_uuid",
        "clean_step",
        "conductor",
        "conductor_group",
        "console_enabled",
        "console_interface",
        "created_at",
        "deploy_interface",
        "deploy_step",
        "description",
        "driver",
        "driver_info",
        "driver_internal_info",
        "extra",
        "fault",
        "inspect_interface",
        "inspection_finished_at",
        "inspection_started_at",
        "instance_info",
        "instance_uuid",
        "last_error",
        "links",
        "maintenance",
        "maintenance_reason",
        "management_interface",
        "name",
        "network_interface",
        "owner",
        "portgroups",
        "ports",
        "power_interface",
        "power_state",
        "properties",
        "protected",
        "protected_reason",
        "provision_state",
        "provision_updated_at",
        "raid_config",
        "raid_interface",
        "rescue_interface",
        "reservation",
        "resource_class",
        "states",
        "storage_interface",
        "target_power_state",
        "target_provision_state",
        "target_raid_config",
        "traits",
        "updated_at",
        "uuid",
        "vendor_interface",
        "volume",
    ]
)
PORT_KEYS = frozenset(
    [
        "address",
        "created_at",
        "extra",
        "internal_info",
        "is_smartnic",
        "links",
        "local_link_connection",
        "node_uuid",
        "physical_network",
        "portgroup_uuid",
        "pxe_enabled",
        "updated_at",
        "uuid",
    ]
)
Item = dict[str, Any]


@dataclass
class BareMetal:
    """Nodes and ports as the API returns them; keys that the driver does not read are null."""

    nodes: list[Item] = field(default_factory=list)
    ports: list[Item] = field(default_factory=list)

    def node(self, name: str | None, **more: Any) -> str:
        """Add a node; return its UUID."""
        id_ = str(uuid.uuid5(uuid.NAMESPACE_DNS, f"node {name or len(self.nodes)}"))
        defaults = {"name": name, "traits": [], "properties": {}, "extra": {}}
        self.nodes.append(dict.fromkeys(NODE_KEYS) | defaults | {"uuid": id_} | more)
        return id_

    def port(self, node: str, link: Item, network: str | None = None) -> None:
        """Add a port of a node with a local_link_connection."""
        number = len(self.ports)
        high, middle, low = number.to_bytes(3)
        self.ports.append(
            dict.fromkeys(PORT_KEYS)
            | {
                "uuid": str(uuid.uuid5(uuid.NAMESPACE_DNS, f"port {number}")),
                "address": f"52:54:00:{high:02x}:{middle:02x}:{low:02x}",
                "node_uuid": node,
                "local_link_connection": link,
                "physical_network": network,
                "is_smartnic": False,
            }
        )

    def api(self) -> str:
        """Return the documents of the API."""
        return "\n".join(json.dumps({kind: getattr(self, kind)}) for kind in ("nodes", "ports"))

    def printed(self, title: Callable[[str], str] = str) -> str:
        """Return what the command prints with --fields, one list after the other."""
        node_keys = ("uuid", "name", "traits", "properties", "extra")
        port_keys = ("node_uuid", "local_link_connection", "physical_network")
        lists = ((self.nodes, node_keys), (self.ports, port_keys))
        return "\n".join(
            json.dumps([{title(key): item[key] for key in keys} for item in items], indent=2)
            for items, keys in lists
        )


def titled(key: str) -> str:
    """Return the title of a field in older releases of the client."""
    return " ".join(
        part.upper() if part == "uuid" else part.capitalize() for part in key.split("_")
    )


def link_to(switch: str, port: int = 1, id_: str | None = None) -> Item:
    """Return a local_link_connection; the id follows from the name by default."""
    digits = uuid.uuid5(uuid.NAMESPACE_DNS, switch).hex[:6].upper()
    mac = id_ or f"00:1B:21:{digits[:2]}:{digits[2:4]}:{digits[4:]}"
    return {"switch_id": mac, "port_id": f"Ethernet1/{port}", "switch_info": switch}


def pods(pod_count: int, leaves: int, nodes: int, sides: Sequence[str] = ("a", "b")) -> BareMetal:
    """Return pods of leaves with nodes that have a port on each of two switches of a leaf.

    ::

        CUSTOM_POD_1               CUSTOM_POD_2 ...
          |                  \\
        leaf01a leaf01b       leaf02a leaf02b ...
          |    \\ /   |
        node0001   node0002 ...
    """
    metal = BareMetal()
    number = 0
    for leaf in range(1, pod_count * leaves + 1):
        for port in range(1, nodes + 1):
            number += 1
            pod = (leaf - 1) // leaves + 1
            node = metal.node(f"node{number:04}", traits=[f"CUSTOM_POD_{pod}", "HW_CPU_X86_VMX"])
            for side in sides:
                metal.port(node, link_to(f"leaf{leaf:02}{side}", port), "physnet1")
    return metal
