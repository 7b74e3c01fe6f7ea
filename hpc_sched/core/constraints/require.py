"""``hpc:require``: all VMs of a group under one switch of a level, or it is refused."""

from collections.abc import Mapping
from dataclasses import replace

from hpc_sched.core.constraints.constraint import Bounds, LevelConstraint, Value
from hpc_sched.core.constraints.extra_spec import LEVEL, LEVEL_EXPECTED, ExtraSpec


class Require(LevelConstraint):
    """The level of which one switch holds the group."""

    name = "require"
    spec = ExtraSpec(
        "hpc:require",
        LEVEL,
        LEVEL_EXPECTED,
        "The level of the fabric under one switch of which all VMs of the group must fit "
        "(as delivered ``leaf``, ``pod`` or ``core``; the topology file may rename them). "
        "A group that does not fit is refused before anything is claimed. Default: none, "
        "the group is packed as well as room allows.",
    )
    is_guarantee = binds_place = True
    why_not = "outside the {value} of the plan"
    simulate_help = "every job under one switch of a level"

    @classmethod
    def bound(cls, value: Value, bounds: Bounds) -> Bounds:
        """Return bounds with the level."""
        return replace(bounds, level=str(value))

    @classmethod
    def relaxed(cls, value: Value) -> Mapping[str, Value]:
        """Return the level as a preference."""
        return {"prefer": value}

    @classmethod
    def of_jobs(cls, value: Value) -> str:
        """Return what a level means for jobs."""
        return f"every job under one switch of level {value}"
