"""The constraints and preferences of a group."""

from dataclasses import dataclass, replace
from typing import Self

from hpc_sched import exceptions
from hpc_sched.topology.model import Topology


@dataclass(frozen=True, slots=True)
class Constraints:
    """The constraints and preferences of one group, as checked values.

    Levels are names of the topology's levels. Constraints bind the whole group: its members and
    the new VMs.
    """

    require: str | None = None  # all VMs under one switch of this level
    prefer: str | None = None  # the same, if such a switch has room
    max_leaves: int | None = None  # most leaf switches that the group may use
    group_size: int | None = None  # final size of the group

    @property
    def bind_place(self) -> bool:
        """True if the group is guaranteed where in the fabric its VMs are."""
        return self.require is not None or self.max_leaves is not None

    @property
    def bound_final_size(self) -> bool:
        """True if ``max_leaves`` limits how large the group can become."""
        return self.max_leaves is not None and self.group_size is not None

    def relaxed(self) -> Self:
        """Return the constraints as preferences; ``max_leaves`` has none."""
        return replace(self, require=None, prefer=self.prefer or self.require, max_leaves=None)


NO_CONSTRAINTS = Constraints()


def level_of(topology: Topology, name: str | None) -> int:
    """Return the number of a level, 1 for leaves, the roots' for None; or raise RequestError."""
    if name is None:
        return topology.depth
    try:
        return min(topology.request_levels.index(name) + 1, topology.depth)
    except ValueError:
        raise exceptions.RequestError(
            f"there is no level {name!r}: expected one of {', '.join(topology.request_levels)}"
        ) from None
