"""HPCInterferenceFilter: neighbours that do not thrash each other's cache (Gupta2013)."""

from __future__ import annotations

from nova import objects

from hpc_sched import exceptions
from hpc_sched.filters.base import States
from hpc_sched.filters.colocation import ColocationFilter
from hpc_sched.nova_glue.instances.colocated_instances import ColocatedInstances
from hpc_sched.nova_glue.request.claim_observer import Array
from hpc_sched.nova_glue.room import cache_limits


class HPCInterferenceFilter(ColocationFilter):
    """Keeps the hosts whose VMs and a new one do not slow each other down.

    The sum of all cache scores stays within ``cache_score_limit`` (alpha), and within
    ``sync_cache_score_limit`` (beta) where the new VM or one that is there is of class ``sync``;
    and no VM there runs an application that the interference index marks as bad company. Class
    ``extreme`` is exempt: it has its hosts to itself, see HPCDedicatedHostFilter.

    Nova runs it for every VM of a request; only the first time are databases read. Alternates,
    which a compute takes without asking the scheduler, are those that had room at the end of
    the request.
    """

    run_filter_once_per_request = False
    why = "cache scores or bad company"

    def __init__(self) -> None:
        """Make ready fabric and index.

        :raises exceptions.TopologyError: where the topology is missing or wrong
        :raises exceptions.InterferenceError: where the index is named and missing or wrong
        """
        super().__init__()
        cache_limits.start()

    def _room(self, colocated: ColocatedInstances, states: States) -> Array:
        return colocated.limited_room(states)

    def _refusal(self, colocated: ColocatedInstances, states: States) -> exceptions.RefusedError:
        new = colocated.newcomer
        apart = colocated.in_bad_company(states)
        company = f", {apart} of them run applications that it is kept apart from" if apart else ""
        why = (
            f"no host takes a VM of class {new.app_class} and cache score {new.score:g} beside "
            "the VMs that it has"
        )
        # What others run, and on how many hosts, is no tenant's business.
        return exceptions.RefusedError(f"{why}: {len(states)} hosts are left out{company}", why)

    def _needs_proof(self, spec: objects.RequestSpec) -> bool:
        # Limits are the operator's and no guarantee that a request asks for.
        return False
