"""The leaves with room for a group as arrays, and what VMs save there at most."""

import itertools
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from hpc_sched.core.arrays import Array, Mask, Reals
from hpc_sched.core.fragmentation.price import POD
from hpc_sched.core.plan.exact.charges import Charges
from hpc_sched.core.plan.exact.leaves.ordered_hosts import OrderedHosts, filled_in_runs
from hpc_sched.core.plan.problem import Problem, leaf_room
from hpc_sched.core.plan.switch_rooms import sums_by_switch

# Part of a bound by which its rounding may make it too small.
_ROUNDING = 1e-9


def saved_by(vms: Array | int, members: Array | int, rise: Array | int) -> Array:
    """Return the hops that VMs save below switches with some members.

    :param rise: levels from a switch to the one above it
    """
    saved: Array = np.asarray(rise * vms * (vms + 2 * members - 1))
    return saved


def whole_bound(bound: Reals) -> Array:
    """Return upper bounds on whole numbers, whatever they were rounded to."""
    return np.floor(bound + _ROUNDING * (np.abs(bound) + 1)).astype(np.int64)


@dataclass(frozen=True, eq=False)
class OpenLeaves:
    """The leaves with room for a group. Arrays have the shape (leaves,) if nothing else is said.

    A leaf is filled host by host, in the order of :class:`OrderedHosts`. What its VMs save is
    convex on each host, so the most for one VM in the mean is saved where a host is full.
    """

    problem: Problem
    count: int  # most VMs to place
    index: Array  # in topology.switches, sorted
    path: Array  # the switches above each leaf by level, shape (levels, leaves)
    room: Array  # capacity below each switch. Shape (switches,)
    members: Array  # members below each switch. Shape (switches,)
    vms_of_group: int  # the members and the VMs to place
    charges: Charges | None = None  # of the group's plans; None: the least Hop-Byte is best

    @classmethod
    def of(cls, problem: Problem, count: int, charges: Charges | None = None) -> "OpenLeaves":
        """Return the leaves with room. O(hosts + leaves * levels).

        :param charges: by the room of more leaves than these; by default by that of the problem
        """
        topology, by_leaf = problem.topology, leaf_room(problem)
        number = len(topology.switches)
        [is_open] = by_leaf[topology.leaf_switches].nonzero()
        index, path = topology.leaf_switches[is_open], topology.leaf_path[:, is_open]
        room = sums_by_switch(path, by_leaf[index], number)
        if charges is None and problem.price is not None:
            charges = Charges.of(problem.price, topology, room, count)
        [hosts] = problem.members.nonzero()
        members = np.zeros(number, dtype=np.int64)
        everyone = count
        if len(hosts):
            here = problem.members[hosts]
            members = sums_by_switch(topology.groups[:, hosts], here, number)
            everyone += int(here.sum())
        return cls(problem, count, index, path, room, members, everyone, charges)

    def with_at_most(self, vms: Array) -> "OpenLeaves":
        """Return leaves for bounds on plans that place at most some VMs in each of them.

        Hosts have their own room all the same.

        :param vms: new VMs in each leaf; 0 counts as 1
        """
        rooms = np.minimum(self.rooms, np.maximum(vms, 1))
        return replace(self, room=sums_by_switch(self.path, rooms, len(self.room)))

    @property
    def scale(self) -> int:
        """The parts of a hop in which savings are counted."""
        return 1 if self.charges is None else self.charges.scale

    @property
    def has_members(self) -> bool:
        """Whether some VMs of the group have a place."""
        return self.vms_of_group > self.count

    @cached_property
    def above(self) -> Array:
        """The switch just above each leaf, -1 for a root."""
        topology = self.problem.topology
        above: Array = topology.leaf_above[np.searchsorted(topology.leaf_switches, self.index)]
        return above

    @cached_property
    def rooms(self) -> Array:
        """The capacity of each leaf."""
        rooms: Array = self.room[self.index]
        return rooms

    @cached_property
    def here(self) -> Array:
        """The members in each leaf."""
        here: Array = self.members[self.index]
        return here

    @property
    def levels(self) -> Array:
        """The level of each switch. Shape (switches,)."""
        return self.problem.topology.switch_levels

    @cached_property
    def rise(self) -> Array:
        """The levels from each leaf to the switch just above it; 0 for a root."""
        return np.where(self.above < 0, 0, self.levels[self.above] - 1)

    @cached_property
    def shares_hosts(self) -> bool:
        """Whether several VMs of the group on one host, members among them, count as nearer."""
        problem = self.problem
        if not problem.pack_hosts:
            return False
        return self.has_members or (self.count > 1 and int(problem.capacity.max()) > 1)

    @cached_property
    def hosts(self) -> OrderedHosts:
        """The hosts with room."""
        return OrderedHosts.of(self.problem, self.count)

    @cached_property
    def is_mixed(self) -> Mask:
        """True for leaves with hosts of several numbers of members."""
        if not self.shares_hosts or not self.has_members:
            return np.zeros(len(self.index), dtype=np.bool_)
        hosts = self.hosts
        last = hosts.starts + hosts.number - 1
        mixed: Mask = hosts.members[hosts.starts] != hosts.members[last]
        return mixed

    def has_few_below(self, few: int) -> bool:
        """True if switches just above leaves have fewer than some of them in the mean."""
        above = np.bincount(self.above + 1, minlength=1)
        return len(self.index) < few * int(np.count_nonzero(above))

    def are_below(self, switches: Array, level: int) -> Mask:
        """Return which leaves are below some switches of a level. Shape (leaves,)."""
        is_one = np.zeros(len(self.room), dtype=np.bool_)
        is_one[switches] = True
        below: Mask = is_one[self.path[level - 1]]
        return below

    def takes(self, vms: Array | int) -> Array:
        """Return the VMs of each host if leaves take some. Shape (hosts with room,)."""
        hosts = self.hosts
        most = vms if isinstance(vms, int) else vms.repeat(hosts.number)
        return filled_in_runs(hosts.capacity, hosts.starts, hosts.number, most)

    def pairs_of(self, takes: Array) -> Array:
        """Return the pairs on one host that new VMs add. Shape of ``takes``, by host."""
        return takes * (takes - 1 + 2 * self.hosts.members) // 2

    def pairs(self, vms: Array | int) -> Array:
        """Return the pairs on one host of some VMs in each leaf.

        The most that there are, but for leaves that are mixed: there it is what can be had.
        """
        if not self.shares_hosts:
            return np.zeros_like(self.index)
        pairs: Array = np.add.reduceat(self.pairs_of(self.takes(vms)), self.hosts.starts)
        return pairs

    def pair_tables(self, leaves: Array) -> list[Array]:
        """Return the pairs on one host of 0, 1, 2 .. VMs in each of some leaves.

        Of leaves that are mixed: what can be had. Shape (VMs + 1,) each.
        """
        if not len(leaves):
            return []
        hosts, sizes = self.hosts, np.minimum(self.rooms[leaves], self.count)
        number = hosts.number[leaves]
        last = np.cumsum(number)
        among = np.repeat(hosts.starts[leaves] - last + number, number)
        among += np.arange(len(among))
        takes = self.takes(self.count)[among]
        before = np.cumsum(takes) - takes
        # The o-th VM on a host with m members makes m + o - 1 pairs with those before it.
        pairs = np.repeat(hosts.members[among] - before, takes) + np.arange(int(takes.sum()))
        # Each table begins with no VM.
        tables = np.zeros(len(pairs) + len(sizes), dtype=np.int64)
        tables[np.arange(len(pairs)) + np.repeat(np.arange(1, len(sizes) + 1), sizes)] = pairs
        starts = np.cumsum(sizes + 1) - sizes - 1
        tables = np.cumsum(tables)
        tables -= np.repeat(tables[starts], sizes + 1)
        return np.split(tables, starts[1:])

    def most_means(self, most: int) -> Reals:
        """Return a bound on what a VM saves in the mean below a leaf's parent, for up to ``most``.

        Exact for leaves that are not mixed.
        """
        if not self.shares_hosts:
            return self._means(0.0, most)
        hosts = self.hosts
        takes = self.takes(most)
        pairs = (own := self.pairs_of(takes)).cumsum()
        vms = takes.cumsum()
        first = hosts.starts
        pairs -= (pairs[first] - own[first]).repeat(hosts.number)
        vms -= (vms[first] - takes[first]).repeat(hosts.number)
        rise, here = self.rise.repeat(hosts.number), self.here.repeat(hosts.number)
        mean = pairs / vms + rise * (vms - 1 + 2 * here)
        found: Reals = np.maximum.reduceat(mean, first)
        if self.is_mixed.any():
            found = np.where(self.is_mixed, self._means(self.most_on_host(most), most), found)
        return found

    def means_on_largest(self, most: int) -> Reals:
        """Return a bound like :meth:`most_means`, as if all hosts were like the best. O(hosts)."""
        pairs = 0.0
        if self.shares_hosts:
            problem = self.problem
            largest = min(int(problem.capacity.max()), most)
            pairs = (largest - 1) / 2 + int(problem.members.max())
        return self._means(pairs, most)

    def _means(self, on_host: Reals | float, most: int) -> Reals:
        """Return what a VM saves in the mean if it adds some pairs on its host in the mean."""
        vms = np.minimum(self.rooms, most)
        return on_host + self.rise * (vms - 1 + 2 * self.here)

    def most_on_host(self, most: int) -> Reals:
        """Return the most pairs on one host that a VM adds in the mean, of up to ``most`` VMs."""
        if not self.shares_hosts:
            return np.zeros(len(self.index))
        hosts = self.hosts
        pairs = (np.minimum(hosts.capacity, most) - 1) / 2 + hosts.members
        found: Reals = np.maximum.reduceat(pairs, hosts.starts)
        return found

    def saved_above(self, leaves: Array, vms: int, low: int, high: int) -> Array:
        """Return the hops that VMs save between the switches of two levels above some leaves.

        All VMs are below the same switches. Shape (of those leaves,).
        """
        path = self.path[low - 1 : high, leaves]
        # As saved_by: what the VMs save among each other depends on the two levels alone.
        saved: Array = (self.levels[path[-1]] - self.levels[path[0]]) * (vms * (vms - 1))
        if self.has_members:
            for below, upper in itertools.pairwise(path):
                rise = self.levels[upper] - self.levels[below]
                saved += rise * self.members[below] * (2 * vms)
        return saved

    def saved_by_leaves(self, leaves: Array, vms: Array | int, high: int) -> Array:
        """Return the hops that VMs in leaves save below the switch just above, up to a level."""
        above = self.above[leaves]
        rise = np.where(self.levels[above] <= high, self.rise[leaves], 0)
        return saved_by(vms, self.here[leaves], rise)

    def through_top(self, level: int) -> Array:
        """Return what all pairs of the group cost through the switch of a level above each leaf.

        Shape (leaves,).
        """
        everyone = self.vms_of_group
        hops: Array = 2 * self.levels[self.path[level - 1]] - 1
        return hops * (everyone * (everyone - 1) // 2)

    @property
    def most_charged(self) -> int:
        """A bound on what a plan is charged: for all switches, each with one VM."""
        if self.charges is None:
            return 0
        charges = self.charges
        return int((charges.rates * charges.room + charges.fixed).sum())

    def charged(self, leaves: Array, vms: Array | int, low: int) -> Array:
        """Return what the switches above some leaves are charged, from a level up.

        All VMs are below the same switches. Shape (of those leaves,); 0 without charges.
        """
        total = np.zeros(len(leaves), dtype=np.int64)
        if self.charges is not None:
            path = self.path[:POD, leaves]
            for level, row in enumerate(path, 1):
                if level >= low:
                    # A leaf stands in for a missing pod.
                    is_here = 1 if level == 1 else row != path[level - 2]
                    total += is_here * self.charges.at(row, vms)
        return total

    def least_charged(self, most: int, *, with_pods: bool) -> Reals:
        """Return a bound on what a VM is charged in the mean in each leaf, in parts of a hop.

        :param most: VMs in a leaf
        :param with_pods: whether the charges of pods, of up to ``count`` VMs, count as well
        """
        if self.charges is None:
            return np.zeros(len(self.index))
        vms = np.minimum(self.rooms, most)
        mean: Reals = self.charges.at(self.index, vms) / vms
        if with_pods and len(self.path) >= POD:
            pods = self.path[POD - 1]
            below = np.minimum(self.room[pods], self.count)
            mean += (pods != self.index) * self.charges.at(pods, below) / below
        return mean
