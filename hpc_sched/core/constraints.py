"""What a group asks for beyond compactness."""

from dataclasses import dataclass

from hpc_sched import exceptions
from hpc_sched.topology.model import Topology


@dataclass(frozen=True, slots=True)
class Constraints:
    """The constraints and preferences of one group, as checked values.

    Levels are names of the topology's levels. Members count everywhere: with ``require`` they
    stand under the same switch as the new VMs, and their leaves are among ``max_leaves``.
    """

    require: str | None = None  # all VMs under one switch of this level
    prefer: str | None = None  # the same, where that can be had
    max_leaves: int | None = None  # most leaf switches that the group may use
    group_size: int | None = None  # how large the group will become


NO_CONSTRAINTS = Constraints()


def level_of(topology: Topology, name: str | None) -> int:
    """Return the number of a level, 1 for leaves; None names the roots' level.

    :raises exceptions.RequestError: naming the levels there are
    """
    if name is None:
        return topology.depth
    try:
        return topology.levels.index(name) + 1
    except ValueError:
        raise exceptions.RequestError(
            f"there is no level {name!r}: expected one of {', '.join(topology.levels)}"
        ) from None
