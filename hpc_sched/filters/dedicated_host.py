"""HPCDedicatedHostFilter: class ``extreme`` has hosts of its own (Gupta2013)."""

from __future__ import annotations

from nova import objects

from hpc_sched import exceptions
from hpc_sched.filters.base import States
from hpc_sched.filters.colocation import ColocationFilter
from hpc_sched.nova_glue.instances.colocated_instances import ColocatedInstances
from hpc_sched.nova_glue.request import request_spec
from hpc_sched.nova_glue.request.claim_observer import Array


class HPCDedicatedHostFilter(ColocationFilter):
    """Keeps VMs of class ``extreme`` and those of others on different hosts.

    A request of class ``extreme`` passes only hosts without VMs from outside its group, and
    nobody else passes a host with an ``extreme`` VM of another group, whatever the class, group
    or none. Where a cell does not answer its hosts are no good for ``extreme``; the others are let
    in with a WARNING. While the VMs on their way to a host cannot all be looked up, a new request
    of class ``extreme`` is refused, for nobody knows where it would be alone. One that moves
    passes the hosts that have no VM as far as the scheduler itself knows.

    Nova runs it for the first VM of a request only: those that follow belong to the same group.
    """

    why = "dedicated hosts"

    def _check(self, colocated: ColocatedInstances) -> None:
        if colocated.unverified:
            raise exceptions.RefusedError(
                "class extreme needs hosts without VMs of others, and those on their way to a "
                f"host are not all known: {colocated.unverified}",
                "class extreme needs hosts of its own, and which are free is not known at the "
                "moment; try again later",
            )

    def _room(self, colocated: ColocatedInstances, states: States) -> Array:
        return colocated.dedicated_room(states)

    def _refusal(self, colocated: ColocatedInstances, states: States) -> exceptions.RefusedError:
        if colocated.newcomer.app_class == "extreme":
            why = (
                "class extreme needs a host without VMs of others: all{} have some, or do not tell"
            )
        else:
            why = "all{} hosts are dedicated to applications of class extreme"
        return exceptions.RefusedError(why.format(f" {len(states)}"), why.format(""))

    def _needs_proof(self, spec: objects.RequestSpec) -> bool:
        return request_spec.application_of(spec)[0].app_class == "extreme"
