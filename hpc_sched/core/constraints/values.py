"""The constraints of one group, as checked values."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property

from hpc_sched.core.constraints.constraint import Bounds, Constraint, Value
from hpc_sched.core.constraints.group_size import GroupSize
from hpc_sched.core.constraints.homogeneous import Homogeneous
from hpc_sched.core.constraints.max_leaves import MaxLeaves
from hpc_sched.core.constraints.min_leaves import MinLeaves
from hpc_sched.core.constraints.min_size import MinSize
from hpc_sched.core.constraints.parts.balance import Balance
from hpc_sched.core.constraints.parts.segment import Segment
from hpc_sched.core.constraints.parts.segment_level import SegmentLevel
from hpc_sched.core.constraints.prefer import Prefer
from hpc_sched.core.constraints.require import Require

# Those with values in Constraints, in the order of records and texts, and all with a key.
PARTS: tuple[type[Constraint], ...] = (Segment, SegmentLevel, Balance)
CONSTRAINTS: tuple[type[Constraint], ...] = (
    *(Require, Prefer, MaxLeaves, MinLeaves),
    *(GroupSize, MinSize),
    *PARTS,
)
ALL: tuple[type[Constraint], ...] = (*CONSTRAINTS, Homogeneous)


@dataclass(frozen=True, init=False)
class Constraints:
    """The constraints and preferences of one group.

    Constraints bind the whole group: its members and the new VMs.
    """

    values: Mapping[str, Value]  # by name

    def __init__(self, **values: Value | None) -> None:
        """Keep values by the names of their constraints; None: without it."""
        given = {one.name: value for one in CONSTRAINTS if (value := values.pop(one.name, None))}
        if values.keys():
            raise TypeError(f"there is no constraint {min(values)!r}")
        object.__setattr__(self, "values", given)

    def items(self) -> Iterator[tuple[type[Constraint], Value]]:
        """Yield each constraint with its value."""
        return ((one, self.values[one.name]) for one in CONSTRAINTS if one.name in self.values)

    def __hash__(self) -> int:
        return hash(tuple(sorted(self.values.items())))

    def changed(self, **values: Value | None) -> "Constraints":
        """Return the same with other values; None takes one away."""
        return Constraints(**{**self.values, **values})

    @cached_property
    def bounds(self) -> Bounds:
        """What the planner must keep."""
        found = Bounds()
        for one, value in self.items():
            found = one.bound(value, found)
        return found

    @property
    def bind_place(self) -> bool:
        """True if the group is guaranteed where in the fabric its VMs are."""
        return any(one.binds(value) for one, value in self.items())

    @property
    def group_size(self) -> int | None:
        """Final size of the group."""
        size = self.values.get("group_size")
        return None if size is None else int(size)

    @property
    def min_size(self) -> int | None:
        """VMs of the final size with which the group is of use; None: not stated."""
        size = self.values.get("min_size")
        return None if size is None or self.group_size is None else int(size)

    @property
    def bound_final_size(self) -> bool:
        """True if bounds limit how large the group can become."""
        return self.bounds.most_leaves is not None and self.group_size is not None

    @property
    def contradictions(self) -> dict[tuple[type[Constraint], type[Constraint]], str]:
        """Constraints that contradict each other whatever room there is, with a sentence."""
        found = {}
        for one, value in self.items():
            if (other := one.excluded_by(value, self.values)) is not None:
                found[one, other] = (
                    f"{one.spec.name}={value} and {other.spec.name}={self.values[other.name]} "
                    "contradict each other"
                )
        return found

    def relaxed(self) -> "Constraints":
        """Return the constraints as preferences, as far as they have one."""
        relaxed = [(one, one.relaxed(value)) for one, value in self.items()]
        # A preference of the group comes before what a guarantee becomes.
        return Constraints(
            **{
                name: value
                for one, values in relaxed
                for name, value in values.items()
                if name == one.name or name not in self.values
            }
        )

    def as_logged(self) -> dict[str, Value | None]:
        """Return the values of a record, None for those that the group does not have."""
        return {
            one.name: self.values.get(one.name)
            for one in CONSTRAINTS
            if one.is_always_logged or one.name in self.values
        }


NO_CONSTRAINTS = Constraints()
