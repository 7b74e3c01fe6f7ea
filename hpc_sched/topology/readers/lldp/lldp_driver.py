"""The ``lldp`` driver: an Ethernet fabric from the neighbours of its hosts and switches."""

import os
import re
from collections.abc import Iterator, Mapping
from typing import Any

from hpc_sched import exceptions
from hpc_sched.topology import hostlist, plurals
from hpc_sched.topology.model import Topology
from hpc_sched.topology.readers import driver_options
from hpc_sched.topology.readers.cabling.ethernet import ethernet_fabric
from hpc_sched.topology.readers.cabling.fabric import Cable
from hpc_sched.topology.readers.lldp import lldp_folder, reports
from hpc_sched.topology.readers.lldp.devices import OPTIONS, Devices
from hpc_sched.topology.readers.reader_errors import matches, pattern_of
from hpc_sched.topology.readers.text_driver import MAX_BYTES, Text, TextDriver


class LldpDriver(TextDriver):
    """Reads outputs of lldpcli: a folder with a file for each host, or one object of them."""

    is_discovered = True
    options = driver_options.of_text("port_pattern", "switch_pattern")
    rank = 3
    patterns = (re.compile(rb'"lldp"\s{0,9}:'),)
    others = (
        (re.compile(rb"^(?:Interface:[ \t].*via: LLDP|lldp\.)", re.MULTILINE), "lldpcli -f json"),
    )

    def __init__(
        self,
        *,
        port_pattern: str | None = None,
        switch_pattern: str | None = None,
        **source: Any,
    ) -> None:
        """Keep the options; see :class:`TextDriver` for the source.

        :param port_pattern: of the names of the interfaces of hosts that count
        :param switch_pattern: of the names or ids of switches
        """
        super().__init__(**source)
        self.port_pattern = pattern_of(port_pattern, "topology_port_pattern")
        self.switch_pattern = pattern_of(switch_pattern, "topology_switch_pattern")

    def read(self) -> Text:
        """Return the current text, one object for a folder; errors name the file and why."""
        if self.path is not None and os.path.isdir(self.path):
            return self.described(lldp_folder.read(self.path, MAX_BYTES), self.path)
        return super().read()

    def parse_text(self, content: bytes, name: str, names: Mapping[str, str]) -> Topology:
        """Return the topology of outputs; raises TopologyError. Linear in neighbours, and cables.

        With an output that is damaged the topology is incomplete.
        """
        found, faults = reports.read(content, name)
        devices = Devices(found, self.switch_pattern, name)
        cables = _cables(devices, self.port_pattern)
        connected = {end for cable in cables for end in (cable.a, cable.b)}
        if connected.isdisjoint(devices.hosts):
            raise exceptions.TopologyError(
                f"{name}: expected hosts that are connected to switches, found "
                f"{plurals.text(len(devices.hosts), 'host')}, "
                f"{plurals.text(len(devices.switches), 'switch')} and no link between them that "
                f"counts: {OPTIONS}; see topology_port_pattern"
            )
        alone = sorted(host for key, host in devices.hosts.items() if key not in connected)
        left_out = {
            "hosts without a switch, which are left out": alone,
            "connected to the switches, without a file of their own, and left out": _unfiled(
                devices
            ),
        }
        remarks = [
            f"{name}: {what}: {hostlist.first(hosts)}" for what, hosts in left_out.items() if hosts
        ]
        try:
            return ethernet_fabric(
                cables,
                {one: one for one in devices.switches},
                devices.hosts,
                ids={one: devices.ids[one] for one in devices.switches if one in devices.ids},
                remarks=[*devices.remarks, *remarks],
                incomplete=faults,
            )
        except exceptions.TopologyError as error:
            raise exceptions.TopologyError(
                *(f"{name}: {text}" for text in error.problems)
            ) from error


def _unfiled(devices: Devices) -> list[str]:
    """Return the devices that switches see and that are neither, sorted, without nameless ones."""
    known = {*devices.switches, *devices.of_report.values(), *devices.hosts}
    return sorted(
        {
            there
            for report in devices.reports
            if devices.of_report[report.name] in devices.switches
            for neighbour in report.neighbours
            if neighbour.chassis.name
            and (there := devices.of_chassis[neighbour.chassis]) not in known
        }
    )


def _cables(devices: Devices, ports: re.Pattern[str] | None) -> list[Cable]:
    """Return the cables between switches and hosts, each once.

    A host's cable counts if the interface of the host matches the pattern. Its own name for that is
    better than what it announces. Where both ends report, the one counts that sees more cables.
    """
    seen: dict[tuple[str, str], dict[str, float | None]] = {}  # from, to; rate by interface
    for here, there, interface, rate in _seen(devices, ports):
        interfaces = seen.setdefault((here, there), {})
        interfaces[interface] = interfaces.get(interface) or rate
    found = []
    for (here, there), interfaces in seen.items():
        other = seen.get((there, here), {})
        if _weight(interfaces) > _weight(other) or (
            _weight(interfaces) == _weight(other) and here <= there
        ):
            found += [Cable(here, there, rate) for rate in interfaces.values()]
    return found


def _weight(interfaces: Mapping[str, float | None]) -> tuple[int, int]:
    """Return the number of cables, and of those with a rate."""
    return len(interfaces), sum(rate is not None for rate in interfaces.values())


def _seen(
    devices: Devices, ports: re.Pattern[str] | None
) -> Iterator[tuple[str, str, str, float | None]]:
    """Yield the device that reports a cable that counts, the other one, interface and rate."""
    hosts, switches, own = devices.hosts, devices.switches, {*devices.of_report.values()}
    for report in devices.reports:
        here = devices.of_report[report.name]
        for neighbour in report.neighbours:
            there = devices.of_chassis[neighbour.chassis]
            to_switch = there in switches and (
                here in switches or (here in hosts and matches(ports, neighbour.interface))
            )
            to_host = (
                here in switches
                and there in hosts
                and (ports is None or (there not in own and ports.search(neighbour.port)))
            )
            if to_switch or to_host:
                yield here, there, neighbour.interface, neighbour.rate
