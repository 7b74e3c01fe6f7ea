"""Base class of topology drivers; the installed drivers, and the one that reads a text."""

import abc
import re
from typing import Any

from hpc_sched import exceptions, extensions
from hpc_sched.topology.model import Topology

NAMESPACE = "hpc_sched.topology"

# Patterns by driver, in the order of the search, for the first part of a text. Blanks are those of
# one line: the search would start again at each of many empty lines.
_MAX_BYTES = 1 << 20
_PATTERNS = (
    ("ibnetdiscover", re.compile(rb'^[ \t]*(?:Switch|Ca|Rt)[ \t]+\d+[ \t]+"[A-Z]-', re.MULTILINE)),
    ("ibnetdiscover", re.compile(rb"^(?:CA|SW|RT)[ \t]+\d+[ \t]+\d+[ \t]+0x", re.MULTILINE)),
    # Of JSON, before YAML: keys that only these have.
    (
        "kubernetes",
        re.compile(rb'"kind"\s{0,9}:\s{0,9}"(?:Node|NodeList|ConfigMap)"|"network_layers"\s{0,9}:'),
    ),
    ("lldp", re.compile(rb'"lldp"\s{0,9}:')),
    (
        "ironic",
        re.compile(
            rb'"(?:local_link_connection|Local Link Connection)"\s{0,9}:'
            rb'|"(?:provision_state|Provisioning State|UUID)"\s{0,9}:'
        ),
    ),
    ("slurm", re.compile(rb"^[ \t]*(?:SwitchName|BlockName)[ \t]*=", re.MULTILINE | re.IGNORECASE)),
    ("slurm", re.compile(rb"^[ \t]*(?:-[ \t]+)?[\"']?topology[\"']?[ \t]*:", re.MULTILINE)),
    ("yaml", re.compile(rb"^[\"']?(?:switches|levels)[\"']?[ \t]*:", re.MULTILINE)),
)
# Other texts on fabrics, which no driver reads, with what to use in place of them.
_OTHERS = (
    (re.compile(rb"^(?:Switch|Ca|Rt)[ \t]+: 0x", re.MULTILINE), "ibnetdiscover without options"),
    (re.compile(rb"^(?:CA|Switch): .*:$", re.MULTILINE), "ibnetdiscover in place of iblinkinfo"),
    (re.compile(rb"^\{ (?:CA|SW) Ports:", re.MULTILINE), "ibnetdiscover in place of OpenSM's list"),
    (re.compile(rb"^(?:Interface:[ \t].*via: LLDP|lldp\.)", re.MULTILINE), "lldpcli -f json"),
    (re.compile(rb'"NetworkNodes"\s{0,9}:'), "the labels of nodes that Topograph writes"),
)


class TopologyDriver(abc.ABC):
    """A source of fabric descriptions.

    Options are keyword arguments; a driver that reads a file takes ``path``. A subclass has
    :meth:`load`. With :meth:`read` and :meth:`parse` too, an unchanged description is not parsed
    again. Where ``is_discovered``, the description changes with every cable that fails: changes
    wait for ``topology_settle_time``.
    """

    is_discovered = False

    @abc.abstractmethod
    def load(self) -> Topology:
        """Return the topology that a driver reads; raises as :func:`driver` and the driver do."""

    def read(self) -> Any:
        """Return the description, equal until it changes, or None; raise TopologyError."""
        return None

    def mark(self, description: Any) -> Any:
        """Return a value to compare a description with later ones, such as a digest."""
        return description

    def parse(self, description: Any) -> Topology:
        """Return the topology of what :meth:`read` returned; raise a TopologyError likewise."""
        return self.load()


def driver_names() -> list[str]:
    """Return the names of the installed drivers, sorted; none of them is imported."""
    return sorted({point.name for point in extensions.points(NAMESPACE)})


def driver_and_path(source: str) -> tuple[str, str]:
    """Return the driver that a source names, empty for none, and what the driver reads."""
    named, colon, path = source.partition(":")
    if colon and path and named in driver_names():
        return named, path
    return "", source


def driver(name: str, **options: Any) -> TopologyDriver:
    """Return a new driver of ``hpc_sched.topology``; TopologyError for a wrong name or options."""
    points = extensions.points(NAMESPACE).select(name=name)
    if not points:
        installed = ", ".join(driver_names()) or "none"
        missing = f"no topology driver {name!r} in the entry points of {NAMESPACE}"
        raise exceptions.TopologyError(f"{missing}; installed: {installed}")
    if len(points) > 1:
        values = ", ".join(sorted(point.value for point in points))
        several = f"several packages bring a topology driver {name!r}: {values}"
        raise exceptions.TopologyError(several)
    try:
        cls = points[name].load()
    except Exception as error:
        raise exceptions.TopologyError(
            f"topology driver {name!r} cannot be loaded: {error}"
        ) from error
    try:
        made: TopologyDriver = cls(**options)
    except TypeError as error:
        raise exceptions.TopologyError(
            f"topology driver {name!r} does not take these options: {error}"
        ) from error
    return made


def load(driver: str, **options: Any) -> Topology:
    """Return the topology that a driver reads; raises as :func:`driver` and the driver do."""
    return _driver(driver, **options).load()


_driver = driver  # ``load`` has an argument of that name, part of its public signature


def driver_of(content: bytes, name: str) -> str:
    """Return the name of the driver for a text; TopologyError, with ``name``, for none."""
    start = content[:_MAX_BYTES].removeprefix(b"\xef\xbb\xbf")
    for driver, pattern in _PATTERNS:
        if pattern.search(start):
            return driver
    for pattern, instead in _OTHERS:
        if pattern.search(start):
            raise exceptions.TopologyError(f"{name}: not read by any driver: use {instead}")
    known = ", ".join(sorted({driver for driver, _ in _PATTERNS}))
    raise exceptions.TopologyError(
        f"{name}: expected a topology that one of the drivers {known} reads; put a driver's name "
        "in front of the file, as in yaml:FILE, to see what is wrong with it"
    )
