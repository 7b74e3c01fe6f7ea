"""``hpc:segment``: a group in parts of a number of VMs, each below one switch."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from hpc_sched.core.constraints.constraint import Bounds, Constraint, NumberConstraint, Value
from hpc_sched.core.constraints.extra_spec import WHOLE_NUMBER, ExtraSpec
from hpc_sched.core.constraints.group_size import MOST
from hpc_sched.core.constraints.min_leaves import MinLeaves
from hpc_sched.core.constraints.parts.group_parts import Parts

PREFER = "prefer:"


class Segment(NumberConstraint):
    """VMs of each part of a group, as a guarantee or as a preference.

    Slurm's ``--segment`` and the slices of Kueue: what is tightly coupled is a part of a job.
    """

    name = "segment"
    spec = ExtraSpec(
        "hpc:segment",
        f"({PREFER})?{WHOLE_NUMBER}",
        f"N or prefer:N, N a whole number from 1 to {MOST}",
        "The group is divided into parts of so many VMs, each under one leaf switch, or one switch "
        "of ``hpc:segment_level``; only the last part may be smaller. The parts are near each "
        "other, and each has VMs that follow each other in the order of ranks. A group that does "
        "not fit so is refused; with ``prefer:16`` it is placed as if it had no parts. Default: "
        "none.",
        most=MOST,
    )
    is_guarantee = binds_place = True
    is_always_logged = False
    why_not = "no part of the group fits there in full, or it has one too many there"
    fits_help = "in parts of N, each under one leaf switch; prefer:N where it fits so (hpc:segment)"
    simulate_help = "every job in parts of N, each under one leaf; prefer:N where it fits so"

    @classmethod
    def parse(cls, text: str, levels: Sequence[str]) -> Value | None:
        """Return the number, or the text of a preference, or None if it is invalid."""
        number = super().parse(text.removeprefix(PREFER), levels)
        if number is None or not text.startswith(PREFER):
            return number
        return f"{PREFER}{number}"

    @classmethod
    def number(cls, value: Value) -> int:
        """Return the VMs of a part."""
        return int(str(value).removeprefix(PREFER))

    @classmethod
    def bound(cls, value: Value, bounds: Bounds) -> Bounds:
        """Return bounds with the parts."""
        parts = replace(
            bounds.parts or Parts(),
            size=cls.number(value),
            is_size_preferred=isinstance(value, str),
        )
        return replace(bounds, parts=parts)

    @classmethod
    def binds(cls, value: Value) -> bool:
        """True if the group is refused without it."""
        return not isinstance(value, str) and cls.number(value) > 1

    @classmethod
    def relaxed(cls, value: Value) -> Mapping[str, Value]:
        """Return the number as a preference."""
        return {cls.name: f"{PREFER}{cls.number(value)}"}

    @classmethod
    def excluded_by(cls, value: Value, others: Mapping[str, Value]) -> type[Constraint] | None:
        """Return the constraint with which parts have no meaning, or None."""
        return MinLeaves if MinLeaves.name in others else None
