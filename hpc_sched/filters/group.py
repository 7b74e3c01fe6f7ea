"""HPCGroupFilter: all or nothing."""

from hpc_sched.filters.group_filter import GroupFilter
from hpc_sched.nova_glue.phases import Call, States
from hpc_sched.nova_glue.session import PlacementSession


class HPCGroupFilter(GroupFilter):
    """Refuses a group that does not fit before anything is claimed for it.

    Checks the ``hpc:`` values of the request, then plans the group. It raises NoValidHost, with
    the reason in counts and levels, if there is no plan for the VMs of this request, or with
    ``hpc:require`` for ``hpc:group_size`` VMs. It keeps the hosts on which the group keeps
    ``hpc:require``, ``hpc:max_leaves`` and its island, whichever of them it takes. With
    ``hpc:min_leaves`` the hosts of leaves that the group uses are left out for later VMs, as soon
    as each of them must use another. With ``hpc:segment`` and ``hpc:balance=true`` a VM may be
    below the switches of the plan where places are left.

    Without a plan, a move without such constraints is not refused, nor is a group whose members
    are on several islands.

    It checks and plans for the first VM of a request only, and never raises once a VM is placed.
    For the others it puts first, on each host, the allocation candidate that a VM shall claim:
    weighers could, but Nova calls none where one host is left.

    With ``gang_claims`` it claims the plan before Nova claims the first VM. If places are taken
    meanwhile, the group is planned again; it is refused only if there is no plan any more.
    """

    run_filter_once_per_request = False
    reports_refusals = True

    def keep(self, session: PlacementSession, call: Call) -> States:
        """Return the hosts on which the group keeps its constraints, its plan claimed."""
        return session.place(call)

    def needs_proof(self, session: PlacementSession, call: Call) -> bool:
        """True before the first VM is placed: the hosts kept for it keep the guarantee."""
        return not session.placed and super().needs_proof(session, call)
