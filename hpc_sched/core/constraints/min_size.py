"""``hpc:min_size``: the fewest VMs of its final size with which a group is of use."""

from collections.abc import Mapping

from hpc_sched.core.constraints.constraint import Constraint, NumberConstraint, Value
from hpc_sched.core.constraints.extra_spec import WHOLE_NUMBER, ExtraSpec, number_up_to
from hpc_sched.core.constraints.group_size import MOST, GroupSize


class MinSize(NumberConstraint):
    """The fewest VMs that must fit together, members included, where one of a group is placed."""

    name = "min_size"
    spec = ExtraSpec(
        "hpc:min_size",
        WHOLE_NUMBER,
        number_up_to(MOST),
        "With ``hpc:group_size``, else ignored: how many VMs the group needs at least. Where not "
        "all of the final size fit, room is looked for the most that do, and a VM is refused while "
        "these, running ones included, are fewer. One request never becomes smaller: its VMs are "
        "all placed, or none. Moves ignore it. Default: any number with ``hpc:group_size`` alone, "
        "and all of it with ``hpc:require``.",
        most=MOST,
    )
    is_always_logged = False
    fits_help = "N are of use: where not all fit, print the largest number (hpc:min_size)"

    @classmethod
    def excluded_by(cls, value: Value, others: Mapping[str, Value]) -> type[Constraint] | None:
        """Return the final size if that is smaller, or None."""
        return GroupSize if int(others.get(GroupSize.name, value)) < int(value) else None
