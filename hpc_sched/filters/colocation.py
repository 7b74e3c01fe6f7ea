"""The base class of the filters that check the VMs on a host."""

from __future__ import annotations

from nova import objects

from hpc_sched import exceptions
from hpc_sched.core.arrays import Array
from hpc_sched.filters.base import GroupFilter, States, select
from hpc_sched.nova_glue import served_requests
from hpc_sched.nova_glue.read.instances.colocated_instances import ColocatedInstances


class ColocationFilter(GroupFilter):
    """A filter that keeps the hosts whose VMs leave room for those of a request.

    It also checks requests without a group, to protect the VMs that run. It refuses a request
    without any host left, and one with an invalid application in flavor or hints, except a move.
    """

    #: reason of removed hosts in the decision log
    why = ""
    #: the filter whose rules count, for its subclasses too
    rules = ""

    def _keep(self, states: States, spec: objects.RequestSpec) -> States:
        colocated = served_requests.get_colocated(spec, states)
        if colocated.faults:
            raise exceptions.RefusedError("; ".join(colocated.faults))
        passes = self._room(colocated, states) > 0
        kept = select(states, passes.tolist())
        if not kept:
            raise self._refusal(colocated, states)
        if not colocated.placed:
            colocated.note_removed(self.why, select(states, (~passes).tolist()))
        return kept

    def _room(self, colocated: ColocatedInstances, states: States) -> Array:
        """Return the VMs of the request that each host takes. Shape (states,).

        :raises exceptions.RefusedError: if not enough VMs on hosts are known for a guarantee
        """
        return colocated.room(self.rules, states)

    def _refusal(self, colocated: ColocatedInstances, states: States) -> exceptions.RefusedError:
        raise NotImplementedError
