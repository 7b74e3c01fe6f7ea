"""The hosts with room that Placement has not offered, as a limit has cut its list of candidates.

Such a host has no HostState: no plan can use it. Nothing in Placement's answer says that.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from nova.scheduler import host_manager

from hpc_sched.nova_glue.io import placement
from hpc_sched.nova_glue.read.room.candidates.nova_query import NovaQuery


@dataclass(frozen=True, slots=True)
class HostsNotOffered:
    """How many hosts have room for one VM and were offered, for the reason of a refusal."""

    offered: int  # candidates, without those that Nova's filters have removed
    with_room: int  # hosts, those included
    limit: int | None  # of Nova's own query; None: it had none

    @property
    def operator(self) -> str:
        """The reason with options."""
        own = "" if self.limit is None else f"[scheduler] max_placement_results ({self.limit}) or "
        return (
            f"{self.offered} of {self.with_room} hosts with room for one VM are candidates: {own}"
            "[placement] max_allocation_candidates of Placement has cut its list"
        )

    @property
    def tenant(self) -> str:
        """The reason without options and numbers of hosts."""
        return "a limit of the cloud has left out hosts with room"


def find(
    states: Sequence[host_manager.HostState],
    query: NovaQuery,
    *,
    own: Mapping[str, int],
    listed: int | None,
    has_more: bool,
) -> HostsNotOffered | None:
    """Return the hosts that were not offered; None if no limit is known to have cut the list.

    One call to Placement, and one for each class of devices; none where a host has no classes of
    its own.

    :param own: what a VM takes of a host's own provider
    :param listed: hosts in an answer to :meth:`NovaQuery.of_trees`, which a limit cuts too, if they
        are all that have such a provider
    :param has_more: whether a host is known to have more candidates than were offered
    """
    hosts = [state.uuid for state in states if state.vcpus_total]
    if not hosts or not own:
        return None
    every, problem = placement.read_hosts_with_room(query.of_providers(own))
    if problem is not None:
        return None
    found = set.intersection(*map(set, every))
    with_room = len(found.union(hosts))
    if with_room == len(hosts):
        return None
    is_limited = query.limit is not None and len(found) > query.limit
    is_shorter = listed is not None and listed < len(found)
    if not (has_more or is_limited or is_shorter):
        return None
    return HostsNotOffered(len(hosts), with_room, query.limit)
