"""What constraints say to the planner: a small vocabulary of bounds on the places of a group."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from hpc_sched import exceptions

if TYPE_CHECKING:
    from hpc_sched.topology.model import Topology


@dataclass(frozen=True, slots=True)
class Bounds:
    """The bounds on all VMs of a group, members included.

    Levels are names of the topology's levels, see :func:`level_of`.
    """

    level: str | None = None  # all VMs under one switch of this level
    preferred: str | None = None  # the same, if such a switch has room
    most_leaves: int | None = None  # that the group uses
    # That the group uses once it has as many VMs: until then each new VM is on a leaf of its own.
    least_leaves: int = 0

    def __post_init__(self) -> None:
        """Refuse bounds that no plan can keep.

        :raises ValueError: for ``most_leaves`` below 1
        """
        if self.most_leaves is not None and self.most_leaves < 1:
            raise ValueError(f"max_leaves is {self.most_leaves}: expected at least 1")

    @property
    def count_leaves(self) -> bool:
        """True if any bound is one on the number of leaves: one member does not fix the others."""
        return self.most_leaves is not None or self.change_with_each_vm

    @property
    def change_with_each_vm(self) -> bool:
        """True if the hosts that keep the bounds depend on where VMs of the request were placed."""
        return self.least_leaves > 0

    def missing_leaves(self, used: int, vms: int) -> int:
        """Return how many leaves that the group does not use yet some more VMs must use.

        :param used: leaves with members
        :param vms: number of VMs more
        """
        return max(min(self.least_leaves - used, vms), 0)

    @property
    def needs(self) -> list[str]:
        """What a group needs, in words."""
        found = [f"one {self.level}"] if self.level is not None else []
        if self.most_leaves is not None:
            found.append(f"at most {_leaves(self.most_leaves)}")
        if self.least_leaves:
            found.append(f"at least {_leaves(self.least_leaves)}")
        return found

    @property
    def within(self) -> str:
        """The end of a text on a group that keeps the bounds on leaves."""
        found = [_leaves(self.most_leaves)] if self.most_leaves is not None else []
        if self.least_leaves:
            found.append(f"at least {_leaves(self.least_leaves)}")
        return f" in {', '.join(found)}" if found else ""


UNBOUND = Bounds()


def _leaves(number: int) -> str:
    return f"{number} leaf switch{'' if number == 1 else 'es'}"


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
