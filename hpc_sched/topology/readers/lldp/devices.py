"""Which devices on the network are one and the same, and which of them are switches.

A report is filed by a name of the operator's; neighbours have a name and an id of their own, or one
of them.
"""

import re
from collections import Counter
from collections.abc import Sequence
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


@dataclass
class Devices:
    """The devices of reports by their unique names, sorted. Linear in neighbours.

    A device is a switch if its name or id matches ``pattern``. Without a pattern it is one if it is
    filed as a switch, or announces itself as a bridge or router; but a report that is not filed as
    a switch is a host's where others are. Other reports are those of hosts. If only switches
    report, hosts are their other neighbours that have names.

    Raises a TopologyError if no report is a host's that way, or a device is connected as hosts are
    and announces itself as switches do.
    """

    reports: Sequence[Report]
    pattern: re.Pattern[str] | None
    name: str  # of the text, in errors
    of_report: dict[str, str] = field(default_factory=dict)  # name of a report to device
    of_chassis: dict[Chassis, str] = field(default_factory=dict)
    ids: dict[str, str] = field(default_factory=dict)  # device to an announced chassis id
    switches: set[str] = field(default_factory=set)
    hosts: dict[str, str] = field(default_factory=dict)  # device to the host's name
    remarks: list[str] = field(default_factory=list)
    _forwards: dict[str, bool | None] = field(default_factory=dict)

    def __post_init__(self) -> None:
        unclear = self._name_chassis()
        self._name_reports()
        stated = by_key(
            (self.of_chassis[neighbour.chassis], neighbour.forwards)
            for report in self.reports
            for neighbour in report.neighbours
        )
        # True if it says so once; None if it never says anything.
        self._forwards = {
            device: max((one for one in found if one is not None), default=None)
            for device, found in stated.items()
        }
        self.switches = self._found_switches()
        self.hosts = {
            self.of_report[report.name]: report.name
            for report in self.reports
            if not report.is_switch and self.of_report[report.name] not in self.switches
        } or {
            device: device
            for chassis, device in sorted(self.of_chassis.items())
            if chassis.name
            and device not in self.switches
            and (self.pattern is not None or not self._forwards[device])
        }
        if not self.hosts:
            raise exceptions.TopologyError(
                f"{self.name}: expected hosts and the switches that they are connected to, found "
                f"{plurals.text(len(self.switches), 'device')} that announce themselves as "
                f"switches: {OPTIONS}"
            )
        if self.pattern is None and not any(report.is_switch for report in self.reports):
            self._check()
        several = [
            f"{self.name}: {plurals.text(len(both), 'switch')} are called {name!r}, read as "
            f"{first_of(sorted(both))}"
            for name, devices in sorted(unclear.items())
            if len(both := devices & self.switches) > 1
        ]
        self.remarks = several[:MAX_REMARKS]

    def _name_chassis(self) -> dict[str, set[str]]:
        """Give each chassis the name of its device, which is unique; return devices of one name.

        Ids of one name are one device where they are at the end of one link: it has another id in
        each protocol. Others are different devices that have a default name.
        """
        unclear: dict[str, set[str]] = {}
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
                unclear.setdefault(name, set()).add(device)
            self.of_chassis[chassis] = device
            self.ids.setdefault(device, chassis.id)
        return unclear

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

    def _found_switches(self) -> set[str]:
        if self.pattern is not None:
            return {
                device
                for device in {*self.of_chassis.values(), *self.of_report.values()}
                if any(map(self.pattern.search, filter(None, (device, self.ids.get(device)))))
            }
        reporting = set(self.of_report.values())
        seen_by_hosts = {
            self.of_chassis[neighbour.chassis]
            for report in self.reports
            if not report.is_switch and not self._forwards.get(self.of_report[report.name])
            for neighbour in report.neighbours
        }
        others = {
            device
            for device, forwards in self._forwards.items()
            if device not in reporting
            and (forwards or (forwards is None and device in seen_by_hosts))
        }
        filed = {self.of_report[report.name] for report in self.reports if report.is_switch}
        return others | (filed or {device for device in reporting if self._forwards.get(device)})

    def _check(self) -> None:
        """Refuse reporters that announce themselves as switches and are connected as hosts are.

        A hypervisor with a bridge of its own announces itself as one.
        """
        links = {
            (self.of_report[report.name], self.of_chassis[neighbour.chassis])
            for report in self.reports
            for neighbour in report.neighbours
        }
        ends = by_key(end for a, b in links for end in ((a, b), (b, a)))
        linked = {device: set(others) for device, others in ends.items()}
        # What a host is connected to, and every part of it.
        carriers = {frozenset(linked.get(host, set()) & self.switches) for host in self.hosts}
        by_switch = by_key((switch, each) for each in carriers for switch in each)

        def is_doubtful(device: str) -> bool:
            above = linked.get(device)
            if device not in self.switches or not above or not above.isdisjoint(self.hosts):
                return False
            return any(above <= each for each in by_switch.get(min(above), ()))

        doubtful = [one.name for one in self.reports if is_doubtful(self.of_report[one.name])]
        if doubtful:
            raise exceptions.TopologyError(
                f"{self.name}: {plurals.text(len(doubtful), 'device')} "
                f"({hostlist.fold(doubtful[:_SHOWN])}) connected as hosts are, which announce "
                f"themselves as bridge or router: {OPTIONS}"
            )
