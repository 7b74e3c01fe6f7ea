"""HPCInterferenceFilter: limits on cache interference between VMs of a host (Gupta2013)."""

from hpc_sched import exceptions
from hpc_sched.filters.colocation import ColocationFilter
from hpc_sched.nova_glue.phases import Call, States
from hpc_sched.nova_glue.read.instances.colocated_instances import ColocatedInstances
from hpc_sched.nova_glue.read.room import cache_limits
from hpc_sched.nova_glue.session import PlacementSession


class HPCInterferenceFilter(ColocationFilter):
    """Keeps the hosts whose VMs and a new one do not slow each other down.

    The sum of all cache scores is at most ``cache_score_limit`` (alpha), and at most
    ``sync_cache_score_limit`` (beta) if any of the VMs is of class ``sync``. No VM on the host
    runs an application that the interference index marks as bad company. Class ``extreme`` is
    exempt: it has dedicated hosts, see HPCDedicatedHostFilter.

    Nova runs it for every VM of a request; the databases are read for the first one only.
    Alternates, to which a compute goes without the scheduler, had room at the end of the request.
    """

    run_filter_once_per_request = False
    why = "cache scores or bad company"
    rules = "HPCInterferenceFilter"

    def __init__(self) -> None:
        """Load the topology and the index; raises as their ``start`` functions do."""
        super().__init__()
        cache_limits.start()

    def refusal(self, colocated: ColocatedInstances, states: States) -> exceptions.RefusedError:
        """Return the reason why no host is left."""
        new = colocated.application
        apart = colocated.count_incompatible(states)
        company = f", {apart} of them run applications that it is kept apart from" if apart else ""
        why = (
            f"no host takes a VM of class {new.app_class} and cache score {new.score:g} beside "
            "the VMs that it has"
        )
        # Tenants must not learn what others run, and on how many hosts.
        return exceptions.RefusedError(f"{why}: {len(states)} hosts are left out{company}", why)

    def needs_proof(self, session: PlacementSession, call: Call) -> bool:
        """Return False: limits are the operator's, not a guarantee of the request."""
        return False
