"""Which devices on the network are one and the same, and which of them are switches.

A report is filed by a name of the operator's; neighbours have a name and an id of their own, or one
of them.
"""

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from hpc_sched import exceptions
from hpc_sched.topology import hostlist, plurals
from hpc_sched.topology.grouping import by_key
from hpc_sched.topology.host_names import short_name
from hpc_sched.topology.readers.lldp.neighbours import Chassis
from hpc_sched.topology.readers.lldp.reports import Report
from hpc_sched.topology.readers.reader_errors import MAX_REMARKS, first_of

_SHOWN = 20  # names in an error
OPTIONS = (
    "set topology_switch_pattern to the names of switches, or keep their files in the subfolder "
    "'switches'"
)


@dataclass(frozen=True, slots=True)
class Devices:
    """The devices by their unique names."""

    of_report: Mapping[str, str]  # name of a report to device
    of_chassis: Mapping[Chassis, str]
    ids: Mapping[str, str]  # device to its chassis id, where it has announced one
    switches: frozenset[str]
    hosts: Mapping[str, str]  # device to the host's name
    remarks: tuple[str, ...]


def devices_of(reports: Iterable[Report], pattern: re.Pattern[str] | None, name: str) -> Devices:
    """Return the devices of reports, sorted by name. Linear in neighbours.

    A device is a switch if its name or id matches ``pattern``. Without a pattern it is one if it is
    filed as a switch, or announces itself as a bridge or router; but a report that is not filed as
    a switch is a host's where others are. Other reports are those of hosts. If only switches
    report, hosts are their other neighbours that have names.

    :raises exceptions.TopologyError: if no report is a host's that way, or a device is connected
        as hosts are and announces itself as switches do
    """
    return _Reader(tuple(reports), pattern, name).devices()


