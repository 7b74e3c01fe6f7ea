"""The base class of the filters that check the VMs on a host."""

from itertools import compress

from hpc_sched import exceptions
from hpc_sched.filters.group_filter import GroupFilter
from hpc_sched.nova_glue.phases import Call, States
from hpc_sched.nova_glue.read.instances.colocated_instances import ColocatedInstances
from hpc_sched.nova_glue.session import PlacementSession


class ColocationFilter(GroupFilter):
    """A filter that keeps the hosts whose VMs leave room for those of a request.

    It also checks requests without a group, to protect the VMs that run. It refuses a request
    without any host left, and one with an invalid application in flavor or hints, except a move.
    """

    #: reason of removed hosts in the decision log
    why = ""
    #: the filter whose rules count, for its subclasses too
    rules = ""

    def keep(self, session: PlacementSession, call: Call) -> States:
        """Return the hosts with room next to the VMs that they have."""
        colocated = session.colocated(call.spec, call.states)
        self.check(colocated)
        has_room = (colocated.room(self.rules, call.states) > 0).tolist()
        kept = list(compress(call.states, has_room))
        if not kept:
            raise self.refusal(colocated, call.states)
        if len(kept) < len(has_room) and not colocated.placed:
            full = (not keeps for keeps in has_room)
            colocated.note_removed(self.why, list(compress(call.states, full)))
        return kept

    def check(self, colocated: ColocatedInstances) -> None:
        """Check that a request can be answered.

        :raises exceptions.RefusedError: if its application is invalid, or if not enough VMs on
            hosts are known for a guarantee
        """
        if colocated.faults:
            raise exceptions.RefusedError("; ".join(colocated.faults))

    def refusal(self, colocated: ColocatedInstances, states: States) -> exceptions.RefusedError:
        """Return the reason why no host is left."""
        raise NotImplementedError
