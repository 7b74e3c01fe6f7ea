"""The answers of the planner: a Plan, or a Rejection with the largest groups that fit."""

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from hpc_sched.core.constraints import Bounds
from hpc_sched.topology import plurals


@dataclass(frozen=True, slots=True)
class Plan:
    """The places of a group's awaiting VMs."""

    hosts: Mapping[str, int]  # host to the number of planned VMs
    places: tuple[str, ...]  # the host of each planned VM, in the order of the slots
    leaves: Mapping[str, int]  # leaf to planned VMs, in the order of the slots
    hop_bytes: float  # of members plus planned VMs
    switch: str  # the switch of the required level, or root, that holds the whole group
    # False if it is not known that no plan is better: the time limit passed, a bound on
    # leaves or anti-affinity needed too many steps, or the group is too large for the planner.
    is_proven: bool = True

    @property
    def count(self) -> int:
        """The number of planned VMs."""
        return len(self.places)

    def after(self, taken: Mapping[str, int], leaf_of: Callable[[str], str]) -> "Plan | None":
        """Return the plan without the places already taken, or None if one was not planned.

        The rest of a best plan is a best plan for the remaining VMs, at the same Hop-Byte, where
        there is no fragmentation price.

        :param taken: host to the number of VMs placed there
        """
        left, places = Counter(taken), []
        for host in self.places:
            if left[host] > 0:
                left[host] -= 1
            else:
                places.append(host)
        if any(left.values()):
            return None
        hosts, leaves = Counter(places), Counter(map(leaf_of, places))
        return replace(self, hosts=dict(hosts), places=tuple(places), leaves=dict(leaves))


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why a request is refused."""

    operator: str  # names switches and hosts; for logs and operators
    # For the user: levels and the request's own counts, and none above what was requested.
    tenant: str

    @classmethod
    def alike(cls, text: str) -> "Refusal":
        """Return the refusal with one text for both; it must not name switches or hosts."""
        return cls(text, text)


@dataclass(frozen=True, slots=True)
class Gang:
    """The largest group that fits under one switch of a level."""

    level: str
    vms: int
    switch: str


@dataclass(frozen=True, slots=True)
class UnprovenGang(Gang):
    """A group that fits, where it is not proven that no larger one does."""


@dataclass(frozen=True, slots=True)
class Rejection:
    """The reason why a group has no plan, and what fits instead."""

    count: int  # VMs to place
    members: int  # VMs of the group that have a place
    bounds: Bounds  # at least no more leaves than it could use
    gangs: tuple[Gang, ...]  # per level, bottom up; without constraints and members
    # The largest gang that keeps all constraints together with the members; None if the members
    # themselves break one, or if it is not proven which it is.
    best: Gang | None
    conflict: str | None = None  # the reason if the members themselves break a constraint
    # VMs that no gang exceeds which keeps all constraints, if the largest is not proven.
    at_most: int | None = None
    is_isolated: bool = False  # whether it fits, but not without uplinks of other isolated groups

    @property
    def operator(self) -> str:
        """The reason with the names of switches, for logs and operators."""
        return self._text()

    @property
    def tenant(self) -> str:
        """The reason in counts and levels only, for the user."""
        return self.for_tenant(self.count)

    def for_tenant(self, requested: int) -> str:
        """Return the reason in counts and levels only.

        No count of what fits reaches the requested one: a larger group might exceed the user's
        quota, and how much room there is for it is a fact about other users.

        :param requested: VMs for which the user pays; ``count`` may have VMs without a request
        """
        return self._text(below=requested)

    def __str__(self) -> str:
        return self.operator

    def _text(self, below: int | None = None) -> str:
        """Return the reason; with names, or only with numbers below one."""
        names = below is None
        group = f"group of {self.count}"
        if self.members:
            group = f"{self.count} more of a group with {plurals.text(self.members, 'member')}"
        if self.conflict:
            return f"{group}: {self.conflict}"
        needs = self.bounds.needs
        if self.is_isolated:
            needs = [*needs, "uplinks that no other isolated group uses"]
        text = f"{group} needs {' and '.join(needs)}" if needs else f"{group} does not fit"
        beside = " beside its members" if self.members else ""
        level = self.bounds.level if self.best is None else self.best.level
        under = "" if self.bounds.level is None else f" under one {level}"
        largest = f": largest gang that fits{under}{self.bounds.within}{beside}: "
        if self.at_most is not None and self.at_most >= self.count:
            text += ": no room was found, not proven that there is none"
        elif self.at_most is not None:
            text += f"{largest}not proven"
        elif self.best is None or not self.best.vms:
            text += f": no room{beside}"
        elif below is None or self.best.vms < below:
            text += f"{largest}{self.best.vms}" + (f" on {self.best.switch}" if names else "")
        others = [gang for gang in self.gangs if gang != self.best and gang.vms]
        if names and others and needs and not self.members:
            shown = ", ".join(
                f"{gang.vms} under one {gang.level} on {gang.switch}" for gang in others
            )
            text += f" (without these wishes: {shown})"
        return text
