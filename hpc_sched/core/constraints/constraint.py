"""What a constraint is: all that its ``hpc:`` key means, from the flavor to the explanation.

It speaks to the planner by :class:`Bounds`. A new constraint that their fields can state is a
module of this package and an entry in ``values.CONSTRAINTS``. A new *kind* of bound is a field of
``Bounds`` with its words (``needs``, ``within``), and the planner must keep it wherever it keeps
the others:

* ``plan.switch_rooms``: ``rooms_below`` and ``switches_with_room``, what a switch takes within it
* ``plan.exact.best_counts``: the best plan within it, and ``plan.best_fit``: any plan, once the
  time limit has passed
* ``plan.rejection``: ``conflict_of`` for members that break it, ``broken_by`` for planned VMs
* ``plan.ranking.permitted_hosts``: where the VMs of a plan may be instead; if that depends on where
  others are, ``GroupRequest.permitted_next``, ``leaf_slots`` and ``Bounds.change_with_each_vm``
* ``plan.planner.attempts``: if it may give way, and then :meth:`Constraint.binds`
* ``Bounds.count_leaves``, if one member does not fix where the others may be; and
  ``values.bound_final_size``, if the final size of the group can contradict it
* ``sim.policies.plugin_policies.constrained``, for policies that read no constraints

Each new key is also one of ``aggregate_tree.NOT_LEVELS``: metadata of aggregates with other
``hpc:`` keys names levels of the fabric. A test compares the two.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar, TypeAlias

from hpc_sched import exceptions
from hpc_sched.core.constraints.extra_spec import ExtraSpec
from hpc_sched.core.constraints.parts.group_parts import Parts

if TYPE_CHECKING:
    from hpc_sched.topology.model import Topology

Value: TypeAlias = str | int


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
    parts: Parts | None = None  # into which the group is divided

    def __post_init__(self) -> None:
        """Refuse bounds that no plan can keep.

        :raises ValueError: for ``most_leaves`` below 1
        """
        if self.most_leaves is not None and self.most_leaves < 1:
            raise ValueError(f"max_leaves is {self.most_leaves}: expected at least 1")

    @property
    def count_leaves(self) -> bool:
        """True if a bound counts VMs or leaves: one member does not fix where the others may be."""
        return self.most_leaves is not None or self.change_with_each_vm

    @property
    def change_with_each_vm(self) -> bool:
        """True if the hosts that keep the bounds depend on where VMs of the request were placed."""
        return self.least_leaves > 0 or self.guaranteed_parts is not None

    @property
    def guaranteed_parts(self) -> Parts | None:
        """The parts that give way to nothing."""
        return None if self.parts is None else self.parts.guaranteed

    def stages(self) -> "Iterator[Bounds]":
        """Yield the bounds that plans are tried with, preferred levels left out, best first."""
        if self.parts is None:
            yield self
        else:
            for parts in self.parts.stages():
                yield replace(self, parts=parts)

    def missing_leaves(self, used: int, vms: int) -> int:
        """Return how many leaves that the group does not use yet some more VMs must use.

        :param used: leaves with members
        :param vms: number of VMs more
        """
        return max(min(self.least_leaves - used, vms), 0)

    def required_of(self, used: int, vms: int) -> "Bounds":
        """Return the bounds with no more leaves at least than some more VMs can use.

        None at least if that is one, which any VM uses.
        """
        least = min(self.least_leaves, used + vms)
        return replace(self, least_leaves=least if least > 1 else 0)

    @property
    def needs(self) -> list[str]:
        """What a group needs, in words."""
        found = [f"one {self.level}"] if self.level is not None else []
        if self.parts is not None:
            found.append(self.parts.needs)
        if self.most_leaves is None:
            return found + self.needs_at_least
        if 0 < self.least_leaves <= self.most_leaves:
            is_one = self.least_leaves == self.most_leaves
            number = "exactly" if is_one else f"{self.least_leaves} to"
            return [*found, f"{number} {_leaves(self.most_leaves)}"]
        return [*found, f"at most {_leaves(self.most_leaves)}", *self.needs_at_least]

    @property
    def needs_at_least(self) -> list[str]:
        """The need for leaves at least, in words."""
        return [f"at least {_leaves(self.least_leaves)}"] if self.least_leaves else []

    @property
    def within(self) -> str:
        """The end of a text on the largest group that keeps the bound on leaves at most."""
        return "" if self.most_leaves is None else f" in {_leaves(self.most_leaves)}"


UNBOUND = Bounds()


def _leaves(number: int) -> str:
    return f"{number} leaf switch{'' if number == 1 else 'es'}"


def level_of(topology: "Topology", name: str | None) -> int:
    """Return the number of a level, 1 for leaves, the roots' for None; or raise RequestError."""
    if name is None:
        return topology.depth
    try:
        return min(topology.request_levels.index(name) + 1, topology.depth)
    except ValueError:
        raise exceptions.RequestError(
            f"there is no level {name!r}: expected one of {', '.join(topology.request_levels)}"
        ) from None


