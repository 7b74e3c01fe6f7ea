"""HPCRackCapacityFilter: the leaves of the plan, and spares (Gupta2012's racks)."""

from hpc_sched.filters.group_filter import GroupFilter
from hpc_sched.nova_glue.answer.passing import VMS_A_RUN
from hpc_sched.nova_glue.phases import Call, States
from hpc_sched.nova_glue.session import PlacementSession


class HPCRackCapacityFilter(GroupFilter):
    """Keeps the hosts of the plan's leaves, and spares in the next best leaves.

    Only while the places of the plan are claimed (``gang_claims``). Otherwise other requests
    may take them, and it keeps all hosts within the group's constraints.

    Nova filters and weighs the kept hosts again for every further VM, which is fast for few
    hosts. Spares are for lost claims: places for the whole group once more, and hosts for all
    retries. They keep the group's constraints on its place. A group without a plan is refused if
    it has any, else it keeps all hosts.

    It runs again after every 64 VMs of a request, and removes spare leaves that are not needed
    any more, unless a VM was placed elsewhere than planned. It then keeps a spare place, on a
    host without VMs of the request, for each VM without a place, but at least 64. It refuses
    nothing at that time, because places have been claimed.

    Name it last in ``enabled_filters``: later filters do not see the hosts that it removes.
    """

    def run_filter_for_index(self, index: int) -> bool:
        """True if it runs for a VM of a request; ``index`` is the number of VMs before it."""
        return index % VMS_A_RUN == 0

    def keep(self, session: PlacementSession, call: Call) -> States:
        """Return the hosts of the plan's leaves and spares, while places are claimed."""
        return session.prune(call)

    def needs_proof(self, session: PlacementSession, call: Call) -> bool:
        """True before the first VM is placed: the hosts kept for it keep the guarantee."""
        return not session.placed and super().needs_proof(session, call)
