"""What the filters have in common that judge a host by the VMs it has already."""

from __future__ import annotations

from nova import objects

from hpc_sched import exceptions
from hpc_sched.filters.base import GroupFilter, States, select
from hpc_sched.nova_glue.instances.colocated_instances import ColocatedInstances
from hpc_sched.nova_glue.request import served_requests
from hpc_sched.nova_glue.request.claim_observer import Array


class ColocationFilter(GroupFilter):
    """A filter that keeps the hosts whose VMs leave room for those of a request.

    Also for requests without a group, which protects the VMs that run. Where no host is left
    the reason is told; what the flavor or a hint says of the application and cannot be read is
    refused, except on a move.
    """

    #: why it removes hosts, for the decision log
    why = ""

    def _keep(self, states: States, spec: objects.RequestSpec) -> States:
        colocated = served_requests.colocated_with(spec, states)
        if colocated.faults:
            raise exceptions.RefusedError("; ".join(colocated.faults))
        self._check(colocated)
        kept = select(states, (self._room(colocated, states) > 0).tolist())
        if not kept:
            raise self._refusal(colocated, states)
        if not colocated.placed:
            colocated.removed[self.why] += len(states) - len(kept)
        return kept

    def _check(self, colocated: ColocatedInstances) -> None:
        """Check that enough is known of the VMs on the hosts.

        :raises exceptions.RefusedError: where it is not
        """

    def _room(self, colocated: ColocatedInstances, states: States) -> Array:
        """Return how many VMs of the request each host takes."""
        raise NotImplementedError

    def _refusal(self, colocated: ColocatedInstances, states: States) -> exceptions.RefusedError:
        """Return why no host is left."""
        raise NotImplementedError
