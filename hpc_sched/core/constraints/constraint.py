"""What a constraint is: all that its ``hpc:`` key means, from the flavor to the explanation.

A new constraint that can be stated by the fields of :class:`Bounds` is a class of its own here,
and an entry in ``values.CONSTRAINTS``. A new *kind* of bound is a field of ``Bounds`` with its
words (``needs``, ``within``), and the planner must keep it wherever it keeps the others:

* ``plan.switch_rooms``: ``rooms_below`` and ``switches_with_room``, what a switch takes within it
* ``plan.exact.best_counts``: the best plan within it, and ``plan.best_fit``: any plan, once the
  time limit has passed
* ``plan.rejection``: ``conflict_of`` for members that break it, ``broken_by`` for planned VMs
* ``plan.pruning.permitted_hosts``: where the VMs of a plan may be instead; if that depends on where
  others are, ``GroupRequest.permitted_next`` and ``Bounds.change_with_each_vm``
* ``plan.planner.attempts``: if it may give way
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import ClassVar, TypeAlias

from hpc_sched.core.constraints.bounds import Bounds
from hpc_sched.core.constraints.extra_spec import ExtraSpec, number_up_to

Value: TypeAlias = str | int


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
    def relaxed(cls, value: Value) -> Mapping[str, Value]:
        """Return what becomes of a value on a move that is not to be refused, by name.

        By default nothing of a guarantee, and any other value as it is.
        """
        return {} if cls.is_guarantee else {cls.name: value}

    @classmethod
    def fault(cls, value: Value, others: Mapping[str, Value]) -> str | None:
        """Return how a value contradicts others whatever room there is, or None."""
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

    @classmethod
    def expected(cls, levels: Sequence[str]) -> str:
        """Return the range."""
        assert cls.spec.most is not None
        return number_up_to(cls.spec.most)