@dataclass
class _Reader:
    reports: tuple[Report, ...]
    pattern: re.Pattern[str] | None
    name: str
    of_chassis: dict[Chassis, str] = field(default_factory=dict)
    of_report: dict[str, str] = field(default_factory=dict)
    ids: dict[str, str] = field(default_factory=dict)
    forwards: dict[str, bool | None] = field(default_factory=dict)
    unclear: dict[str, set[str]] = field(default_factory=dict)  # devices of one name

    def devices(self) -> Devices:
        self._name_chassis()
        self._name_reports()
        for report in self.reports:
            for neighbour in report.neighbours:
                device = self.of_chassis[neighbour.chassis]
                known = self.forwards.setdefault(device, neighbour.forwards)
                if known is None or neighbour.forwards:
                    self.forwards[device] = neighbour.forwards
        switches = self._switches()
        hosts = {
            self.of_report[report.name]: report.name
            for report in self.reports
            if not report.is_switch and self.of_report[report.name] not in switches
        }
        if not hosts:
            hosts = {
                device: device
                for chassis, device in sorted(self.of_chassis.items())
                if chassis.name and device not in switches and not self._may_be_switch(device)
            }
        if not hosts:
            raise exceptions.TopologyError(
                f"{self.name}: expected hosts and the switches that they are connected to, found "
                f"{plurals.text(len(switches), 'device')} that announce themselves as switches: "
                f"{OPTIONS}"
            )
        if self.pattern is None:
            self._check(switches, hosts)
        remarks = [
            f"{self.name}: {plurals.text(len(both), 'switch')} are called {name!r}, read as "
            f"{first_of(sorted(both))}"
            for name, devices in sorted(self.unclear.items())
            if len(both := devices & switches) > 1
        ]
        return Devices(
            self.of_report,
            self.of_chassis,
            self.ids,
            frozenset(switches),
            hosts,
            tuple(remarks[:MAX_REMARKS]),
        )

    def _name_chassis(self) -> None:
        """Give each chassis the name of its device, which is unique.

        Ids of one name are one device where they are at the end of one link: it has another id in
        each protocol. Others are different devices that have a default name.
        """
        names: dict[str, Counter[str]] = {}  # by id
        same: dict[Chassis, Chassis] = {}  # to another one of the same device, up to a first

        def first(chassis: Chassis) -> Chassis:
            while (other := same.setdefault(chassis, chassis)) != chassis:
                same[chassis] = same[other]
                chassis = other
            return chassis

        for report in self.reports:
            ends: dict[tuple[str, str], Chassis] = {}
            for interface, chassis in ((one.interface, one.chassis) for one in report.neighbours):
                names.setdefault(chassis.id, Counter())[chassis.name] += 1
                a, b = first(chassis), first(ends.setdefault((interface, chassis.name), chassis))
                same[max(a, b)] = min(a, b)
        usual = {
            id_: min(found, key=lambda name: (not name, -found[name], name))
            for id_, found in names.items()
        }
        several = Counter(one.name for one in same if one.name and first(one) == one)
        for chassis in sorted(same):
            name = device = chassis.name or usual[chassis.id] or chassis.id
            if several[name] > 1:
                device = f"{name}-{first(Chassis(chassis.id, name)).id}"
                self.unclear.setdefault(name, set()).add(device)
            self.of_chassis[chassis] = device
            self.ids.setdefault(device, chassis.id)

    def _name_reports(self) -> None:
        """Find the device of each report: by its name, else by a short name that is unique."""
        devices = set(self.of_chassis.values())
        short = Counter(short_name(device) for device in devices)
        by_short = {short_name(device): device for device in devices}
        own = Counter(short_name(report.name) for report in self.reports)
        for report in self.reports:
            name = short_name(report.name)
            is_clear = name and short[name] == 1 and own[name] == 1
            known = report.name in devices or not is_clear
            self.of_report[report.name] = report.name if known else by_short[name]

    def _switches(self) -> set[str]:
        filed = {self.of_report[report.name] for report in self.reports if report.is_switch}
        if self.pattern is not None:
            every = {*self.of_chassis.values(), *self.of_report.values()}
            return {device for device in every if self._matches(device)}
        reporting = set(self.of_report.values())
        seen_by_hosts = {
            self.of_chassis[neighbour.chassis]
            for report in self.reports
            if not report.is_switch and not self.forwards.get(self.of_report[report.name])
            for neighbour in report.neighbours
        }
        others = {
            device
            for device, forwards in self.forwards.items()
            if device not in reporting
            and (forwards or (forwards is None and device in seen_by_hosts))
        }
        if filed:
            return filed | others
        return others | {device for device in reporting if self.forwards.get(device)}

    def _matches(self, device: str) -> bool:
        assert self.pattern is not None
        return any(self.pattern.search(one) for one in (device, self.ids.get(device, "")) if one)

    def _may_be_switch(self, device: str) -> bool:
        return self.pattern is None and self.forwards[device] is True

    def _check(self, switches: set[str], hosts: Mapping[str, str]) -> None:
        """Refuse reporters that announce themselves as switches and are connected as hosts are.

        A hypervisor with a bridge of its own announces itself as one.
        """
        if any(report.is_switch for report in self.reports):
            return
        linked: dict[str, set[str]] = {}
        for report in self.reports:
            here = self.of_report[report.name]
            for neighbour in report.neighbours:
                there = self.of_chassis[neighbour.chassis]
                linked.setdefault(here, set()).add(there)
                linked.setdefault(there, set()).add(here)
        # What a host is connected to, and every part of it.
        carriers = {frozenset(linked.get(host, set()) & switches) for host in hosts}
        by_switch = by_key((switch, each) for each in carriers for switch in each)
        doubtful = []
        for report in self.reports:
            device = self.of_report[report.name]
            above = linked.get(device, set())
            if device not in switches or not above or not above.isdisjoint(hosts):
                continue
            if any(above <= each for each in by_switch.get(min(above), ())):
                doubtful.append(report.name)
        if doubtful:
            raise exceptions.TopologyError(
                f"{self.name}: {plurals.text(len(doubtful), 'device')} "
                f"({hostlist.fold(doubtful[:_SHOWN])}) connected as hosts are, which announce "
                f"themselves as bridge or router: {OPTIONS}"
            )
