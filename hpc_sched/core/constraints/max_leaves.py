"""``hpc:max_leaves``: the most leaf switches that a group may use."""

from dataclasses import replace

from hpc_sched.core.constraints.constraint import Bounds, NumberConstraint, Value
from hpc_sched.core.constraints.extra_spec import WHOLE_NUMBER, ExtraSpec, number_up_to

# More leaf switches than any fabric has. Larger numbers do not take longer.
MOST = 999_999


class MaxLeaves(NumberConstraint):
    """The most leaf switches, those of members included."""

    name = "max_leaves"
    spec = ExtraSpec(
        "hpc:max_leaves",
        WHOLE_NUMBER,
        number_up_to(MOST),
        "Under how many leaf switches the group may spread at most. A group that needs "
        "more is refused. Default: no limit.",
        most=MOST,
    )
    is_guarantee = binds_place = True
    why_not = "a plan with it needs more leaves than allowed"
    fits_help = "under at most N leaf switches (hpc:max_leaves)"
    simulate_help = "every job under at most N leaves"

    @classmethod
    def bound(cls, value: Value, bounds: Bounds) -> Bounds:
        """Return bounds with the number."""
        return replace(bounds, most_leaves=int(value))

    @classmethod
    def of_jobs(cls, value: Value) -> str:
        """Return what a number means for jobs."""
        return f"under at most {value} leaves"
