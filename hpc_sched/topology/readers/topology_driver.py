"""Base class of topology drivers; the installed drivers, and the one that reads a text.

A text belongs to the first driver, by rank, with a pattern that matches it:

==== ================= =================================================================
rank driver            why there
==== ================= =================================================================
0    of other packages their patterns are expected to match their own texts only
1    ``ibnetdiscover`` lines that no other text has
2    ``kubernetes``    JSON, recognised by the kind of its objects
3    ``lldp``          JSON, recognised by one key
4    ``ironic``        JSON, recognised by keys such as "UUID" that other objects may have
5    ``slurm``         lines, or a YAML key that JSON may have at the start of a line
6    ``yaml``          keys that any of the other texts may have
==== ================= =================================================================

``aggregates`` reads no text. What a new driver needs is listed in :mod:`driver_options`.
"""

import abc
import itertools
import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any, ClassVar, cast

from hpc_sched import exceptions, extensions
from hpc_sched.topology.model import Topology

NAMESPACE = "hpc_sched.topology"

# The first part of a text, by which its driver is recognised.
_MAX_BYTES = 1 << 20


class TopologyDriver(abc.ABC):
    """A source of fabric descriptions.

    Options are keyword arguments; a driver that reads a file takes ``path``. A subclass has
    :meth:`load`. With :meth:`read` and :meth:`parse` too, an unchanged description is not parsed
    again. Where ``is_discovered``, the description changes with every cable that fails: changes
    wait for ``topology_settle_time``.
    """

    is_discovered = False

    # Arguments of the driver that are options of nova.conf's section [hpc_sched], by argument: of
    # oslo.config. hpc_sched's own drivers have theirs in driver_options.
    options: ClassVar[Mapping[str, Any]] = {}

    # How a text is recognised: one of these is found in its first part. Drivers are asked by rank,
    # then name. Blanks are those of one line: the search would start again at each of many empty
    # lines.
    patterns: ClassVar[Sequence[re.Pattern[bytes]]] = ()
    rank: ClassVar[int] = 0
    # Similar texts, which the driver does not read, with what to use in place of them.
    others: ClassVar[Sequence[tuple[re.Pattern[bytes], str]]] = ()

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
    is_named = colon and path and named in driver_names()
    return (named, path) if is_named else ("", source)


def options_of(name: str) -> Mapping[str, Any]:
    """Return the options of a driver by argument; none for one that cannot be loaded."""
    try:
        return getattr(_class_of(name), "options", {})
    except exceptions.TopologyError:
        return {}


def _class_of(name: str) -> Callable[..., TopologyDriver]:
    """Return what an entry point names; TopologyError where that is not one class."""
    points = extensions.points(NAMESPACE).select(name=name)
    if not points:
        raise exceptions.TopologyError(
            f"no topology driver {name!r} in the entry points of {NAMESPACE}; installed: "
            f"{', '.join(driver_names()) or 'none'}"
        )
    if len(points) > 1:
        values = ", ".join(sorted(point.value for point in points))
        raise exceptions.TopologyError(
            f"several packages bring a topology driver {name!r}: {values}"
        )
    try:
        return cast(Callable[..., TopologyDriver], points[name].load())
    except Exception as error:
        raise exceptions.TopologyError(
            f"topology driver {name!r} cannot be loaded: {error}"
        ) from error


def driver(name: str, **options: Any) -> TopologyDriver:
    """Return a new driver of ``hpc_sched.topology``; TopologyError for a wrong name or options."""
    cls = _class_of(name)
    try:
        return cls(**options)
    except TypeError as error:
        raise exceptions.TopologyError(
            f"topology driver {name!r} does not take these options: {error}"
        ) from error


def load(driver: str, **options: Any) -> Topology:
    """Return the topology that a driver reads; raises as :func:`driver` and the driver do."""
    return _driver(driver, **options).load()


_driver = driver  # ``load`` has an argument of that name, part of its public signature


def driver_of(content: bytes, name: str) -> str:
    """Return the name of the driver for a text; TopologyError, with ``name``, for none.

    Imports all drivers; those that cannot be imported recognise nothing.
    """
    start = content[:_MAX_BYTES].removeprefix(b"\xef\xbb\xbf")
    classes = _reading_classes()
    for driver in sorted(classes, key=lambda driver: (classes[driver].rank, driver)):
        if any(pattern.search(start) for pattern in classes[driver].patterns):
            return driver
    for pattern, instead in itertools.chain.from_iterable(cls.others for cls in classes.values()):
        if pattern.search(start):
            raise exceptions.TopologyError(f"{name}: not read by any driver: use {instead}")
    raise exceptions.TopologyError(
        f"{name}: expected a topology that one of the drivers {', '.join(classes)} reads; put a "
        "driver's name in front of the file, as in yaml:FILE, to see what is wrong with it"
    )


def _reading_classes() -> dict[str, type[TopologyDriver]]:
    """Return the drivers that recognise texts, by name, sorted."""
    found = {}
    for name in driver_names():
        with suppress(exceptions.TopologyError):
            cls = _class_of(name)
            if isinstance(cls, type) and issubclass(cls, TopologyDriver) and cls.patterns:
                found[name] = cls
    return found
