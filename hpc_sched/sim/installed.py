"""What packages install under a name for the simulator: its policies and queue disciplines.

A policy is registered at an entry point of the group ``hpc_sched.policies`` that has a
:class:`Policy`, a queue discipline at one of ``hpc_sched.queues`` that has a :class:`Queue`, each
under the object's own name. Those of this package are in pyproject.toml, and the package is
installed again after a change there; docs/developer.rst has the steps to add one.
"""

import difflib
from dataclasses import dataclass
from typing import Generic, TypeVar

from hpc_sched import exceptions, extensions
from hpc_sched.sim.policies.placement_policy import Policy
from hpc_sched.sim.queues.queue_discipline import Queue

_Kind = TypeVar("_Kind", Policy, Queue)


@dataclass(frozen=True, slots=True)
class Installed(Generic[_Kind]):
    """The objects of one type at the entry points of one group, by name."""

    group: str
    what: str  # for errors, as in: there is no policy 'x'
    kind: type[_Kind]  # what an entry point must have

    def names(self) -> list[str]:
        """Return the names, sorted, without importing the objects."""
        return sorted({point.name for point in extensions.points(self.group)})

    def load(self, name: str) -> _Kind:
        """Return the object of a name.

        :raises exceptions.SimulationError: for an unknown name, or what cannot be loaded
        """
        points = {point.name: point for point in extensions.points(self.group)}
        if name not in points:
            near = difflib.get_close_matches(name, points, n=1)
            like = f", did you mean {near[0]}" if near else ""
            raise exceptions.SimulationError(
                f"there is no {self.what} {name!r}{like}: expected one of {', '.join(self.names())}"
            )
        where = f"{self.what} {name!r}"
        try:
            found = points[name].load()
        except Exception as error:
            raise exceptions.SimulationError(f"{where} cannot be loaded: {error}") from error
        if not isinstance(found, self.kind):
            raise exceptions.SimulationError(
                f"{where}: expected a {self.kind.__name__} at its entry point, found {found!r}"
            )
        if found.name != name:
            raise exceptions.SimulationError(f"{where}: it calls itself {found.name!r}")
        return found


POLICIES = Installed("hpc_sched.policies", "policy", Policy)
QUEUES = Installed("hpc_sched.queues", "queue discipline", Queue)
