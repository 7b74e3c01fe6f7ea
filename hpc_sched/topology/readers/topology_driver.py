"""Drivers that know where a fabric's description comes from."""

import abc
from importlib import metadata
from typing import Any

import stevedore
from stevedore.exception import MultipleMatches, NoMatches

from hpc_sched import exceptions
from hpc_sched.topology.model import Topology

NAMESPACE = "hpc_sched.topology"


class TopologyDriver(abc.ABC):
    """One source of a fabric's description.

    A driver is built with its options as keyword arguments (a driver that reads a
    file takes ``path``) and must define neither ``__len__`` nor ``__bool__``: stevedore
    takes a falsy driver for a missing one.

    A driver has :meth:`load`, or :meth:`read` and :meth:`parse` for a description that need not
    be parsed again as long as it is the same.
    """

    @abc.abstractmethod
    def load(self) -> Topology:
        """Return the fabric as it is described now.

        :raises exceptions.TopologyError: where the description cannot be read or is wrong
        """

    def read(self) -> Any:
        """Return the description: a value that equals the last one where nothing has changed.

        None where the driver cannot tell.

        :raises exceptions.TopologyError: where it cannot be read
        """
        return None

    def mark(self, description: Any) -> Any:
        """Return what is kept of a description to tell whether a later one is the same.

        The description itself by default; something small where that is large.
        """
        return description

    def parse(self, description: Any) -> Topology:
        """Return the fabric of a description that :meth:`read` returned.

        :raises exceptions.TopologyError: where it is wrong
        """
        return self.load()


def driver_names() -> list[str]:
    """Return the names of the installed drivers, sorted; none of them is imported."""
    return sorted({point.name for point in metadata.entry_points(group=NAMESPACE)})


def driver(name: str, **options: Any) -> TopologyDriver:
    """Return a driver, ready to read.

    :param name: in the stevedore group ``hpc_sched.topology``, such as ``yaml``
    :param options: what the driver takes; ``path`` for those that read a file
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
    """Return the fabric that a driver reads.

    :param driver: its name, see :func:`driver`
    :param options: what the driver takes
    :raises exceptions.TopologyError: for an unknown driver, options it does not take, or a
        description that cannot be read or is wrong
    """
    return _driver(driver, **options).load()


_driver = driver  # ``load`` has an argument of that name, which its callers rely on
