"""The running jobs by the links that they share."""

from dataclasses import dataclass, field

import numpy as np

from hpc_sched.core.arrays import Reals
from hpc_sched.sim.network.link_bytes import LinkLoad
from hpc_sched.sim.network.neighbours.contention import contention
from hpc_sched.sim.network.neighbours.traffic import SharedSteps, Traffic

NO_LOAD = LinkLoad(np.empty(0), np.empty(0))


@dataclass(slots=True, eq=False)
class Member:
    """A running job, and how it fares next to the others."""

    traffic: Traffic
    shared: set[int] = field(default_factory=set)  # links that another job uses too
    steps: SharedSteps | None = None  # on these links; None: to be computed again
    seconds: float = 0.0  # of communication in an iteration
    lost: float = 0.0  # part of its time that it loses by the others
    caused: float = 0.0  # host-seconds that the others lose by it, a second
    others: LinkLoad = NO_LOAD  # on the shared links, in the order of ``steps.links``


class SharedLinks:
    """The jobs on a network. O(links of the job) for one that starts or ends."""

    def __init__(self, capacity: Reals) -> None:
        """Start without a job.

        :param capacity: bytes/s by link
        """
        self.members: dict[int, Member] = {}
        self._capacity = capacity
        self._users: dict[int, set[int]] = {}  # jobs by link
        self._changed: set[int] = set()  # jobs that are new, or whose neighbours have changed

    def add(self, number: int, traffic: Traffic) -> None:
        """Add a job that starts."""
        member = self.members[number] = Member(traffic, seconds=traffic.alone)
        self._changed.add(number)
        for link in traffic.sent.links.tolist():
            users = self._users.setdefault(link, set())
            if len(users) == 1:
                (first,) = users
                self._set_shared(first, link, is_shared=True)
            if users:
                member.shared.add(link)
                self._changed |= users
            users.add(number)

    def remove(self, number: int) -> None:
        """Remove a job that has left its hosts."""
        member = self.members.pop(number)
        self._changed.discard(number)
        for link in member.traffic.sent.links.tolist():
            users = self._users[link]
            users.discard(number)
            self._changed |= users
            if len(users) == 1:
                (last,) = users
                self._set_shared(last, link, is_shared=False)
            elif not users:
                del self._users[link]

    def settle(self) -> tuple[int, ...]:
        """Bring all jobs up to date; return the numbers of those that may have changed, ascending.

        These are the jobs that a change since the last time can reach over shared links:
        O(rounds * entries of theirs). Jobs that do not reach each other are looked at apart, so
        that not even rounding depends on what there was before.
        """
        reached: set[int] = set()
        for number in sorted(self._changed):
            if number not in reached:
                together = self._reached_from(number)
                reached |= together
                self._contend([self.members[each] for each in sorted(together)])
        self._changed.clear()
        return tuple(sorted(reached))

    def _contend(self, members: list[Member]) -> None:
        if not members[0].shared:  # it is the only one
            (alone,) = members
            alone.seconds, alone.lost, alone.caused = alone.traffic.alone, 0.0, 0.0
            alone.others = NO_LOAD
            return
        steps = []
        for member in members:
            if member.steps is None:
                links = member.traffic.sent.links
                member.steps = member.traffic.on(np.isin(links, list(member.shared)))
            steps.append(member.steps)
        found = contention(self._capacity, steps)
        first = 0
        for i, (member, each) in enumerate(zip(members, steps, strict=True)):
            member.seconds, member.lost = found.seconds.item(i), found.lost.item(i)
            member.caused = found.caused.item(i)
            last = first + len(each.links)
            member.others = LinkLoad(found.taken[first:last], found.present[first:last])
            first = last

    def _set_shared(self, number: int, link: int, *, is_shared: bool) -> None:
        member = self.members[number]
        member.steps = None
        if is_shared:
            member.shared.add(link)
        else:
            member.shared.discard(link)

    def _reached_from(self, number: int) -> set[int]:
        """Return a job, and those that it reaches over shared links."""
        found, rest = {number}, [number]
        links: set[int] = set()
        while rest:
            new = self.members[rest.pop()].shared - links
            links |= new
            for link in new:
                added = self._users[link] - found
                found |= added
                rest += added
        return found