class Constraint:
    """One key. Never instantiated: values are in ``Constraints``, by :attr:`name`."""

    spec: ClassVar[ExtraSpec]  # key, valid values, description
    name: ClassVar[str]  # in records, and of options of commands
    is_guarantee: ClassVar[bool] = False  # whether an invalid value of it is refused on moves too
    binds_place: ClassVar[bool] = False  # whether it limits where VMs may be
    is_always_logged: ClassVar[bool] = True  # whether a record has it without a value
    # Why the plan of a decision does not use a switch; "" if this is never the reason.
    why_not: ClassVar[str] = ""
    # Help of its options of ``hpc-sched fits`` and ``hpc-sched simulate``; "" without one.
    fits_help: ClassVar[str] = ""
    simulate_help: ClassVar[str] = ""

    @classmethod
    def parse(cls, text: str, levels: Sequence[str]) -> Value | None:
        """Return the value of a text, or None if it is invalid.

        :param levels: names of the topology's levels; empty if they are not known
        """
        raise NotImplementedError

    @classmethod
    def expected(cls, levels: Sequence[str]) -> str:
        """Return the description of a valid value, for errors."""
        return cls.spec.expected

    @classmethod
    def is_valid(cls, value: object, levels: Sequence[str]) -> bool:
        """True if a value of a record is valid."""
        return isinstance(value, str | int) and cls.parse(str(value), levels) == value

    @classmethod
    def bound(cls, value: Value, bounds: Bounds) -> Bounds:
        """Return bounds with those of a value."""
        return bounds

    @classmethod
    def binds(cls, value: Value) -> bool:
        """True if a value limits where VMs may be, rather than being a preference."""
        return cls.binds_place

    @classmethod
    def relaxed(cls, value: Value) -> Mapping[str, Value]:
        """Return what becomes of a value on a move that is not to be refused, by name.

        By default nothing of a guarantee, and any other value as it is.
        """
        return {} if cls.is_guarantee else {cls.name: value}

    @classmethod
    def excluded_by(cls, value: Value, others: Mapping[str, Value]) -> "type[Constraint] | None":
        """Return the constraint whose value contradicts one whatever room there is, or None."""
        return None

    @classmethod
    def option(cls) -> str:
        """Return the option of commands."""
        return f"--{cls.name.replace('_', '-')}"

    @classmethod
    def of_jobs(cls, value: Value) -> str:
        """Return what a value means for the jobs of a simulation."""
        return f"{cls.spec.name}={value}"


class LevelConstraint(Constraint):
    """A constraint whose value is the name of a level."""

    @classmethod
    def parse(cls, text: str, levels: Sequence[str]) -> Value | None:
        """Return the name, or None if there is no such level."""
        return text if (text in levels if levels else bool(text)) else None

    @classmethod
    def expected(cls, levels: Sequence[str]) -> str:
        """Return the levels."""
        return f"one of the levels {', '.join(levels)}" if levels else "the name of a level"


class NumberConstraint(Constraint):
    """A constraint whose value is a number from 1 on."""

    @classmethod
    def parse(cls, text: str, levels: Sequence[str]) -> Value | None:
        """Return the number, or None if it is invalid or too large."""
        if not re.fullmatch("[0-9]{1,20}", text):
            return None
        most = cls.spec.most
        return int(text) if int(text) >= 1 and (most is None or int(text) <= most) else None
