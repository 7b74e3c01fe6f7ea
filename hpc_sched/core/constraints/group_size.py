"""``hpc:group_size``: how many VMs a group will have in the end."""

from hpc_sched.core.constraints.constraint import NumberConstraint
from hpc_sched.core.constraints.extra_spec import WHOLE_NUMBER, ExtraSpec, number_up_to

# A single VM makes the planner place a whole group of this size. The time grows with it, to
# seconds on 10,000 hosts that take a thousand VMs each.
MOST = 4096


class GroupSize(NumberConstraint):
    """The final size, for which room is looked for from the first VM on."""

    name = "group_size"
    spec = ExtraSpec(
        "hpc:group_size",
        WHOLE_NUMBER,
        number_up_to(MOST),
        "How many VMs the group will have in the end, for users who create them one by "
        "one: the first is placed where there is room for all. It refuses a request only "
        "where ``hpc:require`` or ``hpc:max_leaves`` cannot be kept for that number, or if "
        "``hpc:min_leaves`` is above it. On moves it affects the choice as long as VMs are "
        "missing, and refuses none. Default: the VMs that have been requested so far.",
        most=MOST,
    )
