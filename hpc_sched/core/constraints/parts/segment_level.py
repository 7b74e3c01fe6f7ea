"""``hpc:segment_level``: the level of which one switch holds each part of a group."""

from collections.abc import Mapping
from dataclasses import replace

from hpc_sched.core.constraints.constraint import Bounds, Constraint, LevelConstraint, Value
from hpc_sched.core.constraints.extra_spec import LEVEL, LEVEL_EXPECTED, ExtraSpec
from hpc_sched.core.constraints.max_leaves import MaxLeaves
from hpc_sched.core.constraints.parts.group_parts import Parts


class SegmentLevel(LevelConstraint):
    """The level of parts, where that is not the leaves."""

    name = "segment_level"
    is_guarantee = True  # parts of another level than the stated one are no such parts
    spec = ExtraSpec(
        "hpc:segment_level",
        LEVEL,
        LEVEL_EXPECTED,
        "The level of the fabric under one switch of which each part of ``hpc:segment`` is, and "
        "over whose switches ``hpc:balance`` spreads VMs; without these it is ignored. Levels are "
        "named as for ``hpc:require``. Default: leaf switches.",
    )
    is_always_logged = False
    fits_help = "with --segment or --balance: under one switch of this level (hpc:segment_level)"
    simulate_help = "of which one switch holds each part of --segment, and which --balance balances"

    @classmethod
    def bound(cls, value: Value, bounds: Bounds) -> Bounds:
        """Return bounds with the level of parts."""
        return replace(bounds, parts=replace(bounds.parts or Parts(), level=str(value)))

    @classmethod
    def relaxed(cls, value: Value) -> Mapping[str, Value]:
        """Return the level: it is that of preferred parts too."""
        return {cls.name: value}

    @classmethod
    def excluded_by(cls, value: Value, others: Mapping[str, Value]) -> type[Constraint] | None:
        """Return the bound on leaves, which plans in parts of other levels do not keep, or None."""
        return MaxLeaves if MaxLeaves.name in others else None
