"""``hpc:prefer``: all VMs of a group under one switch of a level, if such a switch has room."""

from dataclasses import replace

from hpc_sched.core.constraints.constraint import Bounds, LevelConstraint, Value
from hpc_sched.core.constraints.extra_spec import LEVEL, LEVEL_EXPECTED, ExtraSpec


class Prefer(LevelConstraint):
    """The level of which one switch holds the group if any has room."""

    name = "prefer"
    spec = ExtraSpec(
        "hpc:prefer",
        LEVEL,
        LEVEL_EXPECTED,
        "The level of the fabric under one switch of which all VMs of the group should "
        "be, where there is room; otherwise they spread further. Levels are named as for "
        "``hpc:require``. Default: none.",
    )

    simulate_help = "every job under one switch of a level, where there is room"

    @classmethod
    def bound(cls, value: Value, bounds: Bounds) -> Bounds:
        """Return bounds with the level as a preference."""
        return replace(bounds, preferred=str(value))

    @classmethod
    def of_jobs(cls, value: Value) -> str:
        """Return what a level means for jobs."""
        return f"under one switch of level {value} where there is room"
