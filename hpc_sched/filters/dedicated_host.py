"""HPCDedicatedHostFilter: dedicated hosts for class ``extreme`` (Gupta2013)."""

from hpc_sched import exceptions
from hpc_sched.filters.colocation import ColocationFilter
from hpc_sched.nova_glue.phases import Call, States
from hpc_sched.nova_glue.read import request_spec
from hpc_sched.nova_glue.read.instances.colocated_instances import ColocatedInstances
from hpc_sched.nova_glue.session import PlacementSession


class HPCDedicatedHostFilter(ColocationFilter):
    """Keeps VMs of class ``extreme`` and VMs of other groups on different hosts.

    A request of class ``extreme`` passes only hosts without VMs of others. Any other request, with
    or without a group, passes only hosts without ``extreme`` VMs of others.

    If a cell does not answer, its VMs are those of the last read, and others that the scheduler
    itself has seen are unknown. Its hosts do not pass for ``extreme``; ``unknown_instances`` says
    what unknown VMs mean for other classes. If the VMs in flight cannot all be read, a new
    request of class ``extreme`` is refused, because exclusive hosts cannot be verified. A move
    passes the hosts on which the scheduler has seen no VM, or those without known VMs of others.

    Nova runs it for the first VM of a request only: the others belong to the same group.
    """

    why = "dedicated hosts"
    rules = "HPCDedicatedHostFilter"

    def check(self, colocated: ColocatedInstances) -> None:
        """Check that exclusive hosts can be verified where they are needed."""
        super().check(colocated)
        if colocated.unverified:
            raise exceptions.RefusedError(
                "class extreme needs hosts without VMs of others, and those on their way to a "
                f"host are not all known: {colocated.unverified}",
                "class extreme needs hosts of its own, and which are free is not known at the "
                "moment; try again later",
            )

    def refusal(self, colocated: ColocatedInstances, states: States) -> exceptions.RefusedError:
        """Return the reason why no host is left."""
        app_class = colocated.application.app_class
        if app_class == "extreme":
            why = (
                "class extreme needs a host without VMs of others: all{} have some, or do not tell"
            )
            return exceptions.RefusedError(why.format(f" {len(states)}"), why.format(""))
        # Tenants must not learn what others run.
        return exceptions.RefusedError(
            f"all {len(states)} hosts are dedicated to applications of class extreme",
            f"no host takes a VM of class {app_class} beside the VMs that it has",
        )

    def needs_proof(self, session: PlacementSession, call: Call) -> bool:
        """True for class ``extreme``."""
        return request_spec.application_of(call.spec)[0].app_class == "extreme"
