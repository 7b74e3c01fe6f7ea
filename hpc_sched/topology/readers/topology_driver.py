"""Base class of topology drivers, and the installed drivers."""

import abc
from importlib import metadata
from typing import Any

import stevedore
from stevedore.exception import MultipleMatches, NoMatches

from hpc_sched import exceptions
from hpc_sched.topology.model import Topology

NAMESPACE = "hpc_sched.topology"


class TopologyDriver(abc.ABC):
    """A source of fabric descriptions.

    Options are keyword arguments; a driver that reads a file takes ``path``. A subclass has
    :meth:`load`. With :meth:`read` and :meth:`parse` too, an unchanged description is not parsed
    again. It must define neither ``__len__`` nor ``__bool__``: to stevedore a falsy driver is a
    missing one.
    """

    @abc.abstractmethod
    def load(self) -> Topology:
        """Return the topology that is described now.

        :raises exceptions.TopologyError: where the description cannot be read or is wrong
        """

    def read(self) -> Any:
        """Return the description, a value that stays equal until it changes.

        None if the driver cannot detect changes.

        :raises exceptions.TopologyError: where it cannot be read
        """
        return None

    def mark(self, description: Any) -> Any:
        """Return a value to compare a description with later ones.

        The description itself by default; a digest of a large one.
        """
        return description

    def parse(self, description: Any) -> Topology:
        """Return the topology of a description that :meth:`read` returned.

        :raises exceptions.TopologyError: where it is wrong
        """
        return self.load()


def driver_names() -> list[str]:
    """Return the names of the installed drivers, sorted; none of them is imported."""
    return sorted({point.name for point in metadata.entry_points(group=NAMESPACE)})


def driver(name: str, **options: Any) -> TopologyDriver:
    """Return a new driver.

    :param name: in the stevedore group ``hpc_sched.topology``, such as ``yaml``
    :param options: of the driver; ``path`` for those that read a file
    :raises exceptions.TopologyError: for an unknown driver, or options it does not take
    """

    def broken(_manager: Any, _entry_point: Any, error: BaseException) -> None:
        raise exceptions.TopologyError(
            f"topology driver {name!r} cannot be loaded: {error}"
        ) from error

    try:
        found = stevedore.DriverManager(NAMESPACE, name, on_load_failure_callback=broken)
    except NoMatches:
        raise exceptions.TopologyError(
            f"no topology driver {name!r} in the entry points of {NAMESPACE}; "
            f"installed: {', '.join(driver_names()) or 'none'}"
        ) from None
    except MultipleMatches as error:
        raise exceptions.TopologyError(
            f"several packages bring a topology driver {name!r}: {error}"
        ) from error
    try:
        made: TopologyDriver = found.driver(**options)
    except TypeError as error:
        raise exceptions.TopologyError(
            f"topology driver {name!r} does not take these options: {error}"
        ) from error
    return made


def load(driver: str, **options: Any) -> Topology:
    """Return the topology that a driver reads.

    :param driver: its name, see :func:`driver`
    :param options: of the driver
    :raises exceptions.TopologyError: for an unknown driver, options it does not take, or a
        description that cannot be read or is wrong
    """
    return _driver(driver, **options).load()


_driver = driver  # ``load`` has an argument of that name, part of its public signature
