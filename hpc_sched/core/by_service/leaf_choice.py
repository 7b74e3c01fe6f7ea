"""The leaves below one switch of which a group may use a number, and what sets of them take."""

from collections.abc import Sequence
from dataclasses import dataclass

from hpc_sched.core.by_service.coverage import CoverageSearch, LeafSet, first_set
from hpc_sched.core.by_service.coverage_bound import LeafRooms
from hpc_sched.core.by_service.leaf_matching import matched
from hpc_sched.core.plan.time_limit import Effort


@dataclass(frozen=True, slots=True, eq=False)
class LeafChoice:
    """Leaves with room below one switch, by number, in tie order."""

    leaves: LeafRooms
    forced: tuple[int, ...]  # those with members, which are in each set
    number: int  # leaves in addition to these; at most those that there are
    missing: int  # leaves without members that the group must use once it has as many VMs

    @property
    def is_whole(self) -> bool:
        """True if all leaves are chosen."""
        return len(self.forced) + self.number == len(self.leaves.others)

    def take(self, chosen: Sequence[int]) -> int:
        """Return the most VMs of a group that fits on some leaves."""
        vms = self.leaves.take(chosen)
        if not self.missing:
            return vms
        used = len(self.own_services(chosen, self.missing))
        return vms if used == self.missing else min(vms, used)

    def first(self) -> LeafSet:
        """Return a set that takes many VMs; all leaves if they may be used."""
        if self.is_whole:
            every = tuple(range(len(self.leaves.others)))
            return LeafSet(every, self.take(every))
        found = first_set(self.leaves, self.forced, self.number, self.take)
        if self.missing and found.vms < self.missing:
            own = self.own_services(range(len(self.leaves.others)), self.number)
            chosen = (*self.forced, *own)
            found = max(found, LeafSet(chosen, self.take(chosen)), key=lambda one: one.vms)
        return found

    def best(self, start: LeafSet, floor: int, wanted: int, effort: Effort) -> tuple[LeafSet, int]:
        """Return the best set, and the VMs that none exceeds, see :meth:`CoverageSearch.run`."""
        search = CoverageSearch(self.leaves, start, self.take, effort)
        most = search.run(self.forced, self.number, floor, wanted)
        return search.best, most

    def own_services(self, among: Sequence[int], most: int) -> dict[int, int]:
        """Return leaves without members that together may take a VM each, with their services.

        As many of some leaves as possible, up to a number; -1 for any service that is not a column
        of ``leaves.rooms``.
        """
        new = [leaf for leaf in among if leaf not in self.forced]
        others = {leaf: -1 for leaf in new if self.leaves.others[leaf]}
        rest = [leaf for leaf in new if leaf not in others]
        found = matched(self.leaves.rooms, self.leaves.allowed, rest, most - len(others))
        return dict([*others.items(), *found.items()][:most])
