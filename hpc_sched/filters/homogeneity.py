"""HPCHomogeneityFilter: all VMs of a group on one processor type (Gupta2012)."""

from hpc_sched.filters.group_filter import GroupFilter
from hpc_sched.nova_glue.phases import Call, States
from hpc_sched.nova_glue.session import PlacementSession


class HPCHomogeneityFilter(GroupFilter):
    """Keeps the hosts of one processor type, or puts them first.

    With ``hpc:homogeneous=true`` other hosts are removed. With ``prefer`` they stay, for others
    may take places of the type meanwhile: plans and weighers use them only if the type cannot
    hold the group. Without a topology weigher nothing would prefer the type, and they are removed.

    The type is the type of the group's members. Without members it is the best type that holds all
    VMs of this request and, if any type does, those of other requests and of
    ``hpc:group_size`` too. If no type holds the group, none is preferred; with ``true`` the
    request is refused. ``true`` also refuses new VMs of a group whose members' type is not known.
    """

    def keep(self, session: PlacementSession, call: Call) -> States:
        """Return the hosts of the chosen type, all if it is only preferred."""
        return session.choose_processor(call)
