"""The hosts with room that Placement has not offered, as a limit has cut its list of candidates.

Such a host has no HostState: no plan can use it. Nothing in Placement's answer says that.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass
from itertools import islice

from nova.scheduler import host_manager

from hpc_sched.core.room.candidate_enumeration import AllocationCandidate
from hpc_sched.nova_glue.io import placement
from hpc_sched.nova_glue.read.room.providers.host_trees import HostTrees
from hpc_sched.nova_glue.read.room.providers.nova_query import NovaQuery
from hpc_sched.nova_glue.read.room.providers.offered_candidates import OfferedCandidates

# Candidates that are looked at to see whether a list was cut; of those that Nova's code fits, which
# takes some 0.5 ms each.
MOST_TRIES = 10_000
MOST_FITS = 512


@dataclass(frozen=True, slots=True)
class HostsNotOffered:
    """How many hosts have room for one VM and were offered, for the reason of a refusal."""

    offered: int  # candidates, without those that Nova's filters have removed
    with_room: int  # hosts, those included
    limit: int | None  # of Nova's own query; None: it had none
    is_cut: bool = True  # whether a limit is known to have cut the list; else filters may have

    @property
    def operator(self) -> str:
        """The reason with options."""
        own = "" if self.limit is None else f"[scheduler] max_placement_results ({self.limit}) or "
        filters = "" if self.is_cut else "Nova's filters have removed the others, or "
        return (
            f"{self.offered} of {self.with_room} hosts with room for one VM are candidates: "
            f"{filters}{own}[placement] max_allocation_candidates of Placement has cut its list"
        )

    @property
    def tenant(self) -> str:
        """The reason without options and numbers of hosts."""
        by_limit = ", by a limit of the cloud" if self.is_cut else ""
        return f"not all hosts with room were offered{by_limit}"


def find(
    states: Sequence[host_manager.HostState],
    query: NovaQuery,
    *,
    own: Mapping[str, int],
    listed: int | None,
    full: Set[str],
    elsewhere: int,
    has_more: Callable[[], bool],
) -> HostsNotOffered | None:
    """Return the hosts that were not offered; None without any.

    One call to Placement, and one for each class of devices; none where a host has no classes of
    its own.

    :param own: what a VM takes of a host's own provider
    :param listed: hosts in an answer to :meth:`NovaQuery.of_trees`, which a limit cuts too, if they
        are all that have such a provider
    :param full: roots of trees without room for one VM, as far as they are known: a host may have
        some of each class of devices, but too few
    :param elsewhere: hosts that are no candidates and have such devices, as far as they are known
    :param has_more: returns whether a host is known to have more than were offered; takes long
    """
    hosts = [state.uuid for state in states if state.vcpus_total]
    if not hosts or not own:
        return None
    every, problem = placement.read_hosts_with_room(query.of_providers(own))
    if problem is not None:
        return None
    found = set.intersection(*map(set, every))
    is_shorter = listed is not None and listed < len(found)
    found -= full
    is_limited = query.limit is not None and len(found) > query.limit
    is_cut = is_limited or is_shorter
    if len(found.union(hosts)) > len(hosts) and (is_cut or has_more()):
        # A list that lacks candidates of a host may have all hosts.
        return HostsNotOffered(len(hosts), len(found.union(hosts)), query.limit, is_cut)
    if not elsewhere:
        return None
    return HostsNotOffered(len(hosts), len(hosts) + elsewhere, query.limit, is_cut=False)


def has_more(
    states: Sequence[host_manager.HostState],
    positions: Iterable[int],
    offered: OfferedCandidates,
    trees: HostTrees,
    fits: Callable[[int, AllocationCandidate], bool] | None,
) -> bool:
    """True if the tree of a host has more candidates than Placement has offered; bounded work.

    :param positions: of the hosts whose trees were read
    :param fits: whether the filters of Nova that remove candidates let one of a host pass; None
        if they have none to remove
    """
    different: dict[object, int] = {}  # hosts that are alike, and one of them
    for i in positions:
        kind = i if fits is not None else trees.kind(states[i].uuid)
        different.setdefault((kind, offered.number(i)), i)
    left = MOST_FITS if fits is not None else MOST_TRIES
    for i in different.values():
        number = offered.number(i)
        for one in islice(trees.with_repeats(states[i].uuid), left):
            left -= 1
            number -= fits is None or fits(i, one)
            if number < 0:
                return True
    return False
