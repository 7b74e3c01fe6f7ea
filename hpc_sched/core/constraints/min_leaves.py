"""``hpc:min_leaves``: the fewest leaf switches that a group uses."""

from collections.abc import Mapping
from dataclasses import replace

from hpc_sched.core.constraints.constraint import Bounds, Constraint, NumberConstraint, Value
from hpc_sched.core.constraints.extra_spec import WHOLE_NUMBER, ExtraSpec, number_up_to
from hpc_sched.core.constraints.group_size import GroupSize
from hpc_sched.core.constraints.max_leaves import MOST, MaxLeaves


class MinLeaves(NumberConstraint):
    """The fewest leaf switches, those of members included, once the group has as many VMs."""

    name = "min_leaves"
    spec = ExtraSpec(
        "hpc:min_leaves",
        WHOLE_NUMBER,
        number_up_to(MOST),
        "Under how many leaf switches the group is at least, so that it outlives the loss "
        "of one. A group with fewer VMs has each on a leaf switch of its own; one that "
        "cannot be spread as far is refused. Default: no bound.",
        most=MOST,
    )
    is_guarantee = binds_place = True
    is_always_logged = False
    why_not = "a plan with it uses fewer leaves than required"
    fits_help = "under at least N leaf switches (hpc:min_leaves)"
    simulate_help = "every job under at least N leaves, or one node on each of fewer"

    @classmethod
    def bound(cls, value: Value, bounds: Bounds) -> Bounds:
        """Return bounds with the number."""
        return replace(bounds, least_leaves=int(value))

    @classmethod
    def excluded_by(cls, value: Value, others: Mapping[str, Value]) -> type[Constraint] | None:
        """Return the constraint that allows fewer leaves or VMs, or None."""
        upper: tuple[type[Constraint], ...] = (MaxLeaves, GroupSize)
        return next((one for one in upper if int(others.get(one.name, value)) < int(value)), None)

    @classmethod
    def of_jobs(cls, value: Value) -> str:
        """Return what a number means for jobs."""
        return f"under at least {value} leaves"
